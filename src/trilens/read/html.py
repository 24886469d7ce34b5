"""Extract the title and the visible text of HTML: block elements start new lines, scripts and styles are dropped."""

import re
from html import unescape
from html.parser import HTMLParser

HIDDEN = frozenset({"script", "style", "noscript", "template"})
BLOCK_NAMES = """
address article aside blockquote body br caption dd details dialog div dl dt fieldset figcaption figure footer form
h1 h2 h3 h4 h5 h6 head header hr legend li main menu nav ol option p pre section select summary table tbody textarea
tfoot thead tr ul
"""
BLOCKS = frozenset(BLOCK_NAMES.split())
CELLS = frozenset({"td", "th"})
HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
SPACES = re.compile(r"[ \t\n\r\f\v\xa0]+")


def read_html(markup: str) -> tuple[str, str]:
    """The title, or else the first heading, and the visible text."""
    extractor = _TextExtractor()
    # No tag can end after the last ">". The parser would scan that part from each "<", in quadratic time.
    tail_start = markup.rfind(">") + 1
    extractor.feed(markup[:tail_start])
    extractor.close()
    extractor.handle_data(unescape(markup[tail_start:].partition("<!--")[0]))
    return extractor.title or extractor.heading, extractor.text()


class _TextExtractor(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title = ""
        self.heading = ""
        self._pieces: list[str] = []
        self._hidden: list[str] = []
        self._title_pieces: list[str] | None = None
        self._heading_start: int | None = None
        self._preformatted = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._hidden:
            # Only the same tag nests: a stray opening tag inside must not hide the rest of the page.
            if tag == self._hidden[0]:
                self._hidden.append(tag)
        elif tag in HIDDEN:
            self._hidden.append(tag)
        elif tag == "title":
            self._title_pieces = []
        else:
            self._break(tag)
            self._preformatted += tag == "pre"
            if tag in HEADINGS and not self.heading and self._heading_start is None:
                self._heading_start = len(self._pieces)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._break(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._hidden:
            if tag == self._hidden[-1]:
                self._hidden.pop()
        elif tag == "title":
            self._end_title()
        else:
            if tag in HEADINGS and self._heading_start is not None:
                self.heading = _one_line("".join(self._pieces[self._heading_start :]))
                self._heading_start = None
            self._break(tag)
            self._preformatted -= tag == "pre" and self._preformatted > 0

    def handle_data(self, data: str) -> None:
        if self._hidden:
            return
        if self._title_pieces is not None:
            self._title_pieces.append(data)
        elif self._preformatted:
            self._pieces.append(data)
        else:
            self._add(SPACES.sub(" ", data))

    def parse_marked_section(self, i: int, report: bool = True) -> int:
        """Skip a marked section; like browsers, treat one of unknown kind as a comment up to the next `>`."""
        try:
            return super().parse_marked_section(i, report)
        except AssertionError:
            return self.parse_bogus_comment(i, report)

    def parse_comment(self, i: int, report: bool = True) -> int:
        """Skip a comment; like browsers, let an unclosed one extend to the end of the page."""
        end = super().parse_comment(i, report)
        if end >= 0:
            return end
        self._hidden.append("!--")
        return len(self.rawdata)

    def text(self) -> str:
        """The visible text: one block per line, at most one blank line between blocks."""
        if self._title_pieces is not None:
            # An unclosed title has swallowed the page.
            self._pieces.extend(self._title_pieces)
        lines = (line.rstrip() for line in "".join(self._pieces).split("\n"))
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")

    def _break(self, tag: str) -> None:
        if tag in CELLS:
            self._add(" ")
        elif tag in BLOCKS and self._pieces and not self._pieces[-1].endswith("\n"):
            self._pieces.append("\n")

    def _add(self, text: str) -> None:
        """Append text, dropping spaces after a space and at the start of a line."""
        if not self._pieces or self._pieces[-1][-1].isspace():
            text = text.lstrip(" ")
        if text:
            self._pieces.append(text)

    def _end_title(self) -> None:
        # Later titles belong to embedded SVG.
        self.title = self.title or _one_line("".join(self._title_pieces or []))
        self._title_pieces = None


def _one_line(text: str) -> str:
    return SPACES.sub(" ", text).strip()
