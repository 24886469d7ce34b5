"""Build readers of formats that a child process parses."""

import io
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from trilens.errors import BadInput, Unreadable
from trilens.read.decode import EMPTY, Place
from trilens.read.formats import InputFile, PageContent, Reader, parts_reader, record_reader
from trilens.read.isolated.parser_process import ParserProcess
from trilens.read.limits import LIMITS, MIB
from trilens.read.records import Record

CHUNK_BYTES = MIB


def isolated_parts(suffixes: Sequence[str], description: str, format: str, compressible: bool = False) -> Reader:
    """A reader of the parts of a file; the function `parse` of the module `format` of this package yields them."""
    return parts_reader(suffixes, description, partial(_contents, format), compressible)


def isolated_records(suffixes: Sequence[str], description: str, format: str) -> Reader:
    """A reader of records; the function `parse` of the module `format` of this package yields their rows and values."""
    return record_reader(suffixes, description, partial(_records, format))


def isolated_page(format: str, text: str, file: InputFile) -> PageContent:
    """What the function `parse` of the module `format` of this package makes of the text of a file."""
    with ExitStack() as stack:
        path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trilens-"))) / "decoded"
        path.write_text(text, "utf-8")
        parser = file.parser or stack.enter_context(ParserProcess())
        (value,) = parser.parse(format, path, file.where)
        return PageContent(**value)


def _contents(format: str, file: InputFile) -> Iterator[PageContent]:
    for value in _values(format, file):
        yield PageContent(**value)


def _records(format: str, file: InputFile) -> Iterator[Record]:
    for row, value in _values(format, file):
        yield Place(file.where, row), value


def _values(format: str, file: InputFile) -> Iterator[Any]:
    with ExitStack() as stack:
        path = stack.enter_context(_on_disk(file))
        if not path.stat().st_size:
            raise Unreadable(f"{file.where} is empty; expected a file with content: leave it out", EMPTY)
        parser = file.parser or stack.enter_context(ParserProcess())
        yield from parser.parse(format, path, file.where)


@contextmanager
def _on_disk(file: InputFile) -> Iterator[Path]:
    """The path of the file, or of a temporary copy if it is compressed or has no path."""
    if isinstance(file.stream, io.BufferedReader) and Path(os.fsdecode(file.stream.name)).is_file():
        yield Path(os.fsdecode(file.stream.name))
        return
    with tempfile.TemporaryDirectory(prefix="trilens-") as folder:
        path = Path(folder) / "unpacked"
        with path.open("wb") as copy:
            while chunk := file.stream.read(CHUNK_BYTES):
                copy.write(chunk)
                if copy.tell() > LIMITS.unpacked_bytes:
                    raise BadInput(
                        f"{file.where} has more than {LIMITS.unpacked_bytes // MIB:,} MiB after decompression; "
                        "split it, or leave it out"
                    )
        yield path
