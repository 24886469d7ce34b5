"""JSON to records, one at a time: one object per line, or the members of one long array."""

import codecs
import json
from collections.abc import Iterator
from typing import IO

from trilens.errors import BadInput
from trilens.text.decode import Place, TextLines, binary, not_utf8
from trilens.text.records import Record

WINDOW_CHARACTERS = 1 << 20
LONGEST_LITERAL = 16
"""A parse error this close to the end of what was read may be a literal (`-Infinity`, `\\u00e9`) that goes on."""

SHORTEST_CUT = 3
"""A number may have been cut in two if this few characters follow what was parsed: 1 of `1e+5`, with `e+` behind it."""


def read_jsonl(stream: IO[bytes], where: str) -> Iterator[Record | BadInput]:
    """One record per line; blank lines are skipped, and a broken line does not end the file."""
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
    """The members of an array, or the one object that is the file. Broken JSON ends it: nothing after it is certain."""
    window = _Window(stream, where)
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


class _Window:
    """The part of a JSON file that is in memory: it grows to the longest record, not to the file."""

    def __init__(self, stream: IO[bytes], where: str) -> None:
        self.line = 1
        self._where = where
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._parse = json.JSONDecoder().raw_decode
        self._text = ""
        self._at = 0
        self._read_bytes = 0
        self._ended = False

    def broken(self, reason: str, advice: str = "repair the file") -> BadInput:
        """The error for what stands here."""
        return BadInput(f"{self._where}:{self.line}: broken JSON ({reason}); expected an array of records: {advice}")

    def peek(self) -> str:
        """The next character that is not a space, or "" at the end."""
        while True:
            while self._at < len(self._text):
                character = self._text[self._at]
                if character not in " \t\n\r":
                    return character
                self.skip()
            if not self._grow():
                return ""

    def skip(self) -> None:
        """Go past one character."""
        self.line += self._text[self._at] == "\n"
        self._at += 1

    def value(self) -> object:
        """The value that starts here."""
        while True:
            try:
                value, end = self._parse(self._text, self._at)
            except json.JSONDecodeError as error:
                if self._may_go_on(error) and self._grow():
                    continue
                self.line += self._text.count("\n", self._at, error.pos)
                raise self.broken(error.msg) from error
            except (ValueError, RecursionError) as error:
                raise self.broken(_reason(error)) from error
            if len(self._text) - end < SHORTEST_CUT and self._grow():
                continue
            self.line += self._text.count("\n", self._at, end)
            self._at = end
            return value

    def _may_go_on(self, error: json.JSONDecodeError) -> bool:
        return error.msg.startswith("Unterminated") or error.pos >= len(self._text.rstrip()) - LONGEST_LITERAL

    def _grow(self) -> bool:
        """Drop what was used and read on, twice as much each time, so that a long record costs linear time."""
        if self._ended:
            return False
        rest = len(self._text) - self._at
        raw = self._stream.read(max(WINDOW_CHARACTERS, rest))
        self._read_bytes += len(raw)
        self._ended = not raw
        if b"\0" in raw:
            raise binary(Place(self._where), self._read_bytes - len(raw) + raw.index(b"\0"))
        try:
            more = self._decoder.decode(raw, final=self._ended)
        except UnicodeDecodeError as error:
            offset = self._read_bytes - len(error.object) + error.start
            raise not_utf8(Place(self._where), offset, error.object[error.start]) from error
        if self._ended:
            return False  # and what is in the window stays where it is
        self._text = self._text[self._at :] + more
        self._at = 0
        return True


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at column {error.colno}"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return str(error).partition(";")[0]
