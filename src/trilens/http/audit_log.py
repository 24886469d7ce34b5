"""The audit log: who changed what, and what came of it.

A write has two lines with the same `write`: `begun`, on the disk before anything is changed, and `committed` or `failed`. A
write whose first line cannot be written is refused. A first line without a second one belongs to a process that was killed, or
to a log whose disk became full during the write, which is reported on standard error; the commit of the next line tells whether
it was committed.
"""

import secrets
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from trilens.http.failures import Refused
from trilens.http.log_file import LogFile

Report = Callable[[Mapping[str, Any]], None]
Recorded = Callable[[int], AbstractContextManager[Report]]
"""The record of a write that begins at a commit; its report takes the result of the write."""


class AuditLog:
    """Records writes in a file."""

    def __init__(self, file: LogFile) -> None:
        self.file = file

    @contextmanager
    def recorded(self, facts: Mapping[str, Any], commit: int) -> Iterator[Report]:
        """Record a write that begins at `commit`; `facts` say who asked for what."""
        write, result = secrets.token_hex(6), dict[str, Any]()
        try:
            self.file.write({"write": write, "event": "begun", **facts, "commit": commit})
        except OSError as error:
            full = f"the audit log cannot be written ({error.strerror}); nothing was changed"
            raise Refused(503, full, {"Retry-After": "30"}) from error
        try:
            yield result.update
        except BaseException as error:
            self._end({"write": write, "event": "failed", "error": f"{type(error).__name__}: {error}"})
            raise
        self._end({"write": write, "event": "committed", **result})

    def _end(self, entry: dict[str, Any]) -> None:
        try:
            self.file.write(entry)
        except OSError as error:
            sys.stderr.write(f"the audit log lacks {entry} ({error.strerror})\n")


def unrecorded(_commit: int) -> AbstractContextManager[Report]:
    """The record of a write that is not audited."""
    return nullcontext(lambda _result: None)
