"""A log of JSON lines, which other programs may rotate."""

import errno
import json
import os
import stat
import sys
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

from trilens.errors import BadInput

PRIVATE = 0o600


class LogFile:
    """Appends JSON lines to a file, or to standard output for `-`.

    `sync` writes each line to the disk before `write` returns. A line is one write, so lines never mix.
    """

    def __init__(self, path: Path, sync: bool = False) -> None:
        self.path, self._sync = path, sync
        self._lock = Lock()
        self._reopen = False
        self._file = self._open()

    def write(self, entry: dict[str, Any]) -> None:
        """Append one line with the time; OSError if it cannot be written."""
        line = json.dumps({"time": datetime.now(UTC).isoformat(timespec="milliseconds"), **entry}) + "\n"
        with self._lock:
            if self._reopen:
                self._reopen = False
                renewed = _open(self.path)
                os.close(self._file)
                self._file = renewed
            _append(self._file, line.encode("ascii"))
            if self._sync:
                os.fsync(self._file)

    def reopen(self) -> None:
        """Write the following lines to a new file if the present one was renamed. Safe in a signal handler."""
        self._reopen = str(self.path) != "-"

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._file != sys.stdout.fileno():
                os.close(self._file)

    def _open(self) -> int:
        if str(self.path) == "-":
            return sys.stdout.fileno()
        try:
            return _open(self.path)
        except OSError as error:
            raise BadInput(f"the log {self.path} cannot be written ({error.strerror}); choose another file") from error


def _open(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, PRIVATE)


def _append(file: int, line: bytes) -> None:
    """Write a line as a whole: what the disk had room for of an incomplete one is taken back."""
    written = os.write(file, line)
    if written < len(line):
        if stat.S_ISREG(os.fstat(file).st_mode):
            os.ftruncate(file, os.fstat(file).st_size - written)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
