"""`Journal`: a file of lines written incrementally, so that an interrupted job can resume after the last complete write."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trilens.errors import BadInput
from trilens.store.folders import force
from trilens.text.files import shown


class Journal:
    """Appends lines to `FILE.partial`; `FILE.partial.json`, replaced atomically, records the valid bytes and the job identity.

    `finish` renames the file to its final name. The same job resumes after the last valid line; a different job is an error.
    """

    def __init__(self, path: Path, identity: Mapping[str, Any]) -> None:
        self.path = path
        self.done = 0
        self.counts: dict[str, int] = {}
        self._identity = dict(identity)
        self._partial = path.with_name(f"{path.name}.partial")
        self._state = path.with_name(f"{path.name}.partial.json")
        if path.exists():
            raise BadInput(f"{shown(path)} exists already; expected a path for a new file: remove it, or choose another name")
        with self._clear_errors():
            path.parent.mkdir(parents=True, exist_ok=True)
            size = self._resume() if self._state.exists() else 0
            self._file = self._partial.open("ab")
            self._file.truncate(size)
            self._file.seek(size)

    def append(self, lines: Sequence[str], counts: Mapping[str, int]) -> None:
        """Append lines and add to the counts; both are durable when this returns."""
        self.done += len(lines)
        for name, count in counts.items():
            self.counts[name] = self.counts.get(name, 0) + count
        with self._clear_errors():
            self._file.write("".join(f"{line}\n" for line in lines).encode())
            self._file.flush()
            os.fsync(self._file.fileno())
            fresh = self._state.with_name(f"{self._state.name}.new")
            state = {"identity": self._identity, "done": self.done, "bytes": self._file.tell(), "counts": self.counts}
            fresh.write_text(json.dumps(state), encoding="utf-8")
            force(fresh)
            fresh.replace(self._state)

    def finish(self) -> None:
        """Rename the file to its final name."""
        self._file.close()
        self._partial.rename(self.path)
        force(self.path.parent)
        self._state.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file; the job can be resumed. A job that has written nothing leaves nothing."""
        self._file.close()
        if not self._state.exists():
            self._partial.unlink(missing_ok=True)

    @contextmanager
    def _clear_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise BadInput(
                f"{shown(self._partial)} cannot be written: {error.strerror}; check the folder and its disk, then resume"
            ) from error

    def _resume(self) -> int:
        try:
            state = json.loads(self._state.read_text(encoding="utf-8"))
            identity, done, size, counts = (state[name] for name in ("identity", "done", "bytes", "counts"))
        except (ValueError, KeyError, TypeError) as error:
            raise BadInput(f"{shown(self._state)} is damaged; remove it and {shown(self._partial)} to start again") from error
        if identity != json.loads(json.dumps(self._identity)):
            changed = sorted(name for name in {*identity, *self._identity} if identity.get(name) != self._identity.get(name))
            raise BadInput(
                f"{shown(self._partial)} was started with other settings ({', '.join(changed)}); give the same settings to "
                f"resume, or remove it and {shown(self._state)} to start again"
            )
        actual = self._partial.stat().st_size if self._partial.exists() else 0
        if actual < size:
            raise BadInput(
                f"{shown(self._partial)} has {actual} bytes; expected at least {size}: it is damaged, "
                f"remove it and {shown(self._state)} to start again"
            )
        self.done, self.counts = done, counts
        return int(size)
