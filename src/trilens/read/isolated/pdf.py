"""PDF: one document per page."""

import re
from collections.abc import Iterator
from datetime import datetime

import pypdfium2
from pypdfium2 import PdfDocument, PdfiumError

from trilens.errors import Unreadable
from trilens.read.described import described, moment, one_line
from trilens.read.formats import PageContent
from trilens.read.isolated.archive import encrypted
from trilens.read.isolated.local_file import LocalFile

DATE = re.compile(r"D:(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:([+-])(\d\d)'?(\d\d)?)?")
SCANNED = "scanned or without text"  # a reason for which files are skipped
NO_TITLE = ("untitled", "unspecified", "anonymous")
JOINED = "\ufffe"
"""What PDFium writes for the hyphen and the line end inside a word."""


def parse(file: LocalFile) -> Iterator[PageContent]:
    """Yield the pages that have text."""
    document = _opened(file)
    facts = document.get_metadata_dict()
    title = _known(facts.get("Title"))
    author, date = _known(facts.get("Author")), _date(facts.get("ModDate") or facts.get("CreationDate") or "")
    pages = len(document)
    empty = True
    for number in range(1, pages + 1):
        text = _text(document, number - 1)
        if text.strip():
            empty = False
            yield PageContent(title, text, described(page=number, pages=pages, author=author, date=date), part=f"page={number}")
    if empty:
        message = (
            f"has no text on any page ({pages:,} in all), probably because they are scanned images; expected text: "
            "run text recognition first, for example with ocrmypdf"
        )
        raise Unreadable(message, SCANNED)


def _opened(file: LocalFile) -> PdfDocument:
    try:
        return PdfDocument(file.path)
    except PdfiumError as error:
        if error.err_code in (pypdfium2.raw.FPDF_ERR_PASSWORD, pypdfium2.raw.FPDF_ERR_SECURITY):
            raise encrypted() from error
        raise


def _text(document: PdfDocument, index: int) -> str:
    """The text of a page. A page that is damaged counts as one without text."""
    try:
        page = document[index]
        text_page = page.get_textpage()
    except PdfiumError:
        return ""
    text: str = text_page.get_text_range()
    text_page.close()
    page.close()
    return text.replace(JOINED, "").replace("\r\n", "\n").replace("\0", "")


def _known(value: str | None) -> str:
    """A title or an author; programs write `untitled` where they know none."""
    text = one_line(value)
    return "" if text.lower() in NO_TITLE else text


def _date(text: str) -> str:
    """A date such as D:20240131120000+01'00' as ISO 8601; empty if it is none."""
    matched = DATE.match(text)
    if matched is None:
        return ""
    year, month, day, hour, minute, second, sign, zone_hours, zone_minutes = matched.groups()
    zone = f"{sign}{zone_hours}:{zone_minutes or '00'}" if sign else "+00:00"
    written = f"{year}-{month or '01'}-{day or '01'}T{hour or '00'}:{minute or '00'}:{second or '00'}{zone}"
    try:
        return moment(datetime.fromisoformat(written))
    except ValueError:
        return ""
