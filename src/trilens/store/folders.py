"""A folder of the collection: written completely, forced to the disk, named, and never changed afterwards.

Segments and shared parts are such folders. They lie side by side in `segments/`; the catalog knows which is which.
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
    """Write a folder completely, force it to the disk, and only then give it its name.

    `fill` writes the files and says whether there is anything to keep; otherwise there will be no folder.
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
    """The path of a folder whose files are all there. One that is missing or of another size must never be mapped."""
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
    """Force a file to the disk and remember what it holds."""
    force(path)
    return FileRecord(path.relative_to(folder).as_posix(), path.stat().st_size, checksum(path))


def checksum(path: Path) -> str:
    """Of the whole file."""
    digest = blake2b(digest_size=16)
    with path.open("rb") as file:
        while piece := file.read(READ_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def force(path: Path) -> None:
    """Wait until the disk has the file, or the names in the folder."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def is_ours(name: str) -> bool:
    """Whether a folder name is one that `write_folder` gives."""
    name = name.removeprefix(UNFINISHED)
    return len(name) == 16 and set(name) <= set("0123456789abcdef")


def strays(root: Path, known: set[str]) -> Iterator[Path]:
    """Folders that no catalog names: left behind by a process that died, or replaced by others."""
    for path in (root / FOLDER).glob("*"):  # none where an empty folder was lost in copying
        if path.name not in known and is_ours(path.name):
            yield path


def sweep(root: Path, known: set[str]) -> None:
    """Remove the strays. What cannot be removed (still open on some systems) is left for the next time."""
    for path in strays(root, known):
        shutil.rmtree(path, ignore_errors=True)
