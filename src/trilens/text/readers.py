"""From sources to documents: any mix of files, folders and standard input, read as a stream and checked on the way."""

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from trilens.errors import BadInput
from trilens.text.decode import Place, open_bytes, read_text
from trilens.text.document import Document
from trilens.text.duplicates import SeenIds
from trilens.text.files import SPOOLED, SourceFile, find_files, shown
from trilens.text.html import read_html
from trilens.text.jsonlines import read_json, read_jsonl
from trilens.text.markdown import read_markdown
from trilens.text.records import AUTOMATIC, Fields, Record, to_document
from trilens.text.tables import read_table

__all__ = ["Fields", "OnBad", "Survey", "read", "spool_stdin", "survey"]

STANDARD_INPUT = "-"

OnBad = Callable[[BadInput], None]
"""Called with each error; reading goes on with the next record."""

Item = tuple[Place, Document] | BadInput
"""Errors travel as values: a generator that raises cannot go on."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What the sources hold: how many documents, and how many characters in their titles and texts."""

    documents: int
    characters: int


def read(sources: Sequence[str | Path], fields: Fields = AUTOMATIC, on_bad: OnBad | None = None) -> Iterator[Document]:
    """Every document of the sources in order, each id once. Without `on_bad` the first error is raised."""
    if isinstance(sources, str | Path) or not sources:
        raise BadInput(f"the sources are {sources!r}; expected a list of one or more files, folders or '-'")
    missing = [source for source in sources if str(source) != STANDARD_INPUT and not Path(source).exists()]
    if missing and on_bad is None:
        # At once, and not after the hours that the sources before it may take.
        raise BadInput(f"{shown(Path(missing[0]))} does not exist; expected a file or a folder: check the path")
    return _report(_once(item for source in sources for item in _source(str(source), fields)), on_bad)


def survey(sources: Sequence[str | Path], fields: Fields = AUTOMATIC, on_bad: OnBad | None = None) -> Survey:
    """Read everything once and keep nothing, so that work starts only when the whole input is known to be good."""
    documents = characters = 0
    for document in read(sources, fields, on_bad):
        documents += 1
        characters += len(document.title) + len(document.text)
    return Survey(documents, characters)


@contextmanager
def spool_stdin() -> Iterator[Path]:
    """Standard input as a file, so that it can be read twice; the file is removed at the end of the block."""
    with tempfile.TemporaryDirectory(prefix="trilens-") as folder:
        path = Path(folder) / SPOOLED
        try:
            with path.open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
        except OSError as error:
            raise BadInput(
                f"standard input cannot be copied to {folder}: {error.strerror}; make room there, or set TMPDIR"
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


def _once(items: Iterator[Item]) -> Iterator[Item]:
    with SeenIds() as seen:
        for item in items:
            if isinstance(item, BadInput):
                yield item
                continue
            try:
                seen.add(item[1].doc_id, item[0])
            except BadInput as error:
                yield error
            else:
                yield item


def _source(source: str, fields: Fields) -> Iterator[Item]:
    if source == STANDARD_INPUT:
        yield from _file_errors(_records(sys.stdin.buffer, "standard input", "jsonl", fields))
        return
    try:
        for file in find_files(Path(source)):
            yield from _file_errors(_file(file, fields))
    except BadInput as error:
        yield error


def _file_errors(items: Iterator[Item]) -> Iterator[Item]:
    """An error that ends one file does not end the others."""
    try:
        yield from items
    except BadInput as error:
        yield error


def _file(file: SourceFile, fields: Fields) -> Iterator[Item]:
    if file.format in ("txt", "md", "html"):
        yield Place(shown(file.path)), _page(file)
        return
    with open_bytes(file.path) as stream:
        yield from _records(stream, shown(file.path), file.format, fields)


def _records(stream: IO[bytes], where: str, kind: str, fields: Fields) -> Iterator[Item]:
    empty, titled = True, False
    for record in _raw_records(stream, where, kind, fields):
        empty = False
        if isinstance(record, BadInput):
            yield record
            continue
        titled = titled or (isinstance(record[1], dict) and fields.title in record[1])
        try:
            yield record[0], to_document(record, fields)
        except BadInput as error:
            yield error
    if empty:
        raise BadInput(f"{where} holds no record; expected one or more: check how it was made, or leave it out")
    if fields.title is not None and not titled:
        raise BadInput(f"{where}: no record has the title field {fields.title!r}; choose it with --title-field NAME")


def _raw_records(stream: IO[bytes], where: str, kind: str, fields: Fields) -> Iterator[Record | BadInput]:
    if kind == "jsonl":
        return read_jsonl(stream, where)
    if kind == "json":
        return read_json(stream, where)
    return read_table(stream, where, "\t" if kind == "tsv" else ",", fields)


def _page(file: SourceFile) -> Document:
    """One file that is one document; its id is its path within the source."""
    source = read_text(file.path)
    title, text, metadata = "", source, dict[str, Any]()
    try:
        if file.format == "md":
            title, text, metadata = read_markdown(source)
        elif file.format == "html":
            title, text = read_html(source)
        if not (text.strip() or title):
            raise BadInput("the file holds no text; expected some: leave it out")
        # The path within the file system is for people: bytes that are not UTF-8 are shown, not kept.
        return Document(file.name, text, title, {**metadata, "path": shown(file.path)})
    except BadInput as error:
        raise BadInput(f"{shown(file.path)}: {error}") from error
