"""File formats: the `Reader` of a format, and helpers that build readers of pages and of records.

A page format holds one document per file (text, HTML, PDF); a record format holds many, each with an id (JSON Lines, CSV).
Other packages add formats with an entry point in the group `trilens.readers` that resolves to a `Reader`:

    READER = page_reader([".pdf"], "PDF", lambda file: PageContent("", extract_text(file.stream)))
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePath
from typing import IO, Any

from trilens.errors import BadInput, Unreadable
from trilens.read.decode import EMPTY, Place, decode_any_text
from trilens.read.records import AUTOMATIC, ID_FIELDS, Fields, Record, to_document
from trilens.text.document import Document
from trilens.text.files import COMPRESSIONS


@dataclass(slots=True)
class InputFile:
    """An open file as a reader receives it.

    `stream` is decompressed. `where` is the path for messages. `name` is the path within the source and the document id in
    page formats. Readers of record formats set `line` before they yield, so that a duplicate id is reported with its line.
    """

    stream: IO[bytes]
    where: str
    name: str
    fields: Fields = AUTOMATIC
    line: int = 0
    by_content: bool = False
    """Whether the id of the last document was made of its content."""

    @property
    def place(self) -> Place:
        """The place of the last document."""
        return Place(self.where, self.line)

    def text(self) -> str:
        """The whole file, decoded in whatever encoding it has, with all line ends as newlines."""
        return decode_any_text(self.stream.read(), self.where)


@dataclass(frozen=True, slots=True)
class Reader:
    """A file format: suffixes, a short name such as "HTML", and the function that yields the documents of a file.

    `read` raises `BadInput` where the rest of the file is unusable. It yields `BadInput` for a bad record that it can skip.
    `records` yields the raw records, for callers that do not need documents; None in page formats.
    """

    suffixes: tuple[str, ...]
    description: str
    read: Callable[[InputFile], Iterator[Document | BadInput]]
    compressible: bool = False
    """Whether files with a second suffix .gz, .xz or .bz2 are read too."""
    records: Callable[[InputFile], Iterator[Record | BadInput]] | None = None

    def __post_init__(self) -> None:
        valid = isinstance(self.suffixes, tuple) and self.suffixes and all(map(_is_suffix, self.suffixes))
        if not valid:
            raise BadInput(f"the suffixes of a reader are {self.suffixes!r}; expected a tuple such as ('.pdf',), in lower case")


@dataclass(frozen=True, slots=True)
class PageContent:
    """The title, text and metadata of a page."""

    title: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)


def page_reader(suffixes: Sequence[str], description: str, parse: Callable[[InputFile], PageContent]) -> Reader:
    """A reader of one document per file. Its id is the file's name; the path is added to the metadata."""
    return Reader(tuple(suffixes), description, partial(_read_page, parse))


def record_reader(
    suffixes: Sequence[str], description: str, parse: Callable[[InputFile], Iterator[Record | BadInput]]
) -> Reader:
    """A reader of records; the `Fields` of the input file select id, text and title."""
    return Reader(tuple(suffixes), description, partial(_read_records, parse), compressible=True, records=parse)


def _is_suffix(suffix: object) -> bool:
    if not isinstance(suffix, str) or suffix != suffix.lower() or suffix in COMPRESSIONS:
        return False
    return suffix.startswith(".") and PurePath(f"name{suffix}").suffix == suffix


def _read_page(parse: Callable[[InputFile], PageContent], file: InputFile) -> Iterator[Document]:
    page = parse(file)
    if not (page.text.strip() or page.title):
        raise Unreadable(f"{file.where}: the file holds no text; expected some: leave it out", EMPTY)
    try:
        yield Document(file.name, page.text, page.title, {**page.metadata, "path": file.where})
    except BadInput as error:
        raise BadInput(f"{file.where}: {error}") from error


def _read_records(parse: Callable[[InputFile], Iterator[Record | BadInput]], file: InputFile) -> Iterator[Document | BadInput]:
    empty, titled = True, False
    for record in parse(file):
        empty = False
        if isinstance(record, BadInput):
            yield record
            continue
        place, value = record
        file.line = place.line
        file.by_content = file.fields.id is None and isinstance(value, dict) and not any(map(value.__contains__, ID_FIELDS))
        titled = titled or (isinstance(value, dict) and file.fields.title in value)
        try:
            document = to_document(record, file.fields, file.name)
        except BadInput as error:
            yield error
        else:
            yield document
    if empty:
        message = f"{file.where} holds no record; expected one or more: check how it was made, or leave it out"
        raise Unreadable(message, EMPTY)
    if file.fields.title is not None and not titled:
        raise BadInput(f"{file.where}: no record has the title field {file.fields.title!r}; choose it with --title-field NAME")
