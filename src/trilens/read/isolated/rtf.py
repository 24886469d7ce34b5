"""RTF: the text of the document."""

import re
from collections.abc import Iterator

from striprtf.striprtf import rtf_to_text

from trilens.errors import BadInput
from trilens.read.described import described, one_line
from trilens.read.formats import PageContent
from trilens.read.isolated.local_file import LocalFile

START = b"{\\rtf"
CELL_GAP = "  "
PROPERTY = r"\{{\\{name} ?((?:[^{{}}\\]|\\.)*)\}}"


def parse(file: LocalFile) -> Iterator[PageContent]:
    """Yield the whole document."""
    raw = file.path.read_bytes()
    if not raw.lstrip().startswith(START):
        raise BadInput(f"does not start with {START.decode()}; expected RTF: rename or convert it")
    source = raw.decode("latin-1")
    title, author = (_property(source, name) for name in ("title", "author"))
    text = rtf_to_text(source, errors="replace").replace("\n|", CELL_GAP).strip()
    yield PageContent(title, text, described(author=author))


def _property(source: str, name: str) -> str:
    """A property of the group `info`."""
    matched = re.search(PROPERTY.format(name=name), source)
    return one_line(rtf_to_text(f"{{\\rtf1\\ansi {matched[1]}}}", errors="replace")) if matched else ""
