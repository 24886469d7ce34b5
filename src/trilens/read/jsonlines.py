"""Stream records from JSON Lines, or from the members of a JSON array."""

import codecs
import json
from collections.abc import Iterator
from typing import IO

from trilens.errors import BadInput
from trilens.read.decode import Place, TextLines, binary, not_utf8
from trilens.read.encodings import marked_encoding
from trilens.read.limits import LIMITS
from trilens.read.records import Record

WINDOW_CHARACTERS = 1 << 20
LONGEST_LITERAL = 16
"""A parse error this close to the end of the window may be a literal (`-Infinity`, `\\u00e9`) that the window cut."""

NUMBER_TAIL = 3
"""If fewer characters follow a parsed value, it may be a number that the window cut: 1 of `1e+5`, followed by `e+`."""


def read_jsonl(stream: IO[bytes], where: str) -> Iterator[Record | BadInput]:
    """Yield one record per line. Blank lines are skipped; a broken line is yielded as an error."""
    lines = TextLines(stream, where)
    while True:
        try:
            line = next(lines)
            if not line.isspace():
                yield Place(where, lines.number), json.loads(line.rstrip())
        except StopIteration:
            return
        except BadInput as error:
            yield error
        except (ValueError, RecursionError) as error:
            yield BadInput(
                f"{where}:{lines.number}: broken JSON ({_reason(error)}); expected one object per line: repair the line"
            )


def read_json(stream: IO[bytes], where: str) -> Iterator[Record | BadInput]:
    """Yield the members of an array, or a single object. Broken JSON ends the file."""
    window = _JsonWindow(stream, where)
    first = window.peek()
    if first == "":
        return
    if first != "[":
        yield Place(where, window.line), window.value()
        if window.peek():
            raise window.broken("more text after the record", "rename the file to .jsonl if it has one record per line")
        return
    window.skip()
    while window.peek() != "]":
        place = Place(where, window.line)
        yield place, window.value()
        if window.peek() == ",":
            window.skip()
            if window.peek() == "]":
                raise window.broken("a comma before the closing bracket")
        elif window.peek() != "]":
            raise window.broken("no comma or closing bracket after a record")
    window.skip()
    if window.peek():
        raise window.broken("more text after the array")


class _JsonWindow:
    """The part of a JSON file that is in memory; it grows with the longest record, not with the file."""

    def __init__(self, stream: IO[bytes], where: str) -> None:
        self.line = 1
        self._where = where
        self._stream = stream
        self._decoder: codecs.IncrementalDecoder | None = None
        self._parse = json.JSONDecoder().raw_decode
        self._text = ""
        self._position = 0
        self._read_bytes = 0
        self._ended = False

    def broken(self, reason: str, advice: str = "repair the file") -> BadInput:
        """The error for broken JSON at the current line."""
        return BadInput(f"{self._where}:{self.line}: broken JSON ({reason}); expected an array of records: {advice}")

    def peek(self) -> str:
        """The next character that is not white space, or "" at the end."""
        while True:
            while self._position < len(self._text):
                character = self._text[self._position]
                if character not in " \t\n\r":
                    return character
                self.skip()
            if not self._grow():
                return ""

    def skip(self) -> None:
        """Skip one character."""
        self.line += self._text[self._position] == "\n"
        self._position += 1

    def value(self) -> object:
        """Parse the value at the current position."""
        while True:
            try:
                value, end = self._parse(self._text, self._position)
            except json.JSONDecodeError as error:
                if self._may_be_cut(error) and self._grow():
                    continue
                self.line += self._text.count("\n", self._position, error.pos)
                raise self.broken(error.msg) from error
            except (ValueError, RecursionError) as error:
                raise self.broken(_reason(error)) from error
            if len(self._text) - end < NUMBER_TAIL and self._grow():
                continue
            self.line += self._text.count("\n", self._position, end)
            self._position = end
            return value

    def _may_be_cut(self, error: json.JSONDecodeError) -> bool:
        return error.msg.startswith("Unterminated") or error.pos >= len(self._text.rstrip()) - LONGEST_LITERAL

    def _grow(self) -> bool:
        """Drop the consumed text and read on. The window doubles for long records, so that they take linear time."""
        if self._ended:
            return False
        unread = len(self._text) - self._position
        if unread > LIMITS.text_bytes:
            raise LIMITS.too_long(self._where)
        raw = self._stream.read(max(WINDOW_CHARACTERS, unread))
        self._read_bytes += len(raw)
        self._ended = not raw
        if self._decoder is None:
            self._decoder = codecs.getincrementaldecoder(marked_encoding(raw) or "utf-8-sig")()
        try:
            more = self._decoder.decode(raw, final=self._ended)
        except UnicodeDecodeError as error:
            offset = self._read_bytes - len(error.object) + error.start
            raise not_utf8(Place(self._where), offset, error.object[error.start]) from error
        if self._ended:
            return False
        if "\0" in more:
            raise binary(Place(self._where), self._read_bytes - len(raw) + more.index("\0"))
        self._text = self._text[self._position :] + more
        self._position = 0
        return True


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at column {error.colno}"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return str(error).partition(";")[0]
