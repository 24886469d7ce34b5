import io
from typing import Any

from trilens.errors import BadInput
from trilens.read.column_types import read_typed_table
from trilens.read.formats import InputFile
from trilens.read.reader_table import CSV
from trilens.read.records import AUTOMATIC, Fields
from trilens.text.document import Document


def rows(text: str, fields: Fields = AUTOMATIC) -> list[Any]:
    items = read_typed_table(io.BytesIO(text.encode()), "f", ",", fields)
    return [str(item) if isinstance(item, BadInput) else item[1] for item in items]


def column(*cells: str) -> list[Any]:
    return [row.get("x") for row in rows("id,text,x\n" + "".join(f"{n},t,{cell}\n" for n, cell in enumerate(cells)))]


def test_a_column_has_the_type_that_fits_all_its_cells() -> None:
    assert column("2020", "-7", "0") == [2020, -7, 0]
    assert column("1", "2.5", "-0.5e3") == [1.0, 2.5, -500.0]
    assert column("true", "False", "TRUE") == [True, False, True]
    assert column("1", "", " 3 ") == [1, None, 3]
    assert column("1", "two") == ["1", "two"]
    assert column("1", "true") == ["1", "true"]


def test_what_only_looks_like_a_number_stays_text() -> None:
    for cells in (["01099", "80331"], ["+49", "1"], ["1,5"], ["1_000"], ["nan"], ["1e5"], ["12345678901234567890"], ["٣"]):
        assert column(*(f'"{cell}"' for cell in cells)) == cells


def test_dates_become_strings_in_iso_form() -> None:
    assert column("2024-01-31", "2023-12-01") == ["2024-01-31", "2023-12-01"]
    assert column("31.01.2024", "2023-12-1", "1 Dec 2022 9:30") == ["2024-01-31", "2023-12-01", "2022-12-01T09:30:00Z"]
    assert column("31.01.2024", "unknown") == ["31.01.2024", "unknown"]


def test_the_column_tells_whether_the_day_or_the_month_is_first() -> None:
    assert column("03/04/2024", "31/01/2024") == ["2024-04-03", "2024-01-31"]
    assert column("03/04/2024", "01/31/2024", "2024-02-01") == ["2024-03-04", "2024-01-31", "2024-02-01"]
    assert column("04/04/2024") == ["2024-04-04"]
    for cells in (["03/04/2024"], ["31/01/2024", "01/31/2024"]):
        assert column(*cells) == cells


def test_the_id_of_a_row_does_not_depend_on_other_rows() -> None:
    def ids(table: bytes) -> list[str]:
        return [item.doc_id for item in CSV.read(InputFile(io.BytesIO(table), "f", "f")) if isinstance(item, Document)]

    row = b"text,year,bought\nwords,2020,31.12.2020\n"
    assert ids(row)[0] == ids(row + b"words,unknown,never\n")[0]


def test_id_text_and_title_stay_text() -> None:
    assert rows("id,text,title,year\n1,2,3,4\n") == [{"id": "1", "text": "2", "title": "3", "year": 4}]
    assert rows("id,body,key\n1,2,3\n", Fields(id="key", text="body")) == [{"id": 1, "body": "2", "key": "3"}]


def test_a_bad_row_has_no_say() -> None:
    found = rows("id,text,year\n1,a,2020\n2,b\n3,c,2021\n")
    assert [found[0]["year"], found[2]["year"]] == [2020, 2021]
    assert found[1].startswith("f:3: the row has 2 columns")
