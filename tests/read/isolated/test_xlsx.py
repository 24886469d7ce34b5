import pytest

from trilens.text.document import Document

from .conftest import Documents, Repack

pytest.importorskip("openpyxl")
SHEET = "xl/worksheets/sheet1.xml"


@pytest.mark.parametrize("name", ["parts.xlsx", "parts.xlsm"])
def test_each_sheet_is_a_document_with_a_line_per_row(documents: Documents, name: str) -> None:
    assert documents(name) == [
        Document(
            f"{name}#sheet=parts",
            "part  price  bought\nbearing  12.5  2024-01-31\ngasket  3  2023-05-01",
            "parts",
            {"sheet": "parts", "sheets": 1, "path": name},
        )
    ]


def test_the_last_cell_of_an_endless_sheet_does_not_make_it_large(documents: Documents, repack: Repack) -> None:
    row = b'<row r="1048576"><c r="XFD1048576" t="inlineStr"><is><t>far</t></is></c></row></sheetData>'
    (sheet,) = documents(repack("parts.xlsx", SHEET, b"</sheetData>", row))
    assert isinstance(sheet, Document)
    assert sheet.text.endswith("2023-05-01\nfar")
