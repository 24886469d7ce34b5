"""DOCX (Word): the text of the body with its tables and text boxes, then foot- and endnotes and comments."""

from collections.abc import Iterator
from typing import Any

from docx import Document
from docx.oxml.parser import parse_xml

from trilens.read.described import described, one_line
from trilens.read.formats import PageContent
from trilens.read.isolated.archive import check_archive, office_properties
from trilens.read.isolated.local_file import LocalFile

WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
NOTES = ("/footnotes", "/endnotes", "/comments")
TITLES = ("Title", "Heading 1")
# Deleted and moved text, the copy of a drawing for old programs, and formatting. Text boxes follow their paragraph.
LEFT_OUT = frozenset({"del", "moveFrom", "Fallback", "pPr", "rPr", "sectPr", "tblPr", "trPr", "tcPr"})
CHARACTERS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
CELLS = "./w:tc | ./w:sdt/w:sdtContent/w:tc"


def parse(file: LocalFile) -> Iterator[PageContent]:
    """Yield the whole document."""
    check_archive(file)
    document = Document(str(file.path))
    facts = office_properties(file)
    blocks = list(_blocks(document.element.body))
    for relation in document.part.rels.values():
        if relation.reltype.endswith(NOTES):
            blocks += _blocks(parse_xml(relation.target_part.blob))
    headings = (paragraph.text for paragraph in document.paragraphs if paragraph.style and paragraph.style.name in TITLES)
    title = facts.title or one_line(next(headings, ""))
    metadata = described(author=facts.author, date=facts.date)
    yield PageContent(title, "\n\n".join(filter(str.strip, blocks)), metadata)


def _blocks(element: Any) -> Iterator[str]:
    """The paragraphs and tables inside an element, in order."""
    match _name(element):
        case "p":
            yield _line(element)
            for box in element.xpath(".//w:txbxContent[not(ancestor::*[local-name() = 'Fallback'])]"):
                yield from _blocks(box)
        case "tbl":
            yield "\n".join("  ".join(filter(None, map(_cell, row.xpath(CELLS)))) for row in element.iter(f"{WORD}tr"))
        case name if name not in LEFT_OUT:
            for child in element:
                yield from _blocks(child)


def _cell(element: Any) -> str:
    return one_line(" ".join(_blocks(element)))


def _line(element: Any) -> str:
    """The characters of a paragraph."""
    match _name(element):
        case "t":
            return element.text or ""
        case name if name in CHARACTERS:
            return CHARACTERS[name]
        case name if name in LEFT_OUT or name == "txbxContent":
            return ""
    return "".join(map(_line, element))


def _name(element: Any) -> str:
    """The name of an element without its namespace; empty for comments and processing instructions."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""
