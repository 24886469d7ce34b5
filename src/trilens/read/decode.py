"""Decompress files and decode them as UTF-8; decoding errors name the file, the line and the byte offset."""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple, cast

from trilens.errors import BadInput
from trilens.read.zstd import DAMAGE as ZSTD_DAMAGE
from trilens.read.zstd import open_zstd
from trilens.text.files import shown

DAMAGE: tuple[type[Exception], ...] = (EOFError, zlib.error, lzma.LZMAError, *ZSTD_DAMAGE)
"""What reading damaged compressed files raises."""


class Place(NamedTuple):
    """A position in the input, for messages; line 0 stands for the whole file."""

    where: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.where}:{self.line}" if self.line else self.where


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading, decompressed according to its suffix. Read errors inside the block become `BadInput`."""
    try:
        with _open(path) as stream:
            yield stream
    except FileNotFoundError as error:
        raise BadInput(f"{shown(path)} does not exist; expected a file: check the path or the link") from error
    except DAMAGE as error:
        raise BadInput(f"{shown(path)} is damaged or cut short: {error}; decompress or copy it again") from error
    except OSError as error:
        raise BadInput(f"{shown(path)} cannot be read: {error.strerror or error}; check the file") from error


def _open(path: Path) -> IO[bytes]:
    match path.suffix.lower():
        case ".gz":
            return cast(IO[bytes], gzip.open(path))
        case ".xz":
            return lzma.open(path)
        case ".bz2":
            return bz2.open(path)
        case ".zst":
            return open_zstd(path)
    return path.open("rb")


def not_utf8(place: Place, offset: int, value: int) -> BadInput:
    """The error for an invalid byte."""
    return BadInput(f"{place} is not UTF-8: byte 0x{value:02x} at offset {offset}; expected UTF-8: convert it or leave it out")


def binary(place: Place, offset: int) -> BadInput:
    """The error for a NUL byte: text files have none, nearly all binary files do."""
    return BadInput(f"{place} is binary: NUL byte at offset {offset}; expected text in UTF-8: convert it or leave it out")


def read_text(path: Path) -> str:
    """Read a whole file as text, with all line ends as newlines."""
    with open_bytes(path) as stream:
        return decode_text(stream.read(), shown(path))


def decode_text(raw: bytes, where: str) -> str:
    """Decode the bytes of a whole file, with all line ends as newlines; errors name the file `where`."""
    place = Place(where)
    nul = raw.find(b"\0")
    if nul >= 0:
        raise binary(place, nul)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise not_utf8(place, error.start, raw[error.start]) from error
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


class TextLines:
    """Iterator over the decoded lines of a stream; `number` is that of the last line.

    Iteration can continue after a line that is not UTF-8. A NUL byte ends it: every line of a binary file would be an error.
    """

    def __init__(self, stream: IO[bytes], where: str) -> None:
        self.number = 0
        self._lines = iter(stream)
        self._where = where
        self._offset = 0

    def __iter__(self) -> "TextLines":
        return self

    def __next__(self) -> str:
        raw = next(self._lines)
        start = self._offset
        self._offset += len(raw)
        self.number += 1
        if b"\0" in raw:
            self._lines = iter(())
            raise binary(Place(self._where, self.number), start + raw.index(b"\0"))
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            place = Place(self._where, self.number)
            raise not_utf8(place, start + error.start, raw[error.start]) from error
        return text.removeprefix("\ufeff") if self.number == 1 else text
