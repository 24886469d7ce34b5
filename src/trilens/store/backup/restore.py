"""Restoring a backup as a collection."""

from pathlib import Path

from trilens.store.backup.contents import Backup, Contents, file_name
from trilens.store.backup.folder_place import write_file
from trilens.store.backup.place import BackupPlace
from trilens.store.check import BytesDone
from trilens.store.commit_record import CommitRecord
from trilens.store.creation import create_collection
from trilens.store.failures import clear_errors
from trilens.store.folders import sweep
from trilens.store.schema import FolderRecord


def list_backups(place: BackupPlace) -> list[Backup]:
    """The backups of a place, oldest first; one that is not readable is an error."""
    contents = Contents.read(place)
    contents.require_readable()
    return contents.backups


def restore_backup(
    place: BackupPlace, root: Path, *, commit: int | None = None, report: BytesDone = lambda count: None
) -> Backup:
    """Make a collection of a backup, by default of the last one, at a path that is new or empty.

    All files are compared with their checksums. The catalog comes last: after an interruption there is no collection, and the
    same call begins again.
    """
    contents = Contents.read(place)
    backup = contents.find(commit)
    restore_record(contents, backup.record, root, report)
    return backup


def restore_record(contents: Contents, record: CommitRecord, root: Path, report: BytesDone) -> None:
    """Make a collection of a commit whose folders are in a place."""

    def fill() -> None:
        sweep(root, set())  # what an interrupted restoration has left
        try:
            for folder_id, checksum in record.folders.items():
                copy_folder(contents, contents.folder(folder_id, checksum), root, report)
        except BaseException:
            sweep(root, set())
            raise

    create_collection(root, record, fill)


def copy_folder(contents: Contents, folder: FolderRecord, root: Path, report: BytesDone) -> None:
    """Copy a folder from a place, comparing its files with their checksums."""
    for file in folder.files:
        name = file_name(folder, file)
        with contents.place.open(name) as content:
            source = contents.source(folder, file, content, report)
            with clear_errors(root):
                write_file(root / name, source)
            source.finish()
