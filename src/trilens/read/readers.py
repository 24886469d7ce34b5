"""Read documents from files, folders and standard input as a stream, checking records and ids on the way."""

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from trilens.errors import BadInput
from trilens.read.decode import Place, open_bytes
from trilens.read.duplicates import SeenIds
from trilens.read.formats import InputFile, Reader
from trilens.read.isolated.parser_process import ParserProcess
from trilens.read.reader_table import JSONL, reader_table
from trilens.read.records import AUTOMATIC, Fields
from trilens.read.sources import SourceFile, find_files
from trilens.text.document import Document
from trilens.text.files import SPOOLED, shown

__all__ = ["Fields", "OnBad", "Survey", "read", "spool_stdin", "survey"]

STANDARD_INPUT = "-"

OnBad = Callable[[BadInput], None]
"""Receives each error; reading continues with the next record."""

Item = tuple[Place, Document] | BadInput
"""Errors are passed as values, because a generator that raises cannot continue."""


@dataclass(frozen=True, slots=True)
class Survey:
    """The number of documents, and of characters in their titles and texts."""

    documents: int
    characters: int


def read(sources: Sequence[str | Path], fields: Fields = AUTOMATIC, on_bad: OnBad | None = None) -> Iterator[Document]:
    """Yield the documents of all sources in order; a repeated id is an error. Without `on_bad` the first error is raised."""
    if isinstance(sources, str | Path) or not sources:
        raise BadInput(f"the sources are {sources!r}; expected a list of one or more files, folders or '-'")
    missing = [source for source in sources if str(source) != STANDARD_INPUT and not Path(source).exists()]
    if missing and on_bad is None:
        # Fail before reading: the sources before the missing one may take hours.
        raise BadInput(f"{shown(Path(missing[0]))} does not exist; expected a file or a folder: check the path")
    return _report(_unique(_items(sources, fields)), on_bad)


def survey(sources: Sequence[str | Path], fields: Fields = AUTOMATIC, on_bad: OnBad | None = None) -> Survey:
    """Validate and count all documents without keeping them, so that indexing starts only with good input."""
    documents = characters = 0
    for document in read(sources, fields, on_bad):
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


def _report(items: Iterator[Item], on_bad: OnBad | None) -> Iterator[Document]:
    for item in items:
        if not isinstance(item, BadInput):
            yield item[1]
        elif on_bad is None:
            raise item
        else:
            on_bad(item)


def _unique(items: Iterator[Item]) -> Iterator[Item]:
    """Replace documents whose id was read before by errors."""
    with SeenIds() as seen_ids:
        for item in items:
            if isinstance(item, BadInput):
                yield item
                continue
            try:
                seen_ids.add(item[1].doc_id, item[0])
            except BadInput as error:
                yield error
            else:
                yield item


def _items(sources: Sequence[str | Path], fields: Fields) -> Iterator[Item]:
    yield from map(BadInput, reader_table().problems)
    with ParserProcess() as parser:
        for source in map(str, sources):
            if source == STANDARD_INPUT:
                yield from _documents(JSONL, InputFile(sys.stdin.buffer, "standard input", source, fields))
            else:
                yield from _source(Path(source), fields, parser)


def _source(source: Path, fields: Fields, parser: ParserProcess) -> Iterator[Item]:
    try:
        for file in find_files(source):
            yield from _file(file, fields, parser)
    except BadInput as error:
        yield error


def _file(file: SourceFile, fields: Fields, parser: ParserProcess) -> Iterator[Item]:
    try:
        with open_bytes(file.path) as stream:
            yield from _documents(file.reader, InputFile(stream, shown(file.path), file.name, fields, parser=parser))
    except BadInput as error:
        yield error


def _documents(reader: Reader, file: InputFile) -> Iterator[Item]:
    """An error that ends one file does not end the others."""
    try:
        for document in reader.read(file):
            yield document if isinstance(document, BadInput) else (file.place, document)
    except BadInput as error:
        yield error
