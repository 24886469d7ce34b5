import gzip
import io
import json
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.development_data import DATA, needs_data
from trilens.errors import BadInput
from trilens.read.readers import Survey, read, spool_stdin, survey
from trilens.read.records import AUTOMATIC, Fields
from trilens.read.skipped import Skipped
from trilens.text.document import Document

RECORDS = [{"id": "1", "text": "one", "year": 1999}, {"id": "2", "text": "two", "title": "Two"}]
DOCUMENTS = [Document("1", "one", "", {"year": 1999}), Document("2", "two", "Two")]


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def jsonl(path: Path, *records: object) -> Path:
    return write(path, "".join(json.dumps(record) + "\n" for record in records))


def kept(*sources: str | Path, fields: Fields = AUTOMATIC) -> tuple[list[str], list[str]]:
    """The ids that are read and the errors that are reported, when reading goes on after errors."""
    errors: list[Skipped] = []
    ids = [document.doc_id for document in read(sources, fields, errors.append)]
    return ids, [str(error) for error in errors]


def fails(*sources: str | Path, fields: Fields = AUTOMATIC) -> str:
    """The error that both a reader and a survey raise."""
    with pytest.raises(BadInput) as caught:
        list(read(sources, fields))
    with pytest.raises(BadInput) as again:
        survey(sources, fields)
    assert str(caught.value) == str(again.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", "\n".join(map(json.dumps, RECORDS))),
        ("a.ndjson", "\ufeff" + "\n\n".join(map(json.dumps, RECORDS)) + "\n"),
        ("a.json", json.dumps(RECORDS, indent=2)),
        ("a.csv", "id,text,title,year\n1,one,,1999\n2,two,Two,\n"),
        ("a.tsv", "id\ttext\ttitle\tyear\n1\tone\t\t1999\n2\ttwo\tTwo\t\n"),
        ("a.jsonl.gz", gzip.compress("\n".join(map(json.dumps, RECORDS)).encode(), mtime=0)),
    ],
)
def test_every_records_format_gives_the_same_documents(tmp_path: Path, name: str, content: str | bytes) -> None:
    assert list(read([write(tmp_path / name, content)])) == DOCUMENTS


def test_pages_are_documents_named_by_their_path(tmp_path: Path) -> None:
    write(tmp_path / "b" / "page.html", "<title>T</title><p>html text</p>")
    write(tmp_path / "a.txt", "plain\r\ntext\n")
    write(tmp_path / "b" / "note.md", "---\nyear: 2020\n---\n# Head\n\nmd *text*\n")
    assert list(read([tmp_path])) == [
        Document("a.txt", "plain\ntext\n", "", {"path": str(tmp_path / "a.txt")}),
        Document("b/note.md", "Head\n\nmd text", "Head", {"year": 2020, "path": str(tmp_path / "b" / "note.md")}),
        Document("b/page.html", "html text", "T", {"path": str(tmp_path / "b" / "page.html")}),
    ]
    assert [document.doc_id for document in read([str(tmp_path / "b" / "note.md")])] == ["note.md"]


def test_sources_are_read_in_the_order_given(tmp_path: Path) -> None:
    second = jsonl(tmp_path / "b.jsonl", RECORDS[1])
    first = jsonl(tmp_path / "a.jsonl", RECORDS[0])
    assert [document.doc_id for document in read([second, str(first)])] == ["2", "1"]


def test_a_survey_counts_documents_and_characters(tmp_path: Path) -> None:
    assert survey([jsonl(tmp_path / "a.jsonl", *RECORDS)]) == Survey(documents=2, characters=3 + 3 + 3)


def test_an_empty_text_in_a_record_is_a_document(tmp_path: Path) -> None:
    assert list(read([jsonl(tmp_path / "a.jsonl", {"id": "1", "text": ""})])) == [Document("1", "")]


def test_duplicates_across_sources_name_both_places(tmp_path: Path) -> None:
    first = jsonl(tmp_path / "a.jsonl", *RECORDS)
    second = jsonl(tmp_path / "b.jsonl", {"id": 2, "text": "number"}, {"id": "3", "text": "x"})
    assert f"{second}:1: the id '2' was read before at {first}:2;" in fails(first, second)
    ids, errors = kept(first, second)
    assert (ids, len(errors)) == (["1", "2", "3"], 1)
    assert "the id '1' was read before" in fails(first, first)


def test_pages_of_two_folders_with_one_name_are_duplicates(tmp_path: Path) -> None:
    write(tmp_path / "a" / "x.txt", "one")
    write(tmp_path / "b" / "x.txt", "two")
    message = fails(tmp_path / "a", tmp_path / "b")
    assert f"{tmp_path / 'b' / 'x.txt'}: the id 'x.txt' was read before at {tmp_path / 'a' / 'x.txt'};" in message


def test_reading_goes_on_after_each_kind_of_error(tmp_path: Path) -> None:
    good = {"id": "ok", "text": "t"}
    write(tmp_path / "1.jsonl", '{"id": "a", "text": "t"}\n{"id"\n[]\n{"id": "t"}\n\xff\n{"id": "b", "text": "t"}\n')
    write(tmp_path / "2.jsonl", b'{"id": "c", "text": "t"}\n\xff\n{"id": "d", "text": "\\ud800"}\n')
    write(tmp_path / "3.csv", "id,text\ne,t\nf\ng,t\n")
    write(tmp_path / "4.csv", "1,2\n3,4\n")
    write(tmp_path / "5.txt", b"\0")
    write(tmp_path / "6.json", '[{"id": "h", "text": "t"}, 5, {"id": "i", "text": "t"} oops')
    write(tmp_path / "7.jsonl", " \n")
    write(tmp_path / "8.txt", " \n")
    write(tmp_path / "9.jsonl.gz", b"not gzip")
    jsonl(tmp_path / "last.jsonl", good)
    ids, errors = kept(tmp_path / "gone.txt", tmp_path, tmp_path / "a.png")
    assert ids == ["a", "b", "c", "e", "g", "h", "i", "ok"]
    shortened = [error.replace(f"{tmp_path}/", "")[:32] for error in errors]
    assert shortened == [
        "gone.txt does not exist; expecte",
        "a.png does not exist; expected a",
        "1.jsonl:2: broken JSON (Expectin",
        "1.jsonl:3: the record is an arra",
        "1.jsonl:4: no text field; expect",
        "1.jsonl:5: broken JSON (Expectin",
        "2.jsonl:2 is not UTF-8: byte 0xf",
        "2.jsonl:3: text of document 'd' ",
        "3.csv:3: the row has 1 columns; ",
        "4.csv:1: no text field; expected",
        "5.txt is binary: NUL byte at off",
        "6.json:1: the record is the numb",
        "6.json:1: broken JSON (no comma ",
        "7.jsonl holds no record; expecte",
        "8.txt: the file holds no text; e",
        "9.jsonl.gz cannot be read: Not a",
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", "", "a.jsonl holds no record"),
        ("a.json", "[]", "a.json holds no record"),
        ("a.csv", "id,text\n", "a.csv holds no record"),
        ("a.txt", "\n \n", "a.txt: the file holds no text"),
        ("a.html", "<p> </p><script>x</script>", "a.html: the file holds no text"),
        ("a.md", "---\nyear: 1\n---\n", "a.md: the file holds no text"),
        (
            "a.jsonl",
            '{"id": 1, "text": "t"}\n{"id": 2, "text": "t", "score": NaN}',
            "a.jsonl:2: metadata of document '2'",
        ),
    ],
)
def test_input_without_use_is_an_error(tmp_path: Path, name: str, content: str, message: str) -> None:
    assert message in fails(write(tmp_path / name, content))


def test_a_missing_source_fails_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="gone does not exist"):
        read([jsonl(tmp_path / "a.jsonl", *RECORDS), tmp_path / "gone"])


def test_one_string_is_not_a_list_of_sources() -> None:
    with pytest.raises(BadInput, match="expected a list"):
        read("docs.jsonl")
    with pytest.raises(BadInput, match="expected a list"):
        read([])


def test_chosen_fields_are_used(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", {"key": 1, "abstract": "t", "name": "n"}, {"key": 2, "abstract": "u"})
    assert list(read([path], Fields("key", "abstract", "name"))) == [Document("1", "t", "n"), Document("2", "u")]
    assert "no record has the title field 'nmae'" in fails(path, fields=Fields("key", "abstract", "nmae"))


def test_a_link_to_nothing_in_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.txt").symlink_to(tmp_path / "gone")
    assert "x.txt does not exist" in fails(tmp_path)


def test_a_very_long_line_is_one_document(tmp_path: Path) -> None:
    text = "word " * 1_000_000
    assert survey([jsonl(tmp_path / "a.jsonl", {"id": 1, "text": text})]).characters == len(text)
    assert survey([write(tmp_path / "a.csv", f"id,text\n1,{text}\n")]).characters == len(text)


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv"])
def test_records_are_streamed(tmp_path: Path, name: str) -> None:
    records = [{"id": str(number), "text": "word " * 2000} for number in range(3000)]
    if name == "a.csv":
        write(tmp_path / name, "id,text\n" + "".join(f"{record['id']},{record['text']}\n" for record in records))
    else:
        write(tmp_path / name, json.dumps(records) if name == "a.json" else "\n".join(map(json.dumps, records)))
    size_bytes = (tmp_path / name).stat().st_size
    del records
    tracemalloc.start()
    try:
        count = survey([tmp_path / name]).documents
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 3000
    assert peak_bytes < size_bytes / 4


class Piped:
    """Standard input that holds these bytes."""

    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "stdin", Piped(b'{"id": "1", "text": "one"}\n{"id": "2"}\n'))
    yield


def test_standard_input_is_jsonl(piped: None) -> None:
    ids, errors = kept("-")
    assert ids == ["1"]
    assert errors[0].startswith("standard input:2: no text field")


def test_spooled_input_can_be_read_twice_and_is_removed(piped: None) -> None:
    with spool_stdin() as path:
        assert kept(path) == kept(path)
        assert kept(path)[0] == ["1"]
    assert not path.exists()


@needs_data
@pytest.mark.parametrize(("name", "documents"), [("scifact", 5183), ("cranfield", 1400), ("xquad-r/zh", 1196)])
def test_real_corpora_are_read_whole(name: str, documents: int) -> None:
    assert survey([DATA / name]).documents == documents
