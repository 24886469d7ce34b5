"""A segment: the rows of some documents and what every lens keeps for them, written once and never changed.

segments/<id>/rows/keys.npy         document of each row, ascending
segments/<id>/rows/starts|ends.npy  where the row's passage lies in the document's text, in characters
segments/<id>/<lens>/…              the lens's part
"""

import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trilens.errors import CollectionDamaged
from trilens.represent.arrays import open_array, save_arrays
from trilens.store.catalog import FileRecord, SegmentRecord
from trilens.store.lenses import Lenses

FOLDER = "segments"
UNFINISHED = "unfinished-"
READ_BYTES = 1 << 20


@dataclass(frozen=True, eq=False, slots=True)
class Rows:
    """Which passage of which document each row is."""

    keys: NDArray[np.int64]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]

    def save(self, folder: Path) -> None:
        """Write the arrays."""
        save_arrays(folder, keys=self.keys, starts=self.starts, ends=self.ends)

    @staticmethod
    def open(folder: Path) -> "Rows":
        """Map the arrays."""
        return Rows(*(open_array(folder, name) for name in ("keys", "starts", "ends")))


class Segment:
    """An opened segment: everything mapped at once, so that it stays readable even when a merge removes the files."""

    def __init__(self, root: Path, record: SegmentRecord, lenses: Lenses) -> None:
        self.record = record
        folder = root / FOLDER / record.id
        for file in record.files:
            require_whole(folder, file)
        self.rows = Rows.open(folder / "rows")
        self.parts: dict[str, Any] = {name: lenses[name].open(folder / name) for name in lenses.names}

    def __len__(self) -> int:
        return self.record.rows

    def mask(self, keys: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Marks the rows whose document is among the (ascending) keys."""
        mask: NDArray[np.bool_] = np.zeros(len(self), np.bool_)
        if len(keys):
            places = np.minimum(np.searchsorted(keys, self.rows.keys), len(keys) - 1)
            mask = keys[places] == self.rows.keys
        return mask


def require_whole(folder: Path, file: FileRecord) -> None:
    """A file that is missing or of another size must never be mapped."""
    path = folder / file.path
    try:
        size = path.stat().st_size
    except FileNotFoundError as error:
        raise CollectionDamaged(f"{path} is missing; restore a copy of the collection or index again") from error
    if size != file.bytes:
        raise CollectionDamaged(
            f"{path} has {size} bytes; expected {file.bytes}: restore a copy of the collection or index again"
        )


def write_segment(root: Path, rows: Rows, fill: Callable[[Path], None]) -> SegmentRecord:
    """Write a segment completely, force it to the disk, and only then give it its name."""
    segment_id = secrets.token_hex(8)
    folder = root / FOLDER / f"{UNFINISHED}{segment_id}"
    try:
        rows.save(folder / "rows")
        fill(folder)
        files = tuple(record_file(folder, path) for path in sorted(folder.rglob("*")) if path.is_file())
        for directory in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
            force(directory)
        folder.rename(root / FOLDER / segment_id)
        force(root / FOLDER)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    documents = len(np.unique(rows.keys))
    return SegmentRecord(files, segment_id, int(rows.keys[0]), int(rows.keys[-1]), len(rows.keys), documents)


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
    """Whether a folder name is one that `write_segment` gives."""
    name = name.removeprefix(UNFINISHED)
    return len(name) == 16 and set(name) <= set("0123456789abcdef")


def strays(root: Path, known: set[str]) -> Iterator[Path]:
    """Segments that no catalog names: left behind by a process that died, or replaced by a merge."""
    for path in (root / FOLDER).glob("*"):  # none where an empty folder was lost in copying
        if path.name not in known and is_ours(path.name):
            yield path


def sweep(root: Path, known: set[str]) -> None:
    """Remove the strays. What cannot be removed (still open on some systems) is left for the next time."""
    for path in strays(root, known):
        shutil.rmtree(path, ignore_errors=True)
