"""Extract the title, the front matter and the plain text of Markdown (CommonMark with tables, strikethrough and footnotes)."""

import re
import textwrap
from collections.abc import Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block import reference as reference_rule
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from trilens.read.front_matter import split_front_matter
from trilens.read.html import read_html

MAX_NESTING = 100
CONTAINER_LEVELS = 2
"""Levels that the deepest container, an item of a list, adds at once."""

QUOTE_MARKS = re.compile(r"(?: {0,3}> ?)*")
TASK_BOX = re.compile(r"\[[ xX]\][ \t]+")
FOOTNOTE_LABEL = re.compile(r"(\[\^[^\[\]\s]+\])(?!\()(:[ \t]*)?")


def read_markdown(source: str) -> tuple[str, str, dict[str, Any]]:
    """The title (of the front matter, or else the first heading), the text, and the front matter."""
    metadata, body = split_front_matter(source)
    title = metadata.pop("title", "")
    plain_text = _PlainText(body)
    for token in _parser().parse(body):
        plain_text.add(token)
    return str(title) or plain_text.title, plain_text.text(), metadata


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING}).enable(["table", "strikethrough"])
    parser.block.ruler.at("reference", _link_definition)
    parser.block.ruler.before("table", "deep_text", _deep_text)
    parser.inline.ruler.before("link", "footnote", _footnote)
    return parser


def _link_definition(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Block rule: `[label]: target` defines a link, except that `[^label]:` starts a footnote."""
    first = state.bMarks[start] + state.tShift[start]
    return not state.src.startswith("[^", first) and reference_rule(state, start, end, silent)


def _deep_text(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Block rule: keep blocks below the nesting limit as one paragraph; markdown-it would drop them."""
    if silent or state.level < MAX_NESTING - CONTAINER_LEVELS:
        return False
    state.push("paragraph_open", "p", 1)
    token = state.push("inline", "", 0)
    token.content = state.getLines(start, end, state.blkIndent, False).strip()
    token.map = [start, end]
    token.children = []
    state.push("paragraph_close", "p", -1)
    state.line = end
    return True


def _footnote(state: StateInline, silent: bool) -> bool:
    """Inline rule: drop footnote references such as `[^1]`, and `[^1]:` in front of a footnote."""
    label = FOOTNOTE_LABEL.match(state.src, state.pos)
    if label is None:
        return False
    starts_line = state.pos == 0 or state.src[state.pos - 1] == "\n"
    state.pos = label.end() if starts_line else label.end(1)
    return True


class _PlainText:
    """Renders block tokens as plain text, with the blank lines of the source and the indentation of its lists."""

    def __init__(self, source: str) -> None:
        self.title = ""
        self._source_lines = source.split("\n")
        self._pieces: list[str] = []
        self._end = 0  # the source line after the last block
        self._open_lists = 0
        self._item_number: str | None = None  # set between the start of a list item and its first block
        self._in_heading = False
        self._row: Token | None = None
        self._cells: list[str] = []

    def add(self, token: Token) -> None:
        """Render the next block token."""
        match token.type:
            case "inline":
                self._add_inline(token)
            case "fence" | "code_block":
                self._add_block(token, token.content.rstrip("\n"), self._code_indent(token))
            case "html_block":
                self._add_block(token, read_html(token.content)[1], "")
            case "heading_open" | "heading_close":
                self._in_heading = token.nesting > 0
            case "bullet_list_open" | "ordered_list_open" | "bullet_list_close" | "ordered_list_close":
                self._open_lists += token.nesting
            case "list_item_open":
                self._item_number = (self._item_number or "") + (f"{token.info}{token.markup} " if token.info else "")
            case "list_item_close":
                self._item_number = None
            case "tr_open":
                self._row, self._cells = token, []
            case "tr_close":
                self._add_row()

    def text(self) -> str:
        """The text of all tokens, with at most one blank line between blocks."""
        return re.sub(r"\n{3,}", "\n\n", "".join(self._pieces)).strip("\n")

    def _add_inline(self, token: Token) -> None:
        text = _inline_text(token.children or []).strip()
        if self._row is not None:
            self._cells.append(text)
            return
        if self._in_heading:
            self.title = self.title or " ".join(text.split())
        elif self._item_number is not None and (box := TASK_BOX.match(token.content)):
            text = text.removeprefix(box[0])
        self._add_block(token, text, self._list_indent(token))

    def _add_row(self) -> None:
        row, self._row = self._row, None
        if row is not None:
            self._add_block(row, "  ".join(cell for cell in self._cells if cell), self._list_indent(row))

    def _add_block(self, token: Token, text: str, indent: str) -> None:
        if not text.strip():
            return
        start, end = token.map or (self._end, self._end)
        if self._pieces:
            blank = any(not line.strip(" \t>") for line in self._source_lines[self._end : start])
            self._pieces.append("\n\n" if blank else "\n")
        self._pieces.append(textwrap.indent((self._item_number or "") + text, indent))
        self._item_number = None
        self._end = end

    def _list_indent(self, token: Token) -> str:
        """The indentation of the token's first line, inside lists only."""
        line = self._first_line(token) if self._open_lists else ""
        return line[: len(line) - len(line.lstrip())]

    def _code_indent(self, token: Token) -> str:
        """The indentation that the parser has removed from the content of a code block."""
        if token.type == "fence":
            return self._list_indent(token)
        indent = self._first_line(token).removesuffix(token.content.partition("\n")[0])
        return indent if indent.isspace() else ""

    def _first_line(self, token: Token) -> str:
        line = self._source_lines[token.map[0]] if token.map else ""
        return QUOTE_MARKS.sub("", line, count=1)


def _inline_text(tokens: Sequence[Token]) -> str:
    pieces = []
    for token in tokens:
        if token.type in ("softbreak", "hardbreak"):
            pieces.append("\n")
        elif token.type == "image":
            pieces.append(_inline_text(token.children or []))
        elif token.type != "html_inline":
            pieces.append(token.content)
    return "".join(pieces)
