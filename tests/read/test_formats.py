import io

import pytest

from trilens.errors import BadInput
from trilens.read.decode import Place
from trilens.read.formats import InputFile, PageContent, Reader, page_reader, record_reader
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
