"""The backups in a place: one record per commit, and the folders that the records share."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from io import BytesIO
from pathlib import Path

from pydantic import TypeAdapter

from trilens.errors import BadInput, CollectionDamaged, CollectionError, CollectionMissing, OutOfResources
from trilens.store.backup.place import (
    BLOCK_BYTES,
    COMMITS,
    LOCK_NAME,
    UNFINISHED,
    BackupPlace,
    ByteSource,
    CheckedSource,
    read_small,
)
from trilens.store.check import BytesDone
from trilens.store.commit_record import CommitRecord, seal, unseal
from trilens.store.folders import FOLDER, MANIFEST, is_ours, parse_manifest
from trilens.store.schema import FileRecord, FolderRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """One backup: when it was made (UTC, ISO 8601), what it holds, and the size of its folders."""

    made: str
    documents: int
    bytes: int
    record: CommitRecord

    @property
    def commit(self) -> int:
        """The number of the commit."""
        return self.record.commit

    @property
    def name(self) -> str:
        """The name of its file in a place."""
        return f"{COMMITS}/{self.commit:019}.json"


BACKUP = TypeAdapter(Backup)


@dataclass(slots=True)
class Contents:
    """The readable backups of a place, oldest first, one line for each that is not readable, and the sizes of all files."""

    place: BackupPlace
    sizes: dict[str, int]
    backups: list[Backup] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @staticmethod
    def read(place: BackupPlace) -> "Contents":
        """Read all records."""
        contents = Contents(place, place.sizes())
        for name in sorted(contents.sizes):
            if name.startswith(f"{COMMITS}/") and name.endswith(".json"):
                try:
                    backup = unseal(BACKUP, read_small(place, name), f"{name} in {place.name}", "use another backup")
                    contents.backups.append(_require_name(backup, name, place))
                except OutOfResources:  # says nothing about the backup
                    raise
                except CollectionError as error:
                    contents.problems.append(str(error))
        contents.backups.sort(key=lambda backup: (backup.made, backup.commit))
        return contents

    def find(self, commit: int | None) -> Backup:
        """The backup of a commit, or the last one that was made."""
        for backup in self.backups:
            if backup.commit == commit:
                return backup
        self.require_readable()
        if not self.backups:
            raise CollectionMissing(f"{self.place.name} holds no backup; make one with `trilens backup COLLECTION TARGET`")
        if commit is None:
            return self.backups[-1]
        raise BadInput(f"{self.place.name} has no backup of commit {commit}; it has {_listed(self.backups)}")

    def require_readable(self) -> None:
        """Raise if there is a backup whose record cannot be read."""
        if self.problems:
            others = f"; readable: {_listed(self.backups)}" if self.backups else ""
            raise CollectionDamaged(f"{self.problems[0]}{others}")

    def require_free_for(self, record: CommitRecord) -> None:
        """Refuse a place of another collection, of another history of this one, or with other files."""
        if any(backup.record.collection_id != record.collection_id for backup in self.backups):
            raise CollectionError(f"{self.place.name} holds backups of another collection; choose another place")
        if any(backup.commit == record.commit and backup.record != record for backup in self.backups):
            raise CollectionError(
                f"{self.place.name} has another commit {record.commit}: the collection was restored to an older one and has "
                "changed since; choose another place"
            )
        if not self.backups and not self.problems and any(not _is_part(name) for name in self.sizes):
            raise CollectionError(f"{self.place.name} holds other files; expected a new or empty place, or one of backups")

    def folder(self, folder_id: str, expected: str) -> FolderRecord:
        """The files of a folder including its manifest, which must have the expected checksum."""
        path = Path(FOLDER, folder_id, MANIFEST)
        content = read_small(self.place, path.as_posix())
        if blake2b(content, digest_size=16).hexdigest() != expected:
            raise CollectionDamaged(
                f"{path} in {self.place.name} has changed: it does not fit its checksum; use another backup"
            )
        return with_manifest(replace(parse_manifest(path, content), checksum=expected), len(content))

    def fault(self, folder: FolderRecord) -> str | None:
        """What is wrong with a folder in the place, as far as the presence and size of its files show it."""
        for file in folder.files:
            name = file_name(folder, file)
            if self.sizes.get(name) != file.bytes:
                return f"{name} in {self.place.name} has {self.sizes.get(name, 'no')} bytes; expected {file.bytes}"
        return None

    def source(self, folder: FolderRecord, file: FileRecord, content: ByteSource, report: BytesDone) -> CheckedSource:
        """A file of the place whose content is checked while it is read."""
        return CheckedSource(content, file, f"{file_name(folder, file)} in {self.place.name}", report)

    def verify(self, report: BytesDone) -> dict[str, str | None]:
        """Read the folders of all backups; what is wrong with each, or None."""
        folders = {folder_id: checksum for backup in self.backups for folder_id, checksum in backup.record.folders.items()}
        return {folder_id: self._verify(folder_id, checksum, report) for folder_id, checksum in folders.items()}

    def _verify(self, folder_id: str, checksum: str, report: BytesDone) -> str | None:
        try:
            folder = self.folder(folder_id, checksum)
            for file in folder.files:
                with self.place.open(file_name(folder, file)) as content:
                    source = self.source(folder, file, content, report)
                    while source.read(BLOCK_BYTES):
                        pass
                    source.finish()
        except CollectionDamaged as error:
            return str(error)
        return None

    def needing(self, folder_id: str) -> str:
        """The commits whose backups need a folder, for messages; empty if none does."""
        needing = [backup for backup in self.backups if folder_id in backup.record.folders]
        return _listed(needing) if needing else ""

    def write(self, backup: Backup) -> None:
        """Add a backup whose folders are in place; a backup of the same commit is replaced and becomes the last one."""
        content = seal(BACKUP, backup)
        self.place.write(backup.name, len(content), BytesIO(content))
        self.backups = [*(other for other in self.backups if other.commit != backup.commit), backup]

    def prune(self, keep: int | None) -> list[Backup]:
        """Remove all but the last `keep` backups, then every folder that no backup needs; returns the removed backups.

        As long as a record cannot be read, nothing is removed: the folders that it needs are unknown.
        """
        if self.problems or self.place.holds_one:
            return []
        removed = self.backups[:-keep] if keep else []
        self.place.remove(backup.name for backup in removed)
        self.backups = self.backups[len(removed) :]
        needed = {folder_id for backup in self.backups for folder_id in backup.record.folders}
        self.place.remove(_unneeded(self.sizes, needed))
        return removed


def file_name(folder: FolderRecord, file: FileRecord) -> str:
    """The name of a file in a place, and its path in a collection."""
    return f"{FOLDER}/{folder.id}/{file.path}"


def with_manifest(folder: FolderRecord, size: int) -> FolderRecord:
    """A folder whose last file is its manifest of this size: where the manifest is, the files before it are complete."""
    return replace(folder, files=(*folder.files, FileRecord(MANIFEST, size, folder.checksum)))


def _unneeded(names: Iterable[str], needed: set[str]) -> Iterator[str]:
    """Files of folders that no backup needs, and files that were not finished. Files that trilens has not written stay."""
    for name in names:
        folder, _, rest = name.partition("/")
        if _is_part(name) and (name.endswith(UNFINISHED) or (folder == FOLDER and rest.partition("/")[0] not in needed)):
            yield name


def _is_part(name: str) -> bool:
    """Whether trilens gives this name to files of backups."""
    folder, _, rest = name.partition("/")
    return name == LOCK_NAME or folder == COMMITS or (folder == FOLDER and is_ours(rest.partition("/")[0]))


def _require_name(backup: Backup, name: str, place: BackupPlace) -> Backup:
    if backup.name != name:
        raise CollectionDamaged(f"{name} in {place.name} is the record of commit {backup.commit}; give it back its name")
    return backup


def _listed(backups: list[Backup]) -> str:
    commits = [backup.commit for backup in backups]
    shown = ", ".join(map(str, commits[-10:]))
    return f"the commits {shown}" if len(commits) <= 10 else f"{len(commits)} others, the last being {shown}"
