"""One backup in a tar archive, plain or compressed."""

import os
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import IO

from trilens.errors import CollectionDamaged, CollectionExists
from trilens.store.backup.owner import has_died, this_owner
from trilens.store.backup.place import ByteSource, missing, not_removable
from trilens.store.failures import clear_errors
from trilens.store.folders import force

SUFFIXES = (".tar", ".tar.gz", ".tgz")


class TarPlace:
    """An archive. It is written beside its final name and never replaces another file."""

    holds_one = True

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._path = path
        self._is_plain = path.name.endswith(".tar")
        self._written: tarfile.TarFile | None = None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write the archive; it gets its name at the end of the block."""
        prefix = f".{self._path.name}.unfinished-"
        with clear_errors(self._path):
            self._require_free()
            for old in self._path.parent.glob(f"{prefix}*"):
                if has_died(old.name.removeprefix(prefix)):
                    old.unlink(missing_ok=True)
            unfinished = self._path.with_name(f"{prefix}{this_owner()}")
            file = unfinished.open("xb")
        try:
            with file, clear_errors(self._path):
                with tarfile.open(fileobj=file, mode="w:" if self._is_plain else "w:gz") as archive:
                    self._written = archive
                    yield
                file.flush()
                os.fsync(file.fileno())
            with clear_errors(self._path):
                self._require_free()
                os.link(unfinished, self._path)  # unlike a rename, a link never replaces a file
        finally:
            self._written = None
            unfinished.unlink(missing_ok=True)
        force(self._path.parent)

    def sizes(self) -> dict[str, int]:
        """The files of the archive."""
        return {} if self._written else {name: member.size for name, member in self._members.items()}

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file for reading."""
        if name not in self._members:
            raise missing(self, name)
        with self._errors():
            file = self._archive.extractfile(self._members[name])
            assert file is not None
            with file:
                yield file

    def write(self, name: str, size: int, content: ByteSource) -> None:
        """Append a file."""
        assert self._written is not None
        member = tarfile.TarInfo(name)
        member.size = size
        self._written.addfile(member, content)  # type: ignore[arg-type]

    def remove(self, names: Iterable[str]) -> None:
        """An archive holds one backup, so nothing becomes unneeded."""
        if any(names):
            raise not_removable(self)

    def close(self) -> None:
        """Close the archive if it was read."""
        if "_archive" in self.__dict__:
            self._archive.close()

    @cached_property
    def _archive(self) -> tarfile.TarFile:
        with self._errors():
            return tarfile.open(self._path, mode="r:" if self._is_plain else "r:gz")

    @cached_property
    def _members(self) -> dict[str, tarfile.TarInfo]:
        members = {}
        with self._errors():
            for member in self._archive:
                if not member.isfile() or member.name in members or ".." in PurePosixPath(member.name).parts:
                    raise CollectionDamaged(
                        f"{self.name} has the member {member.name[:80]!r}; expected only the files of a backup of trilens"
                    )
                members[member.name] = member
        return members

    def _require_free(self) -> None:
        if self._path.exists():
            raise CollectionExists(f"{self.name} exists; an archive holds one backup: choose another name")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            with clear_errors(self._path):
                yield
        except (tarfile.TarError, EOFError, zlib.error) as error:
            raise CollectionDamaged(f"{self.name} is not a whole tar archive ({error}); use another backup") from error
