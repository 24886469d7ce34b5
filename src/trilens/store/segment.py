"""Segments: immutable folders with documents, the rows of their passages and the parts of all lenses.

segments/<id>/documents/…           the documents (documents.py)
segments/<id>/rows/keys.npy         document key of each row, ascending
segments/<id>/rows/starts|ends.npy  character span of the row's passage in the document's text
segments/<id>/<lens>/…              the part of a lens
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trilens.errors import CollectionDamaged
from trilens.kernels.array_types import Int32s, Int64s, Mask
from trilens.represent.arrays import save_arrays
from trilens.represent.stored import StoredArrays
from trilens.store.documents import DocumentsPart
from trilens.store.folders import REPAIR, require_whole, write_folder
from trilens.store.lens_set import LensSet
from trilens.store.schema import SegmentRecord

DOCUMENTS, ROWS = "documents", "rows"  # folders inside a segment


@dataclass(frozen=True, eq=False, slots=True)
class PassageRows:
    """The document key and passage span of each row."""

    keys: Int64s
    starts: Int32s
    ends: Int32s

    def save(self, folder: Path) -> None:
        """Write the arrays."""
        save_arrays(folder, keys=self.keys, starts=self.starts, ends=self.ends)

    @staticmethod
    def open(folder: Path) -> "PassageRows":
        """Memory-map the arrays."""
        arrays = StoredArrays(folder)
        keys = arrays.open("keys", np.int64, (None,))
        arrays.require(
            len(keys) > 0 and bool((keys[:-1] <= keys[1:]).all()), "keys", "unordered keys or none", "ascending ones"
        )
        most = np.iinfo(np.int32).max
        starts, ends = (arrays.integers(name, 0, most, keys.shape) for name in ("starts", "ends"))
        arrays.require(bool((starts <= ends).all()), "ends", "a passage that ends before its start", "none")
        return PassageRows(keys, starts, ends)


class Segment:
    """An open segment. All files are mapped at once, so it stays readable when a merge removes them."""

    def __init__(self, root: Path, record: SegmentRecord, lenses: LensSet) -> None:
        self.record = record
        folder = require_whole(root, record)
        self.documents = DocumentsPart.open(folder / DOCUMENTS)
        self.rows = PassageRows.open(folder / ROWS)
        self.parts: dict[str, Any] = {name: lenses[name].open(folder / lenses.folder(name)) for name in lenses.names}
        self._require_fitting(folder)

    def __len__(self) -> int:
        return self.record.rows

    def _require_fitting(self, folder: Path) -> None:
        """Raise if the parts differ in their rows or documents."""
        record, keys = self.record, self.rows.keys
        lengths = {name: len(part) for name, part in {ROWS: keys, **self.parts}.items()}
        if wrong := [name for name, length in lengths.items() if length != record.rows]:
            raise CollectionDamaged(f"{folder / wrong[0]} has {lengths[wrong[0]]} rows; expected {record.rows}: {REPAIR}")
        if (keys[0], keys[-1]) != (record.first_key, record.last_key):
            raise CollectionDamaged(f"{folder / ROWS} has the keys {keys[0]} to {keys[-1]}; expected others: {REPAIR}")
        # Of a deleted document there may be rows alone, where an upgrade found no more; otherwise the faster test suffices.
        stored, first_rows = self.documents.keys, np.diff(keys, prepend=-1) > 0
        if not np.array_equal(stored, keys[first_rows]) and not np.isin(stored, keys).all():
            raise CollectionDamaged(f"{folder / DOCUMENTS} has other keys than {folder / ROWS}; {REPAIR}")

    def mask(self, keys: Int64s) -> Mask:
        """Mask of the rows whose document key is in `keys`, which are ascending."""
        mask: Mask = np.zeros(len(self), np.bool_)
        if len(keys):
            positions = np.minimum(np.searchsorted(keys, self.rows.keys), len(keys) - 1)
            mask = keys[positions] == self.rows.keys
        return mask


def write_segment(root: Path, rows: PassageRows, fill: Callable[[Path], None]) -> SegmentRecord:
    """Write a segment; `fill` writes the documents and the parts of the lenses into its folder."""
    keys = (int(rows.keys[0]), int(rows.keys[-1]))
    counts = (len(rows.keys), len(np.unique(rows.keys)))

    def describe(folder_id: str) -> SegmentRecord:
        return SegmentRecord(id=folder_id, first_key=keys[0], last_key=keys[1], rows=counts[0], documents=counts[1])

    def fill_all(folder: Path) -> bool:
        rows.save(folder / ROWS)
        fill(folder)
        return True

    written = write_folder(root, describe, fill_all)
    assert written is not None
    return written
