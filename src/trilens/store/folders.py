"""Immutable folders of a collection: written, synced to disk, then renamed to their final name.

Segments and shared parts are such folders. Both live in `segments/`. The manifest of a folder lists its files with their
checksums, and the catalog holds the checksum of the manifest, so a folder can be copied and verified without the catalog.
"""

import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from trilens.errors import CollectionDamaged
from trilens.store.schema import FileRecord, FolderRecord, SegmentRecord, SharedRecord

FOLDER = "segments"
MANIFEST = "manifest.json"
UNFINISHED = "unfinished-"
READ_BYTES = 1 << 20
RECORD: TypeAdapter[SegmentRecord | SharedRecord] = TypeAdapter(SegmentRecord | SharedRecord)

Record = TypeVar("Record", SegmentRecord, SharedRecord)


def write_folder(root: Path, describe: Callable[[str], Record], fill: Callable[[Path], bool]) -> Record | None:
    """Write a folder under a temporary name, sync it to disk and rename it.

    `fill` writes the files. If it returns False, the folder is removed and the result is None. `describe` makes the record
    of a folder with this id, without its files.
    """
    folder_id = secrets.token_hex(8)
    folder = root / FOLDER / f"{UNFINISHED}{folder_id}"
    try:
        if not fill(folder):
            shutil.rmtree(folder, ignore_errors=True)
            return None
        record = finish_folder(folder, describe(folder_id))
        folder.rename(root / FOLDER / folder_id)
        force(root / FOLDER)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return record


def finish_folder(folder: Path, record: Record) -> Record:
    """Sync the files of a folder to disk and write its manifest; returns the record with files and checksum."""
    files = tuple(record_file(folder, path) for path in sorted(folder.rglob("*")) if path.is_file())
    return write_manifest(folder, replace(record, files=files))


def write_manifest(folder: Path, record: Record) -> Record:
    """Write the manifest of a folder and sync it and all entries to disk; returns the record with the checksum."""
    content = RECORD.dump_json(record, exclude={"checksum"})
    (folder / MANIFEST).write_bytes(content)
    for path in (folder / MANIFEST, folder, *(path for path in folder.rglob("*") if path.is_dir())):
        force(path)
    return replace(record, checksum=blake2b(content, digest_size=16).hexdigest())


def read_record(root: Path, folder_id: str, expected: str) -> SegmentRecord | SharedRecord:
    """The record of a folder, whose manifest must have the expected checksum."""
    if not is_ours(folder_id):
        raise CollectionDamaged(f"the catalog of {root} names a folder {folder_id[:40]!r}; expected 16 hexadecimal digits")
    path = root / FOLDER / folder_id / MANIFEST
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise CollectionDamaged(f"{path} is missing; {REPAIR}") from error
    if blake2b(content, digest_size=16).hexdigest() != expected:
        raise CollectionDamaged(f"{path} has changed: its checksum is not the one in the catalog; {REPAIR}")
    return replace(parse_manifest(path, content), checksum=expected)


def parse_manifest(path: Path, content: bytes) -> SegmentRecord | SharedRecord:
    """The record in a manifest, whose file names must stay inside the folder."""
    try:
        record = RECORD.validate_json(content)
    except ValidationError as error:
        raise CollectionDamaged(f"{path} is not a manifest of this format; {REPAIR}") from error
    if record.id != path.parent.name.removeprefix(UNFINISHED) or not all(_is_inside(file.path) for file in record.files):
        raise CollectionDamaged(f"{path} describes another folder; {REPAIR}")
    return record


REPAIR = "run `trilens check --repair` or restore a backup"


def require_whole(root: Path, record: FolderRecord, inside: str = "", *, read: bool = False) -> Path:
    """The path of a folder, after checking that all files exist with the recorded size. Other files must not be mapped.

    `inside` limits this to a folder in it, whose path is returned. With `read`, checksums are compared as well.
    """
    folder = root / FOLDER / record.id
    for file in record.files:
        if file.path.startswith(inside) and (problem := file_problem(folder, file, read)):
            raise CollectionDamaged(f"{problem}; {REPAIR}")
    return folder / inside


def file_problem(folder: Path, file: FileRecord, read: bool = True) -> str | None:
    """What is wrong with a file of a folder; None if nothing is. Its checksum is compared only with `read`."""
    path = folder / file.path
    try:
        found = path.stat()  # once: a merge may remove the file at any time
    except (FileNotFoundError, NotADirectoryError):
        return f"{path} is missing"
    if not stat.S_ISREG(found.st_mode):
        return f"{path} is not a file"
    if found.st_size != file.bytes:
        return f"{path} has {found.st_size} bytes; expected {file.bytes}"
    if read and checksum(path) != file.checksum:
        return f"{path} has changed: its checksum is not the one in the catalog"
    return None


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


def _is_inside(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return bool(parts) and not path.startswith("/") and ".." not in parts
