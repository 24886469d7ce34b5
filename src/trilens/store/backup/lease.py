"""A lock on a remote place: a file that says who writes until when."""

import json
import time
from typing import Any

from trilens.errors import CollectionLocked
from trilens.store.backup.owner import has_died, this_owner

SECONDS = 600  # a lease that is not renewed for so long has ended
RENEWED_AFTER = 60  # far below SECONDS, so that clocks of machines may differ


def create_file(files: Any, path: str, content: bytes) -> bool:
    """Create a file of a file system of fsspec if there is none; False if there is one with another content."""
    try:
        files.pipe_file(path, content, mode="create")
    except OSError:  # servers differ in the error for a file that exists
        if not files.exists(path):
            raise
    return bool(files.cat_file(path) == content)  # also after an answer was lost, and the client has tried again


class Lease:
    """Held from `acquire` to `release`, if `renew` is called in between. The file is created only if there is none."""

    def __init__(self, files: Any, path: str, place: str) -> None:
        """`files` is a file system of fsspec, `place` names its address in errors."""
        self._files = files
        self._path = path
        self._place = place
        self._owner = this_owner()
        self._renewed: float | None = None  # not held

    def acquire(self) -> None:
        """Take the lease, or raise if another backup holds it."""
        if not self._create():
            holder = self._read()
            if holder.get("until", 0) > time.time() and not has_died(str(holder.get("owner"))):
                raise self._locked()
            self._files.rm_file(self._path)
            if not self._create():
                raise self._locked()

    def renew(self) -> None:
        """Extend the lease if it is held; raise if it was lost, which takes a pause longer than the lease."""
        if self._renewed is not None and time.monotonic() - self._renewed > RENEWED_AFTER:
            if self._read().get("owner") != self._owner:
                raise self._locked()
            self._files.pipe_file(self._path, self._content())
            self._renewed = time.monotonic()

    def release(self) -> None:
        """Give the lease back."""
        self._renewed = None
        if self._read().get("owner") == self._owner:
            self._files.rm_file(self._path)

    def _create(self) -> bool:
        if not create_file(self._files, self._path, self._content()):
            return False
        self._renewed = time.monotonic()
        return self._read().get("owner") == self._owner

    def _content(self) -> bytes:
        return json.dumps({"owner": self._owner, "until": time.time() + SECONDS}).encode()

    def _read(self) -> dict[str, Any]:
        try:
            holder = json.loads(self._files.cat_file(self._path))
        except (FileNotFoundError, ValueError):
            return {}
        return holder if isinstance(holder, dict) else {}

    def _locked(self) -> CollectionLocked:
        owner = str(self._read().get("owner", "another process")).rpartition("-")[0]
        return CollectionLocked(
            f"{self._place} is being written by another backup ({owner}); wait until it has finished; "
            f"a dead one ends within {SECONDS // 60} minutes"
        )
