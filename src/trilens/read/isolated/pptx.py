"""PPTX (PowerPoint): one document per slide, with its notes."""

from collections.abc import Iterator
from typing import Any

from pptx import Presentation

from trilens.read.described import described, part_title
from trilens.read.formats import PageContent
from trilens.read.isolated.archive import check_archive, office_properties
from trilens.read.isolated.local_file import LocalFile

DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
# Fields are left out: slide numbers and dates.
PARAGRAPH, ROW, BREAK, FIELD, TEXT = (f"{DRAWING}{name}" for name in ("p", "tr", "br", "fld", "t"))


def parse(file: LocalFile) -> Iterator[PageContent]:
    """Yield the slides."""
    check_archive(file)
    presentation = Presentation(str(file.path))
    facts = office_properties(file)
    slides = len(presentation.slides)
    for number, slide in enumerate(presentation.slides, start=1):
        heading = slide.shapes.title
        lines = list(_lines(slide.element))
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            lines += ["", slide.notes_slide.notes_text_frame.text]
        yield PageContent(
            part_title(facts.title, heading.text_frame.text if heading is not None else ""),
            "\n".join(lines).strip(),
            described(slide=number, slides=slides, author=facts.author, date=facts.date),
            part=f"slide={number}",
        )


def _lines(slide: Any) -> Iterator[str]:
    """The paragraphs of all shapes, and the rows of tables."""
    for element in slide.iter(PARAGRAPH, ROW):
        if element.tag == ROW:
            yield "  ".join(filter(None, map(_text, element)))
        elif next(element.iterancestors(ROW), None) is None and (text := _text(element)):
            yield text


def _text(element: Any) -> str:
    """The text of a paragraph or a cell."""
    parts = element.iter(TEXT, BREAK)
    return "".join("\n" if part.tag == BREAK else part.text or "" for part in parts if part.getparent().tag != FIELD).strip()
