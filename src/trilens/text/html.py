"""HTML to a title and the text that a reader sees: block borders become newlines, scripts and styles are left out."""

import re
from html.parser import HTMLParser

from trilens.errors import BadInput

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
    """The title (or else the first heading) and the visible text."""
    page = _Page()
    try:
        page.feed(markup)
        page.close()
    except AssertionError as error:  # how html.parser reports a marked section that it does not know
        raise BadInput(f"broken HTML ({error}); expected a page that a browser can show: repair the file") from error
    return page.title or page.heading, page.text()


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title = ""
        self.heading = ""
        self._parts: list[str] = []
        self._hidden: list[str] = []
        self._title_parts: list[str] | None = None
        self._heading_start: int | None = None
        self._preformatted = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._hidden:
            # Only the same tag can nest: a stray opening tag inside must not hide the rest of the page.
            if tag == self._hidden[0]:
                self._hidden.append(tag)
        elif tag in HIDDEN:
            self._hidden.append(tag)
        elif tag == "title":
            self._title_parts = []
        else:
            self._border(tag)
            self._preformatted += tag == "pre"
            if tag in HEADINGS and not self.heading and self._heading_start is None:
                self._heading_start = len(self._parts)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._border(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._hidden:
            if tag == self._hidden[-1]:
                self._hidden.pop()
        elif tag == "title":
            self._end_title()
        else:
            if tag in HEADINGS and self._heading_start is not None:
                self.heading = _line("".join(self._parts[self._heading_start :]))
                self._heading_start = None
            self._border(tag)
            self._preformatted -= tag == "pre" and self._preformatted > 0

    def handle_data(self, data: str) -> None:
        if self._hidden:
            return
        if self._title_parts is not None:
            self._title_parts.append(data)
        elif self._preformatted:
            self._parts.append(data)
        else:
            self._add(SPACES.sub(" ", data))

    def text(self) -> str:
        """All visible text, one block per line, at most one blank line between blocks."""
        if self._title_parts is not None:
            # A title that never ends swallowed the page: what it holds is text after all.
            self._parts.extend(self._title_parts)
        lines = (line.rstrip() for line in "".join(self._parts).split("\n"))
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")

    def _border(self, tag: str) -> None:
        if tag in CELLS:
            self._add(" ")
        elif tag in BLOCKS and self._parts and not self._parts[-1].endswith("\n"):
            self._parts.append("\n")

    def _add(self, text: str) -> None:
        """Add text whose spaces are single: none after another space, none at the start of a line."""
        if not self._parts or self._parts[-1][-1].isspace():
            text = text.lstrip(" ")
        if text:
            self._parts.append(text)

    def _end_title(self) -> None:
        # Later titles belong to drawings inside the page.
        self.title = self.title or _line("".join(self._title_parts or []))
        self._title_parts = None


def _line(text: str) -> str:
    return SPACES.sub(" ", text).strip()
