"""Decompress files and decode them; errors name the file, the line and the byte offset."""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ELOOP
from itertools import chain, islice
from pathlib import Path
from typing import IO, NamedTuple, cast

from trilens.errors import Unreadable
from trilens.read.encodings import LONGEST_MARK, detect, detect_lines, marked_encoding
from trilens.read.limits import LIMITS
from trilens.read.zstd import DAMAGE as ZSTD_DAMAGE
from trilens.read.zstd import open_zstd
from trilens.text.files import shown

# Reasons for which files are skipped.
EMPTY, DAMAGED, NOT_UTF8, BINARY = "empty", "damaged", "not UTF-8", "not text"
DANGLING, READ_ERROR = "dangling link", "read error"
DAMAGE: tuple[type[Exception], ...] = (EOFError, zlib.error, lzma.LZMAError, *ZSTD_DAMAGE)  # of decompressing
READ_ERRORS: tuple[type[Exception], ...] = (OSError, *DAMAGE)  # of opening and decompressing
LINES_AHEAD = 1000  # decide on the encoding of lines


class Place(NamedTuple):
    """A position in the input, for messages; line 0 stands for the whole file."""

    where: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.where}:{self.line}" if self.line else self.where


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading, decompressed according to its suffix. Read errors inside the block become `Unreadable`."""
    try:
        with _open(path) as stream:
            yield stream
    except FileNotFoundError as error:
        reason = DANGLING if path.is_symlink() else "gone"
        raise Unreadable(f"{shown(path)} does not exist; expected a file: check the path or the link", reason) from error
    except DAMAGE as error:
        message = f"{shown(path)} is damaged or cut short: {error}; decompress or copy it again"
        raise Unreadable(message, DAMAGED) from error
    except OSError as error:
        message = f"{shown(path)} cannot be read: {error.strerror or error}; check the file"
        raise Unreadable(message, reason_of(error)) from error


def reason_of(error: OSError) -> str:
    """The reason of a read error, in words by which skipped files are counted."""
    if isinstance(error, PermissionError):
        return "not permitted"
    if error.errno is None:  # not of the system but of a decompressor
        return DAMAGED
    return "link loop" if error.errno == ELOOP else READ_ERROR


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


def not_utf8(place: Place, offset: int, value: int) -> Unreadable:
    """The error for an invalid byte."""
    message = f"{place} is not UTF-8: byte 0x{value:02x} at offset {offset}; expected UTF-8: convert it or leave it out"
    return Unreadable(message, NOT_UTF8)


def binary(place: Place, offset: int) -> Unreadable:
    """The error for a NUL byte: text files have none, nearly all binary files do."""
    message = f"{place} is binary: NUL byte at offset {offset}; expected text in UTF-8: convert it or leave it out"
    return Unreadable(message, BINARY)


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
    return _plain(text)


def decode_any_text(raw: bytes, where: str) -> str:
    """Decode the bytes of a whole file in whatever encoding it has, with all line ends as newlines."""
    encoding = detect(raw)
    if encoding is None and b"\0" in raw:
        raise binary(Place(where), raw.index(b"\0"))
    if encoding is None:
        message = f"{where} is in no known text encoding; expected text, best in UTF-8: convert it or leave it out"
        raise Unreadable(message, BINARY)
    return _plain(raw.decode(encoding))


def _plain(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


class TextLines:
    """Iterator over the decoded lines of a stream; `number` is that of the last line.

    Iteration can continue after a line that is not UTF-8. A NUL byte ends it: every line of a binary file would be an error.
    Files with the byte order mark of UTF-16 or UTF-32 are decoded as such.
    """

    def __init__(self, stream: IO[bytes], where: str, detects: bool = False) -> None:
        """`detects`: the first line outside ASCII that is not UTF-8 decides on the encoding of the file."""
        self.number = 0
        self._lines = _unmarked_lines(stream, where)
        self._where = where
        self._offset = 0
        self._encoding = "utf-8"
        self._detects = detects

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
        if self._detects and not raw.isascii():
            self._detects = False
            self._detect(raw)
        try:
            text = raw.decode(self._encoding)
        except UnicodeDecodeError as error:
            place = Place(self._where, self.number)
            raise not_utf8(place, start + error.start, raw[error.start]) from error
        return text.removeprefix("\ufeff") if self.number == 1 else text

    def _detect(self, line: bytes) -> None:
        """Choose the encoding by the first line outside ASCII and those after it."""
        try:
            line.decode("utf-8")
        except UnicodeDecodeError:
            ahead = list(islice(self._lines, LINES_AHEAD))
            self._lines = chain(ahead, self._lines)
            self._encoding = detect_lines(b"".join([line, *ahead])) or "utf-8"


def _unmarked_lines(stream: IO[bytes], where: str) -> Iterator[bytes]:
    """The lines of a stream; those in UTF-16 or UTF-32 with a byte order mark as UTF-8."""
    lines = _bounded_lines(stream, where)
    first = next(lines, b"")
    encoding = marked_encoding(first[:LONGEST_MARK])
    if encoding is None or encoding.startswith("utf-8"):
        return chain([first] if first else [], lines)
    # A line end in UTF-16 is two bytes, so the first line was cut inside it. Text in these encodings is decoded whole.
    rest = stream.read(LIMITS.text_bytes)
    if len(rest) == LIMITS.text_bytes:
        raise LIMITS.too_long(where)
    return iter(io.BytesIO((first + rest).decode(encoding, "replace").encode()))


def _bounded_lines(stream: IO[bytes], where: str) -> Iterator[bytes]:
    """The lines of a stream. One that is too long to be a record ends them, before it fills the memory."""
    while line := stream.readline(LIMITS.text_bytes + 1):
        if len(line) > LIMITS.text_bytes:
            raise LIMITS.too_long(where)
        yield line
