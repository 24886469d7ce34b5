"""Taking a backup of the last commit, while others read and write the collection."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Protocol

from trilens.errors import BadInput, CollectionDamaged
from trilens.store.backup.contents import Backup, Contents, file_name, with_manifest
from trilens.store.backup.place import BackupPlace, CheckedSource
from trilens.store.catalog import has_moved_on
from trilens.store.check import BytesDone
from trilens.store.commit_record import CommitRecord
from trilens.store.failures import clear_errors
from trilens.store.folders import FOLDER, MANIFEST, REPAIR, read_record
from trilens.store.last_commit import open_verified
from trilens.store.schema import FolderRecord

TRIES = 100
FILES_AT_ONCE = 256  # far below the usual limit of 1024 open files


@dataclass(slots=True)
class BackupReport:
    """What a backup has copied and removed, and one line for each problem of older backups."""

    commit: int
    documents: int
    bytes: int
    copied_bytes: int = 0
    copied_folders: int = 0
    removed: list[int] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def take_backup(
    root: Path, place: BackupPlace, *, keep: int | None = None, verify: bool = False, report: BytesDone = lambda count: None
) -> BackupReport:
    """Add the last commit to a place that may hold earlier backups; folders that it has are not copied again.

    `keep` removes all but the last backups. `verify` reads everything that the place holds instead of comparing sizes.
    """
    if keep is not None and (keep < 1 or place.holds_one):
        raise BadInput(f"keep is {keep}; expected 1 or more, and a place that holds several backups")
    with place.writing():
        contents = Contents.read(place)
        faults = contents.verify(report) if verify else None
        taking = _Taking(root, contents, faults, report)
        result = taking.run()
        result.removed = [backup.commit for backup in contents.prune(keep)]
        result.problems = [*contents.problems, *taking.remaining_faults(contents)]
    return result


class Target(Protocol):
    """Where a commit is copied: the backups in a place, or the published commits of a cluster."""

    @property
    def place(self) -> BackupPlace:
        """The place."""

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes of the files of the place, as far as a copy needs them."""

    def require_free_for(self, record: CommitRecord) -> None:
        """Refuse a commit that does not belong here."""

    def fault(self, folder: FolderRecord) -> str | None:
        """What is wrong with a folder in the place; None if it is there completely."""

    def write(self, backup: Backup) -> None:
        """Add a commit whose folders are in place."""


def copy_commit(root: Path, target: Target, report: BytesDone = lambda count: None) -> BackupReport:
    """Copy the last commit of a collection, then its record."""
    return _Taking(root, target, None, report).run()


class _MovedOn(Exception):
    """A folder of the commit is gone, because a newer commit has merged it; the cause is the error of reading it."""


class _Taking:
    """Copies a commit, and begins again with a newer one if a merge removes folders that are not open yet."""

    def __init__(self, root: Path, contents: Target, faults: Mapping[str, str | None] | None, report: BytesDone) -> None:
        """`faults` says what is wrong with each folder of the place if all were read."""
        self._root = root
        self._contents = contents
        self._faults = faults
        self._report = report
        self._copied: list[FolderRecord] = []

    def run(self) -> BackupReport:
        """Copy the missing folders of the last commit, then write its record."""
        for remaining in reversed(range(TRIES)):
            record, documents = _last_commit(self._root)
            self._contents.require_free_for(record)
            try:
                folders = [self._folder(record, folder_id) for folder_id in record.folders]
                self._copy(record, [folder for folder in folders if not self._has(folder)])
            except _MovedOn as error:
                if not remaining:
                    raise CollectionDamaged(str(error.__cause__)) from error
            else:
                return self._finish(record, documents, folders)
        raise AssertionError("the loop returns or raises")

    def remaining_faults(self, contents: Contents) -> Iterator[str]:
        """What is wrong with folders of older backups that the collection does not have any more."""
        copied = {folder.id for folder in self._copied}
        for folder_id, fault in (self._faults or {}).items():
            if fault and folder_id not in copied and (commits := contents.needing(folder_id)):
                yield f"{fault} (needed by {commits})"

    def _finish(self, record: CommitRecord, documents: int, folders: list[FolderRecord]) -> BackupReport:
        size = sum(map(_bytes, folders))
        made = datetime.now(UTC).isoformat(timespec="microseconds")
        self._contents.write(Backup(made=made, documents=documents, bytes=size, record=record))
        return BackupReport(record.commit, documents, size, sum(map(_bytes, self._copied)), len(self._copied))

    def _folder(self, record: CommitRecord, folder_id: str) -> FolderRecord:
        with self._still_there(record):
            folder = read_record(self._root, folder_id, record.folders[folder_id])
            return with_manifest(folder, (self._root / FOLDER / folder_id / MANIFEST).stat().st_size)

    def _has(self, folder: FolderRecord) -> bool:
        """Whether the place has a folder completely."""
        read = self._faults is None or self._faults.get(folder.id, "not read") is None
        return read and self._contents.fault(folder) is None

    def _copy(self, record: CommitRecord, folders: list[FolderRecord]) -> None:
        """Copy folders, small ones first: they are merged most often. Open files stay readable when a merge removes them."""
        waiting = sorted(folders, key=_bytes, reverse=True)
        while waiting:
            with ExitStack() as stack:
                opened: list[tuple[FolderRecord, list[IO[bytes]]]] = []
                files = 0
                while waiting and (not opened or files + len(waiting[-1].files) <= FILES_AT_ONCE):
                    folder = waiting.pop()
                    files += len(folder.files)
                    with self._still_there(record):
                        opened.append((folder, self._open(folder, stack)))
                for folder, sources in opened:
                    self._write(folder, sources)

    def _open(self, folder: FolderRecord, stack: ExitStack) -> list[IO[bytes]]:
        path = self._root / FOLDER / folder.id
        return [stack.enter_context((path / file.path).open("rb")) for file in folder.files]

    def _write(self, folder: FolderRecord, sources: Iterable[IO[bytes]]) -> None:
        for file, source in zip(folder.files, sources, strict=True):
            name = file_name(folder, file)
            content = CheckedSource(source, file, str(self._root / name), self._report)
            self._contents.place.write(name, file.bytes, content)
            content.finish()
            self._contents.sizes[name] = file.bytes
        self._copied.append(folder)

    @contextmanager
    def _still_there(self, record: CommitRecord) -> Iterator[None]:
        """Tell files that a merge has removed from damage."""
        try:
            with clear_errors(self._root):
                try:
                    yield
                except FileNotFoundError as error:
                    raise CollectionDamaged(f"{error.filename} is missing; {REPAIR}") from error
        except CollectionDamaged as error:
            if has_moved_on(self._root, record.commit):
                raise _MovedOn from error
            raise


def _bytes(folder: FolderRecord) -> int:
    return sum(file.bytes for file in folder.files)


def _last_commit(root: Path) -> tuple[CommitRecord, int]:
    """The record of the last commit, and its number of documents."""
    with closing(open_verified(root)) as catalog:
        return CommitRecord.of(catalog), catalog.count()
