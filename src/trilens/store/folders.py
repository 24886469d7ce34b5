"""Immutable folders of a collection: written, synced to disk, then renamed to their final name.

Segments and shared parts are such folders. Both live in `segments/`; the catalog records which is which.
"""

import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path

from trilens.errors import CollectionDamaged
from trilens.store.schema import FileRecord, FolderRecord

FOLDER = "segments"
UNFINISHED = "unfinished-"
READ_BYTES = 1 << 20


def write_folder(root: Path, fill: Callable[[Path], bool]) -> FolderRecord | None:
    """Write a folder under a temporary name, sync it to disk and rename it.

    `fill` writes the files. If it returns False, the folder is removed and the result is None.
    """
    folder_id = secrets.token_hex(8)
    folder = root / FOLDER / f"{UNFINISHED}{folder_id}"
    try:
        if not fill(folder):
            shutil.rmtree(folder, ignore_errors=True)
            return None
        files = tuple(record_file(folder, path) for path in sorted(folder.rglob("*")) if path.is_file())
        for directory in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
            force(directory)
        folder.rename(root / FOLDER / folder_id)
        force(root / FOLDER)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return FolderRecord(folder_id, files)


def require_whole(root: Path, record: FolderRecord) -> Path:
    """The path of a folder, after checking that all files exist with the recorded size. Other files must not be mapped."""
    folder = root / FOLDER / record.id
    for file in record.files:
        path = folder / file.path
        try:
            size = path.stat().st_size
        except FileNotFoundError as error:
            raise CollectionDamaged(f"{path} is missing; restore a copy of the collection or index again") from error
        if size != file.bytes:
            raise CollectionDamaged(
                f"{path} has {size} bytes; expected {file.bytes}: restore a copy of the collection or index again"
            )
    return folder


def record_file(folder: Path, path: Path) -> FileRecord:
    """Sync a file to disk and return its record."""
    force(path)
    return FileRecord(path.relative_to(folder).as_posix(), path.stat().st_size, checksum(path))


def checksum(path: Path) -> str:
    """Checksum of a file."""
    digest = blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(READ_BYTES):
            digest.update(block)
    return digest.hexdigest()


def force(path: Path) -> None:
    """Sync a file, or the entries of a folder, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def is_ours(name: str) -> bool:
    """Whether a name is one that `write_folder` gives to folders."""
    name = name.removeprefix(UNFINISHED)
    return len(name) == 16 and set(name) <= set("0123456789abcdef")


def orphans(root: Path, known: set[str]) -> Iterator[Path]:
    """Folders that the catalog does not name: left by a process that died, or replaced by a merge."""
    for path in (root / FOLDER).glob("*"):  # tolerates a missing folder: copying can drop empty folders
        if path.name not in known and is_ours(path.name):
            yield path


def sweep(root: Path, known: set[str]) -> None:
    """Remove orphans. Folders that cannot be removed (open files on some systems) are left for the next sweep."""
    for path in orphans(root, known):
        shutil.rmtree(path, ignore_errors=True)
