import csv
import io
from typing import Any

import pytest

from trilens.errors import BadInput
from trilens.read.records import AUTOMATIC, Fields
from trilens.read.tables import read_table


def table(raw: str | bytes, delimiter: str = ",", fields: Fields = AUTOMATIC) -> list[Any]:
    stream = io.BytesIO(raw.encode() if isinstance(raw, str) else raw)
    items = read_table(stream, "f", delimiter, fields)
    return [str(item) if isinstance(item, BadInput) else (item[0].line, item[1]) for item in items]


def test_rows_become_records_with_the_line_they_start_on() -> None:
    found = table('\ufeffid,text,year\r\n1,"two\nlines, ""quoted""",1999\n\n2,b,\n')
    assert found == [
        (2, {"id": "1", "text": 'two\nlines, "quoted"', "year": "1999"}),
        (5, {"id": "2", "text": "b"}),
    ]


def test_tabs_part_the_columns_of_tsv() -> None:
    assert table("id\ttext\n1\ta, b\n", "\t") == [(2, {"id": "1", "text": "a, b"})]


def test_an_empty_text_is_kept_and_a_column_without_a_name_left_out() -> None:
    assert table(",id,text,title\n0,1,,\n") == [(2, {"id": "1", "text": ""})]


def test_bad_rows_do_not_end_the_file() -> None:
    found = table(b'id,text\n1,\xc3\xa9,b\n2\n3,"x"y\n4,caf\xe9\n5,ok\n')
    assert [item.partition(";")[0] for item in found[:4]] == [
        "f:2: the row has 3 columns",
        "f:3: the row has 1 columns",
        "f:4: broken row (',' expected after '\"')",
        "f:5 is not UTF-8: byte 0xe9 at offset 29",
    ]
    assert found[4:] == [(6, {"id": "5", "text": "ok"})]


def test_a_quote_that_never_ends_is_an_error() -> None:
    (message,) = table('id,text\n1,"a\n2,b\n')
    assert message.startswith("f:2: broken row (unexpected end of data)")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ("17,some words\n18,others\n", r"f:1: no text field; .* found '17', 'some words': .*must be a header"),
        ("id,abstract\n1,a\n", r"f:1: no text field; .*--text-field"),
        ("id,text,text\n1,a,b\n", "f:1: the header names the column 'text' twice"),
        ('id,"text\n1,a\n', "f:1: broken row"),
    ],
)
def test_a_bad_header_ends_the_file(raw: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        table(raw)


def test_a_chosen_title_must_be_in_the_header() -> None:
    with pytest.raises(BadInput, match="f:1: the header has no column 'name'"):
        table("id,text\n1,a\n", fields=Fields(title="name"))


def test_no_field_is_too_long() -> None:
    csv.field_size_limit(1000)
    assert table("id,text\n1," + "word " * 100_000) == [(2, {"id": "1", "text": "word " * 100_000})]


def test_an_empty_table_gives_nothing() -> None:
    assert table("") == table("\n\n") == table("id,text\n") == []
