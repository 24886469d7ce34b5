"""Read documents from files, folders and standard input as a stream, checking records and ids on the way."""

import shutil
import sys
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from trilens.errors import BadInput, Unreadable
from trilens.read.decode import READ_ERRORS, Place, open_bytes
from trilens.read.duplicates import SeenIds
from trilens.read.formats import InputFile, Reader
from trilens.read.ignore import ALL_FILES, Selection
from trilens.read.isolated.parser_process import ParserProcess
from trilens.read.reader_table import JSONL, reader_table
from trilens.read.records import AUTOMATIC, Fields
from trilens.read.skipped import MALFORMED, OnSkip, Skipped, raise_errors
from trilens.read.sources import SourceFile, find_files
from trilens.text.document import Document
from trilens.text.files import SPOOLED, shown

__all__ = ["Fields", "Item", "ReadOptions", "Survey", "read", "read_items", "spool_stdin", "survey"]

STANDARD_INPUT = "-"
MOST_BAD = 100  # records at the start of a file in a folder, before the file is given up
IDENTICAL = "identical to another"
FILE = "{file}"


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How sources are read. `id_prefix` is put before every id; {file} in it stands for the file that holds the records.

    `unchanged` returns the ids of the documents of a file that does not have to be read; None for any other.
    """

    fields: Fields = AUTOMATIC
    selection: Selection = ALL_FILES
    id_prefix: str = ""
    unchanged: Callable[[Path, SourceFile], Iterable[str] | None] = lambda source, file: None


DEFAULT = ReadOptions()


class Item(NamedTuple):
    """A document with its place, and the source and file that it comes from. `by_content`: its id is made of its content."""

    place: Place
    document: Document
    source: Path
    file: SourceFile | None
    by_content: bool = False


class Unchanged(NamedTuple):
    """A file that is not read, and the ids of its documents."""

    file: SourceFile
    ids: Iterable[str]


@dataclass(frozen=True, slots=True)
class Survey:
    """The number of documents, and of characters in their titles and texts."""

    documents: int
    characters: int


def read(
    sources: Sequence[str | Path], fields: Fields = AUTOMATIC, on_skip: OnSkip = raise_errors, options: ReadOptions = DEFAULT
) -> Iterator[Document]:
    """Yield the documents of all sources in order; a repeated id is an error. By default the first error is raised.

    `fields` overrides that of the options.
    """
    options = options if fields is AUTOMATIC else replace(options, fields=fields)
    return (item.document for item in read_items(sources, options, on_skip))


def read_items(sources: Sequence[str | Path], options: ReadOptions, on_skip: OnSkip) -> Iterator[Item]:
    """Yield the documents of all sources with what they come from."""
    if isinstance(sources, str | Path) or not sources:
        raise BadInput(f"the sources are {sources!r}; expected a list of one or more files, folders or '-'")
    for source in map(str, sources):
        if source != STANDARD_INPUT and not Path(source).exists():
            # Before anything is read: the sources before the missing one may take hours.
            on_skip(Skipped(BadInput(f"{shown(Path(source))} does not exist; expected a file or a folder: check the path")))
    present = [source for source in map(str, sources) if source == STANDARD_INPUT or Path(source).exists()]
    return _documents(_unique(_read_all(present, options)), on_skip)


def survey(
    sources: Sequence[str | Path], fields: Fields = AUTOMATIC, on_skip: OnSkip = raise_errors, options: ReadOptions = DEFAULT
) -> Survey:
    """Validate and count all documents without keeping them."""
    documents = characters = 0
    for document in read(sources, fields, on_skip, options):
        documents += 1
        characters += len(document.title) + len(document.text)
    return Survey(documents, characters)


@contextmanager
def spool_stdin() -> Iterator[Path]:
    """Copy standard input to a temporary file, so that it can be read twice."""
    with tempfile.TemporaryDirectory(prefix="trilens-") as folder:
        path = Path(folder) / SPOOLED
        try:
            with path.open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
        except OSError as error:
            raise BadInput(
                f"standard input cannot be copied to {folder}: {error.strerror}; free disk space there, or set TMPDIR"
            ) from error
        yield path


# Errors are passed on as values, because a generator that raises cannot continue.


def _documents(items: Generator[Item | Skipped], on_skip: OnSkip) -> Iterator[Item]:
    with closing(items):  # its child process, too, ends here if `on_skip` raises, and not with the interpreter
        for item in items:
            if isinstance(item, Skipped):
                on_skip(item)
            else:
                yield item


def _unique(items: Iterator[Item | Unchanged | Skipped]) -> Generator[Item | Skipped]:
    """Replace documents whose id was read before by errors."""
    with SeenIds() as seen_ids:
        for item in items:
            if isinstance(item, Unchanged):
                for doc_id in item.ids:
                    seen_ids.add(doc_id, Place(shown(item.file.path)))
            elif isinstance(item, Skipped):
                yield item
            else:
                try:
                    seen_ids.add(item.document.doc_id, item.place)
                except Unreadable as error:
                    yield _repeated(item, error)
                else:
                    yield item


def _repeated(item: Item, error: Unreadable) -> Skipped:
    """A document whose id was read before. Records without ids that have the same content are one document."""
    if item.by_content:
        error = Unreadable(f"{item.place}: the record is {IDENTICAL}; expected different ones, or ids", IDENTICAL)
    name, in_folder = (item.file.name, item.file.in_folder) if item.file else ("", False)
    return Skipped(error, "record", name, in_folder, is_error=not item.by_content)


def _read_all(sources: Sequence[str], options: ReadOptions) -> Iterator[Item | Unchanged | Skipped]:
    for problem in reader_table().problems:
        yield Skipped(BadInput(problem))
    with ParserProcess() as parser:
        for source in sources:
            if source == STANDARD_INPUT:
                file = InputFile(sys.stdin.buffer, "standard input", source, options.fields)
                yield from _of_file(JSONL, file, Path(source), None, options)
            else:
                yield from _of_source(Path(source), options, parser)


def _of_source(source: Path, options: ReadOptions, parser: ParserProcess) -> Iterator[Item | Unchanged | Skipped]:
    try:
        for file in find_files(source, options.selection):
            if isinstance(file, Skipped):
                yield file
            elif (ids := options.unchanged(source, file)) is not None:
                yield Unchanged(file, ids)
            else:
                yield from _of_path(file, source, options, parser)
    except BadInput as error:
        yield Skipped(error)


def _of_path(file: SourceFile, source: Path, options: ReadOptions, parser: ParserProcess) -> Iterator[Item | Skipped]:
    try:
        with open_bytes(file.path) as stream:
            opened = InputFile(stream, shown(file.path), file.name, options.fields, parser=parser)
            items = _of_file(file.reader, opened, source, file, options)
            yield from _of_documents(items, file) if file.in_folder else items
    except BadInput as error:
        yield Skipped(error, "file", file.name, file.in_folder)


def _of_file(
    reader: Reader, file: InputFile, source: Path, found: SourceFile | None, options: ReadOptions
) -> Iterator[Item | Skipped]:
    """An error that ends one file does not end the others."""
    prefix = options.id_prefix.replace(FILE, file.name) if reader.records or FILE not in options.id_prefix else ""
    in_folder = found is not None and found.in_folder
    try:
        for document in _records(reader, file):
            if isinstance(document, BadInput):
                yield Skipped(document, "record", file.name, in_folder)
            else:
                named = replace(document, doc_id=prefix + document.doc_id) if prefix else document
                yield Item(file.place, named, source, found, file.by_content)
    except BadInput as error:
        yield Skipped(error, "file", file.name, in_folder)


def _records(reader: Reader, file: InputFile) -> Iterator[Document | BadInput]:
    """What a reader yields. Whatever it raises for a file that was not made for it becomes `Unreadable`."""
    try:
        yield from reader.read(file)
    except BadInput:
        raise
    except READ_ERRORS:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        message = f"{file.where} cannot be read as {reader.description} ({type(error).__name__}: {reason}); leave it out"
        raise Unreadable(message, MALFORMED) from error


def _of_documents(items: Iterator[Item | Skipped], file: SourceFile) -> Iterator[Item | Skipped]:
    """The items of a file in a folder; one that begins with bad records only holds other data, and is skipped as a whole."""
    bad: list[Skipped] = []
    for item in islice(items, MOST_BAD):
        if isinstance(item, Skipped) and item.unit == "record":
            bad.append(item)
            continue
        yield from bad if isinstance(item, Item) else ()
        yield item
        bad = []
        break
    if bad:
        yield Skipped(bad[0].error, "file", file.name, in_folder=True)
    else:
        yield from items
