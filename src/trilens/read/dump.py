"""Dumps: all documents of a collection as JSON Lines, without loss.

{"doc_id": …, "text": …, "title": …, "metadata": {…}}   one line per document
{"dumped_documents": N}                                 the last line, without which the dump was cut short
"""

import bz2
import gzip
import json
import lzma
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, Any, cast

from trilens.errors import BadInput
from trilens.read.decode import Place, open_bytes
from trilens.read.jsonlines import read_jsonl
from trilens.read.zstd import open_zstd
from trilens.text.document import Document
from trilens.text.files import shown

COUNT = "dumped_documents"
FIELDS = {"doc_id", "text", "title", "metadata"}


def to_record(document: Document) -> dict[str, Any]:
    """A document as a JSON object."""
    return {
        "doc_id": document.doc_id,
        "text": document.text,
        "title": document.title,
        "metadata": dict(document.metadata),
    }


def write_dump(documents: Iterable[Document], stream: IO[bytes], report: Callable[[float], None]) -> int:
    """Write documents to a stream; returns their number."""
    count = 0
    for document in documents:
        stream.write(_line(to_record(document)))
        report(1)
        count += 1
    stream.write(_line({COUNT: count}))
    return count


@contextmanager
def dump_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that appears at the end of the block, complete and compressed according to its suffix."""
    if path.exists() and not path.is_file():
        raise BadInput(f"{shown(path)} is not a file; expected a file, or none for standard output")
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        with unfinished.open("wb") as file:
            with _compressed(file, path) as stream:
                yield stream
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError as error:
        raise BadInput(f"{shown(path)} cannot be written ({error.strerror}); expected a file in a folder with space") from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def read_dump(path: Path) -> Iterator[Document]:
    """The documents of a dump. Anything but a whole dump is an error, at the latest after the last document."""
    count, expected = 0, None
    with open_bytes(path) as stream:
        for record in read_jsonl(stream, shown(path)):
            if isinstance(record, BadInput):
                raise record
            place, value = record
            if expected is not None:
                raise BadInput(f"{place} comes after the end of the dump; expected one dump: load each in a run of its own")
            if isinstance(value, dict) and set(value) == {COUNT}:
                expected = value[COUNT]
                continue
            yield _document(place, value)
            count += 1
    if expected is None:
        raise BadInput(f"{shown(path)} is cut short after {count:,} documents: the last line is missing; make the dump again")
    if expected != count:
        raise BadInput(f"{shown(path)} has {count:,} documents; expected {expected}: make the dump again")


def _document(place: Place, value: object) -> Document:
    if not isinstance(value, dict) or set(value) != FIELDS:
        raise BadInput(
            f"{place} is not a document of a dump; expected the fields {', '.join(sorted(FIELDS))}: use `trilens index` for "
            "other records"
        )
    try:
        return Document(**value)
    except BadInput as error:
        raise BadInput(f"{place}: {error}") from error


def _compressed(file: IO[bytes], path: Path) -> AbstractContextManager[IO[bytes]]:
    match path.suffix.lower():
        case ".gz":
            return cast(IO[bytes], gzip.GzipFile(filename="", mode="wb", fileobj=file))
        case ".xz":
            return lzma.open(file, "wb")
        case ".bz2":
            return bz2.open(file, "wb")
        case ".zst":
            return open_zstd(path, file, "wb")
    return nullcontext(file)


def _line(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode() + b"\n"
