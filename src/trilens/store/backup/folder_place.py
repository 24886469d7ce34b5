"""Backups in a local folder."""

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import IO

from filelock import FileLock, Timeout

from trilens.errors import CollectionLocked
from trilens.store.backup.place import BLOCK_BYTES, LOCK_NAME, UNFINISHED, ByteSource, missing
from trilens.store.failures import clear_errors
from trilens.store.folders import force


class FolderPlace:
    """A folder. The operating system releases its lock when a process dies."""

    holds_one = False

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._path = path

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock file."""
        with clear_errors(self._path):
            self._path.mkdir(parents=True, exist_ok=True)
            try:
                taken = FileLock(self._path / LOCK_NAME, timeout=0, thread_local=False).acquire()
            except Timeout as error:
                raise CollectionLocked(f"{self.name} is being written by another backup; wait until it has finished") from error
        with taken:
            yield

    def sizes(self, inside: str = "") -> dict[str, int]:
        """All regular files, or those in one folder; links are ignored."""
        with clear_errors(self._path):
            return {
                path.relative_to(self._path).as_posix(): path.stat().st_size
                for path in (self._path / inside).rglob("*")
                if path.is_file() and not path.is_symlink()
            }

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file for reading."""
        with clear_errors(self._path):
            try:
                file = (self._path / name).open("rb")
            except FileNotFoundError as error:
                raise missing(self, name) from error
            with file:
                yield file

    def write(self, name: str, size: int, content: ByteSource) -> None:
        """Write under a temporary name, sync to disk and rename."""
        with clear_errors(self._path):
            write_file(self._path / name, content)

    def create(self, name: str, content: bytes) -> bool:
        """Write under a temporary name and link: unlike a rename, a link never replaces a file."""
        path = self._path / name
        with clear_errors(self._path):
            unfinished = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
            write_file(unfinished, BytesIO(content))
            try:
                os.link(unfinished, path)
            except FileExistsError:
                return False
            finally:
                unfinished.unlink()
            force(path.parent)
        return True

    def remove(self, names: Iterable[str]) -> None:
        """Remove files, and the folders that become empty."""
        with clear_errors(self._path):
            for path in [self._path / name for name in names]:
                path.unlink(missing_ok=True)
                with suppress(OSError):  # not empty yet
                    while path.parent != self._path:
                        path = path.parent
                        path.rmdir()

    def close(self) -> None:
        """Nothing is open."""


def write_file(path: Path, content: ByteSource) -> None:
    """Write a file under a temporary name, sync it to disk and rename it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}{UNFINISHED}")
    try:
        with unfinished.open("wb") as file:
            while block := content.read(BLOCK_BYTES):
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise
    force(path.parent)
