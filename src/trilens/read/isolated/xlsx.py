"""XLSX (Excel): one document per sheet, a line per row, with the values that formulas had when the file was saved."""

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from typing import Any

from openpyxl import load_workbook

from trilens.read.described import described, one_line, part_title
from trilens.read.formats import PageContent
from trilens.read.isolated.archive import check_archive, office_properties
from trilens.read.isolated.local_file import LocalFile

MIDNIGHT = time()


def parse(file: LocalFile) -> Iterator[PageContent]:
    """Yield the sheets."""
    check_archive(file)
    facts = office_properties(file)
    with file.path.open("rb") as stream:
        workbook = load_workbook(stream, read_only=True, data_only=True)
        sheets = len(workbook.worksheets)
        for sheet in workbook.worksheets:
            sheet.reset_dimensions()  # files may state a size of a million empty rows
            lines = ("  ".join(filter(None, map(_cell, row))) for row in sheet.iter_rows(values_only=True))
            yield PageContent(
                part_title(facts.title, sheet.title),
                "\n".join(filter(None, lines)),
                described(sheet=sheet.title, sheets=sheets, author=facts.author, date=facts.date),
                part=f"sheet={sheet.title}",
            )


def _cell(value: Any) -> str:
    """The value of a cell as text, on one line."""
    match value:
        case None:
            return ""
        case float() if value.is_integer():
            return str(int(value))
        case datetime() if value.time() == MIDNIGHT:
            return value.date().isoformat()
        case datetime():
            return value.isoformat(" ", "seconds")
        case date() | time():
            return value.isoformat()
        case timedelta() | bool() | int() | float():
            return str(value)
    return one_line(str(value))
