import io

import pytest

from trilens.errors import BadInput
from trilens.read import formats
from trilens.read.decode import Place
from trilens.read.formats import InputFile, PageContent, Reader, page_reader, parts_reader, record_reader
from trilens.read.limits import ParsingLimits
from trilens.read.records import Fields
from trilens.text.document import Document

RECORDS = record_reader(
    [".numbered"], "numbered", lambda file: ((Place(file.where, n), {"id": n, "text": "t"}) for n in file.stream.read())
)


def opened(content: bytes, fields: Fields | None = None) -> InputFile:
    return InputFile(io.BytesIO(content), "/path/a.x", "a.x", fields or Fields())


def test_a_page_is_named_by_its_file_and_keeps_its_path() -> None:
    reader = page_reader([".x"], "x", lambda file: PageContent("Title", file.text(), {"year": 1}))
    assert list(reader.read(opened(b"\xef\xbb\xbfone\r\ntwo"))) == [
        Document("a.x", "one\ntwo", "Title", {"year": 1, "path": "/path/a.x"})
    ]
    assert (reader.compressible, reader.records) == (False, None)


def test_a_page_without_text_is_an_error_unless_it_has_a_title() -> None:
    with pytest.raises(BadInput, match=r"^/path/a.x: the file holds no text"):
        list(page_reader([".x"], "x", lambda file: PageContent("", " \n")).read(opened(b"")))
    assert len(list(page_reader([".x"], "x", lambda file: PageContent("T", "")).read(opened(b"")))) == 1


def test_errors_of_a_page_name_the_file() -> None:
    with pytest.raises(BadInput, match=r"^/path/a.x: title of document 'a.x' holds the lone surrogate"):
        list(page_reader([".x"], "x", lambda file: PageContent("\ud800", "t")).read(opened(b"")))
    with pytest.raises(BadInput, match=r"^/path/a.x is binary"):
        opened(b"a\0").text()


def test_each_part_with_text_is_a_document_with_an_id_of_its_own() -> None:
    parts = [PageContent("T", name, {"page": 1}, name) for name in ("", "a", " ", "b", "a", "a")]
    parts.insert(2, PageContent("only a title", "", {}, "c"))
    assert list(parts_reader([".x"], "x", lambda file: iter(parts[1:])).read(opened(b""))) == [
        Document(f"a.x#{name}", name.partition("~")[0], "T", {"page": 1, "path": "/path/a.x"})
        for name in ("a", "b", "a~2", "a~3")
    ]
    with pytest.raises(BadInput, match=r"^/path/a.x: the file holds no text"):
        list(parts_reader([".x"], "x", lambda file: iter(parts[:1])).read(opened(b"")))


def test_a_part_with_an_impossible_id_does_not_end_the_file() -> None:
    parts = [PageContent("", "t", {}, "x" * 2000), PageContent("", "u")]
    error, document = parts_reader([".x"], "x", lambda file: iter(parts)).read(opened(b""))
    assert isinstance(error, BadInput) and str(error).startswith("/path/a.x: doc_id 'a.x#xxx")
    assert document == Document("a.x", "u", "", {"path": "/path/a.x"})


def test_a_text_above_the_limit_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "LIMITS", ParsingLimits(text_bytes=10))
    assert opened(b"0123456789").text() == "0123456789"
    with pytest.raises(BadInput, match=r"^/path/a.x has more than 0 MiB of text; split it"):
        opened(b"0123456789A").text()


def test_records_advance_the_line_of_their_file() -> None:
    file = opened(bytes([3, 7]))
    assert [(document, file.place) for document in RECORDS.read(file)] == [
        (Document("3", "t"), Place("/path/a.x", 3)),
        (Document("7", "t"), Place("/path/a.x", 7)),
    ]
    assert RECORDS.compressible
    assert RECORDS.records is not None
    assert list(RECORDS.records(opened(b"\1"))) == [(Place("/path/a.x", 1), {"id": 1, "text": "t"})]


def test_a_bad_record_is_yielded_and_an_empty_file_raises() -> None:
    (error,) = RECORDS.read(opened(b"\1", Fields(text="body")))
    assert isinstance(error, BadInput) and str(error).startswith("/path/a.x:1: no text field")
    with pytest.raises(BadInput, match=r"^/path/a.x holds no record"):
        list(RECORDS.read(opened(b"")))
    with pytest.raises(BadInput, match="no record has the title field 'name'"):
        list(RECORDS.read(opened(b"\1", Fields(title="name"))))


@pytest.mark.parametrize("suffixes", [(), ("pdf",), (".PDF",), (".tar.pdf",), (".",), (".gz",), (1,), ".pdf", [".pdf"]])
def test_suffixes_that_would_never_match_are_refused(suffixes: tuple[str, ...]) -> None:
    with pytest.raises(BadInput, match=r"expected a tuple such as \('.pdf',\), in lower case"):
        Reader(suffixes, "PDF", lambda file: iter(()))
