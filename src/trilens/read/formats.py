"""File formats: the `Reader` of a format, and helpers that build readers of pages, of parts and of records.

A page format holds one document per file (text, HTML); a format of parts holds one per part of the file (PDF, source code);
a record format holds many, each with an id (JSON Lines, CSV). Other packages add formats with an entry point in the group
`trilens.readers` that resolves to a `Reader`:

    READER = page_reader([".srt"], "subtitles", lambda file: PageContent("", without_times(file.text())))
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePath
from typing import IO, Any

from trilens.errors import BadInput, Unreadable
from trilens.read.decode import EMPTY, Place, decode_any_text
from trilens.read.isolated.parser_process import ParserProcess
from trilens.read.limits import LIMITS, MIB
from trilens.read.records import AUTOMATIC, ID_FIELDS, Fields, Record, to_document
from trilens.text.document import Document
from trilens.text.files import COMPRESSIONS


@dataclass(slots=True)
class InputFile:
    """An open file as a reader receives it.

    `stream` is decompressed. `where` is the path for messages. `name` is the path within the source and the document id in
    page formats. Readers of record formats set `line` before they yield, so that a duplicate id is reported with its line.
    `parser` is the child process of this run for formats that need one; without it, each file starts its own.
    """

    stream: IO[bytes]
    where: str
    name: str
    fields: Fields = AUTOMATIC
    line: int = 0
    by_content: bool = False
    """Whether the id of the last document was made of its content."""
    parser: ParserProcess | None = None

    @property
    def place(self) -> Place:
        """The place of the last document."""
        return Place(self.where, self.line)

    def text(self) -> str:
        """The whole file, decoded in whatever encoding it has, with all line ends as newlines."""
        raw = self.stream.read(LIMITS.text_bytes + 1)
        if len(raw) > LIMITS.text_bytes:
            raise BadInput(f"{self.where} has more than {LIMITS.text_bytes // MIB:,} MiB of text; split it, or leave it out")
        return decode_any_text(raw, self.where)


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
    """Whether files with a second suffix .gz, .xz, .bz2 or .zst are read too."""
    records: Callable[[InputFile], Iterator[Record | BadInput]] | None = None

    def __post_init__(self) -> None:
        valid = isinstance(self.suffixes, tuple) and self.suffixes and all(map(_is_suffix, self.suffixes))
        if not valid:
            raise BadInput(f"the suffixes of a reader are {self.suffixes!r}; expected a tuple such as ('.pdf',), in lower case")


@dataclass(frozen=True, slots=True)
class PageContent:
    """The title, text and metadata of a page, or of the part of a file that `part` names."""

    title: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    part: str = ""


def page_reader(
    suffixes: Sequence[str], description: str, parse: Callable[[InputFile], PageContent], compressible: bool = False
) -> Reader:
    """A reader of one document per file. Its id is the file's name; the path is added to the metadata."""
    return Reader(tuple(suffixes), description, partial(_read_page, parse), compressible)


def parts_reader(
    suffixes: Sequence[str],
    description: str,
    parse: Callable[[InputFile], Iterator[PageContent]],
    compressible: bool = False,
) -> Reader:
    """A reader of one document per part. Its id is `NAME#PART`, or the file's name for the part without a name.

    Parts without text are left out. If a name is repeated, `~2`, `~3` … are appended.
    """
    return Reader(tuple(suffixes), description, partial(_read_parts, parse), compressible)


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
        raise _without_text(file)
    try:
        yield Document(file.name, page.text, page.title, {**page.metadata, "path": file.where})
    except BadInput as error:
        raise BadInput(f"{file.where}: {error}") from error


def _read_parts(parse: Callable[[InputFile], Iterator[PageContent]], file: InputFile) -> Iterator[Document | BadInput]:
    empty, repeated = True, Counter[str]()
    for content in parse(file):
        if not content.text.strip():
            continue
        empty = False
        doc_id = f"{file.name}#{content.part}" if content.part else file.name
        repeated[doc_id] += 1
        if repeated[doc_id] > 1:
            doc_id += f"~{repeated[doc_id]}"
        try:
            document = Document(doc_id, content.text, content.title, {**content.metadata, "path": file.where})
        except BadInput as error:
            yield BadInput(f"{file.where}: {error}")
        else:
            yield document
    if empty:
        raise _without_text(file)


def _without_text(file: InputFile) -> Unreadable:
    return Unreadable(f"{file.where}: the file holds no text; expected some: leave it out", EMPTY)


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
