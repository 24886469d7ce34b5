"""Markdown to a title, metadata and readable text: the words and the code stay, the marks go."""

import html
import re
from typing import Any

# No pattern may look at the same characters again from many starts: a line can be megabytes long.
FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})(.*)")
HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]+|$)")
UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")
RULE = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")
ITEM = re.compile(r"([ \t]*)(?:[-*+][ \t]+(?:\[[ xX]\][ \t]+)?|(\d{1,9}[.)][ \t]+))")
QUOTE = re.compile(r"(?: {0,3}> ?)+")
TABLE_RULE = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?$")
DEFINITION = re.compile(r" {0,3}\[(?!\^)[^\]]+\]:[ \t]*\S+(?:[ \t]+(?:\"[^\"]*\"|'[^']*'|\([^)]*\)))?[ \t]*$")
FOOTNOTE = re.compile(r" {0,3}\[\^[^\]]+\]:[ \t]*")
CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
TARGET = r"\((?:[^()\s]|\([^()\s]*\))*(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)"
INLINE: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"<!--(?:(?!<!--).)*?-->", re.DOTALL), ""),
    (re.compile(r"<((?:https?|ftp|mailto):[^<>\s]+|[^<>\s@]+@[^<>\s@]+)>"), r"\1"),
    (re.compile(r"</?[A-Za-z][^<>]*>"), ""),
    (re.compile(r"\[\^[^\[\]\s]+\]"), ""),
    (re.compile(rf"!\[([^\[\]]*)\](?:{TARGET}|\[[^\[\]]*\])"), r"\1"),
    (re.compile(rf"\[([^\[\]]*)\](?:{TARGET}|\[[^\[\]]*\])"), r"\1"),
    (re.compile(r"(\*{1,3})(?=\S)([^*]*[^\s*])\1"), r"\2"),
    (re.compile(r"(?<!\w)(_{1,3})(?=\S)([^_\n]*[^\s_])\1(?!\w)"), r"\2"),
    (re.compile(r"~~(?=\S)([^~]*[^\s~])~~"), r"\1"),
)
ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
HELD = re.compile("\U0010fff0(\\d+)\U0010fff1")
"""Code and escaped characters wait under a number between two private characters, where no mark is looked for."""


def read_markdown(source: str) -> tuple[str, str, dict[str, Any]]:
    """The title (of the front matter, or else the first heading), the text, and the front matter."""
    metadata, body = _front_matter(source)
    title = metadata.pop("title", "")
    reader = _Lines()
    for line in body.split("\n"):
        reader.take(line)
    text = re.sub(r"\n{3,}", "\n\n", reader.text()).strip("\n")
    return str(title) or reader.title, text, metadata


def _front_matter(source: str) -> tuple[dict[str, Any], str]:
    """`key: value` lines between two lines of dashes at the very top; anything else there is left out."""
    lines = source.split("\n")
    if lines[0].rstrip() != "---":
        return {}, source
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), None)
    if end is None:
        return {}, source
    found: dict[str, Any] = {}
    key = ""
    for line in lines[1:end]:
        pair = re.match(r"([A-Za-z_][\w .-]*?)[ \t]*:(?:[ \t]+(.*))?$", line)
        item = re.match(r"[ \t]*-[ \t]+(.*)$", line)
        if pair:
            key = pair[1]
            if pair[2]:
                found[key] = _value(pair[2].strip())
        elif item and key and isinstance(found.setdefault(key, []), list):
            found[key].append(_scalar(item[1].strip()))
    return found, "\n".join(lines[end + 1 :])


def _value(text: str) -> Any:
    if text.startswith("[") and text.endswith("]"):
        return [_scalar(part.strip()) for part in text[1:-1].split(",") if part.strip()]
    return _scalar(text)


def _scalar(text: str) -> str | int | float | bool:
    """Numbers and truth values get their type, so that filters can compare them; all else is a string."""
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    if re.fullmatch(r"-?(?:0|[1-9]\d{0,14})", text):
        return int(text)
    if re.fullmatch(r"-?(?:0|[1-9]\d{0,14})\.\d{1,15}", text):
        return float(text)
    return {"true": True, "false": False}.get(text.lower(), text)


class _Lines:
    """Reads line by line; prose is gathered into runs, because a link or an emphasis may cross a line end."""

    def __init__(self) -> None:
        self.title = ""
        self._done: list[str] = []
        self._prose: list[str] = []
        self._fence = ""
        self._fence_quoted = False
        self._in_comment = False
        self._in_list = False
        self._in_table = False
        self._after_blank = True

    def take(self, line: str) -> None:
        """Read the next line."""
        if self._in_comment:
            self._in_comment = "-->" not in line
            return
        quote = QUOTE.match(line)
        line = line[quote.end() :] if quote and not (self._fence and not self._fence_quoted) else line
        fence = FENCE.match(line)
        if self._fence:
            self._code(line)
        elif fence and not (fence[1][0] == "`" and "`" in fence[2]):
            self._flush()
            self._fence, self._fence_quoted = fence[1], quote is not None
        elif self._after_blank and not self._in_list and line.startswith(("    ", "\t")) and line.strip():
            self._done.append(line)
            return  # the next indented line is code too
        elif line.startswith("<!--") and "-->" not in line:
            self._in_comment = True
        else:
            self._prose_line(line)
        self._after_blank = not line.strip()

    def text(self) -> str:
        """Everything read, without marks."""
        self._flush()
        return "\n".join(self._done)

    def _code(self, line: str) -> None:
        closing = line.strip()
        if closing and set(closing) == {self._fence[0]} and len(closing) >= len(self._fence):
            self._fence = ""
        else:
            self._done.append(line)

    def _prose_line(self, line: str) -> None:
        if not line.strip():
            self._in_table = False
            self._flush()
            self._done.append("")
        elif heading := HEADING.match(line):
            self._flush()
            self._heading(_without_closing(line[heading.end() :].strip()))
        elif UNDERLINE.match(line) and self._prose and not self._in_list:
            lines, self._prose = self._prose, []
            self._heading("\n".join(lines))
        elif TABLE_RULE.match(line.strip()) and "|" in line and self._prose and "|" in self._prose[-1]:
            self._in_table = True
            self._prose[-1] = _cells(self._prose[-1])
        elif not (RULE.match(line) or DEFINITION.match(line)):
            self._paragraph(line)

    def _paragraph(self, line: str) -> None:
        if self._in_table:
            self._prose.append(_cells(line))
            return
        item = ITEM.match(line)
        if item:
            self._flush()
            self._in_list = True
            line = item[1] + (item[2] or "") + line[item.end() :]
        elif not line.startswith((" ", "\t")):
            self._in_list = self._in_list and bool(self._prose)
        self._prose.append(FOOTNOTE.sub("", line, count=1))

    def _heading(self, source: str) -> None:
        text = strip_marks(source).strip()
        self.title = self.title or " ".join(text.split())
        self._in_list = False
        self._done.append(text)

    def _flush(self) -> None:
        if self._prose:
            self._done.append(strip_marks("\n".join(self._prose)))
            self._prose = []


def strip_marks(source: str) -> str:
    """Prose without its inline marks; what stands between backticks is kept as it is."""
    held: list[str] = []

    def hold(text: str) -> str:
        held.append(text)
        return f"\U0010fff0{len(held) - 1}\U0010fff1"

    def give_back(found: re.Match[str]) -> str:
        return held[int(found[1])] if int(found[1]) < len(held) else found[0]

    prose = CODE_SPAN.sub(lambda found: hold(found[2].strip() or found[2]), source)
    prose = ESCAPE.sub(lambda found: hold(found[1]), prose)
    for pattern, replacement in INLINE:
        prose = pattern.sub(replacement, prose)
    return HELD.sub(give_back, html.unescape(prose))


def _cells(row: str) -> str:
    return "  ".join(cell.strip() for cell in row.strip().strip("|").split("|") if cell.strip())


def _without_closing(heading: str) -> str:
    """A heading may end in a run of # after a space: `## Title ##`."""
    bare = heading.rstrip("#")
    return bare.rstrip() if not bare or bare[-1].isspace() else heading
