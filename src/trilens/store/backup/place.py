"""Places that hold backups: what a folder, an archive and a remote address have in common.

commits/<number>.json   one file per backup, written last
segments/<id>/…         the folders of all backups, as in a collection
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from hashlib import blake2b
from typing import IO, Protocol

from trilens.errors import CollectionDamaged, CollectionError
from trilens.store.check import BytesDone
from trilens.store.schema import FileRecord

BLOCK_BYTES = 1 << 20
LARGEST_RECORD = 1 << 30  # records and manifests are read at once
LOCK_NAME = "backup.lock"
COMMITS = "commits"  # the folder of the records
UNFINISHED = ".unfinished"  # the end of the names of files that are being written


class ByteSource(Protocol):
    """Something to read bytes from."""

    def read(self, size: int, /) -> bytes:
        """The next `size` bytes, fewer only at the end."""


class BackupPlace(Protocol):
    """A set of named files. Names are relative paths that trilens makes; none is taken from what the place holds."""

    name: str
    """The address that the user gave, for messages."""

    holds_one: bool
    """Whether the place is a file with one backup, which cannot be added to."""

    def writing(self) -> AbstractContextManager[None]:
        """Keep other backups out during the block; a place that holds one backup appears with the end of the block."""

    def sizes(self) -> dict[str, int]:
        """The size of every file."""

    def open(self, name: str) -> AbstractContextManager[IO[bytes]]:
        """Open a file for reading. A file that is missing is damage."""

    def write(self, name: str, size: int, content: ByteSource) -> None:
        """Write a file of `size` bytes durably. Records of commits appear completely or not at all."""

    def remove(self, names: Iterable[str]) -> None:
        """Remove files."""

    def close(self) -> None:
        """Release what is open."""


class SharedPlace(BackupPlace, Protocol):
    """A place in which machines that do not know of each other may write at the same time."""

    def sizes(self, inside: str = "") -> dict[str, int]:
        """The size of every file, or of those in one folder."""

    def create(self, name: str, content: bytes) -> bool:
        """Write a file completely or not at all; False if there is one. Of several writers, one alone gets True."""


class CheckedSource:
    """A file that must have the recorded size and checksum. Never more bytes than recorded are read."""

    def __init__(self, file: ByteSource, expected: FileRecord, shown: str, report: BytesDone) -> None:
        """`shown` names the file in errors."""
        self._file = file
        self._expected = expected
        self._shown = shown
        self._report = report
        self._digest = blake2b(digest_size=16)
        self._left = expected.bytes

    def read(self, size: int) -> bytes:
        """The next bytes."""
        wanted = min(size, self._left)
        block = self._read(wanted)
        if len(block) < wanted:
            raise self._damaged()
        self._digest.update(block)
        self._left -= len(block)
        self._report(len(block))
        return block

    def finish(self) -> None:
        """Raise if the file, which has been read to its end, is not the recorded one."""
        if self._left or self._read(1) or self._digest.hexdigest() != self._expected.checksum:
            raise self._damaged()

    def _read(self, size: int) -> bytes:
        try:
            return self._file.read(size)
        except OSError as error:
            raise CollectionError(f"{self._shown} cannot be read ({error.strerror or error}); check its disk") from error

    def _damaged(self) -> CollectionDamaged:
        return CollectionDamaged(
            f"{self._shown} has changed: expected {self._expected.bytes:,} bytes that fit their checksum; use a whole copy"
        )


def read_small(place: BackupPlace, name: str) -> bytes:
    """The content of a record or manifest."""
    with place.open(name) as file:
        content = file.read(LARGEST_RECORD + 1)
    if len(content) > LARGEST_RECORD:
        raise CollectionDamaged(
            f"{name} in {place.name} is larger than {LARGEST_RECORD >> 20} MB; expected a record of trilens"
        )
    return content


def missing(place: BackupPlace, name: str) -> CollectionDamaged:
    """The error for a file that should be there."""
    return CollectionDamaged(f"{name} is missing in {place.name}; use another backup")


def not_removable(place: BackupPlace) -> CollectionError:
    """The error for changing a place that holds one backup."""
    return CollectionError(f"{place.name} holds one backup, which cannot be changed; choose another name")
