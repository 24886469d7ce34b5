"""A segment: the rows of some documents and what every lens keeps for them, written once and never changed.

segments/<id>/rows/keys.npy         document of each row, ascending
segments/<id>/rows/starts|ends.npy  where the row's passage lies in the document's text, in characters
segments/<id>/<lens>/…              the lens's part
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trilens.represent.arrays import open_array, save_arrays
from trilens.store.folders import require_whole, write_folder
from trilens.store.lenses import Lenses
from trilens.store.schema import SegmentRecord


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
        folder = require_whole(root, record)
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


def write_segment(root: Path, rows: Rows, fill: Callable[[Path], None]) -> SegmentRecord:
    """Write a segment; `fill` writes the parts of the lenses."""

    def fill_all(folder: Path) -> bool:
        rows.save(folder / "rows")
        fill(folder)
        return True

    written = write_folder(root, fill_all)
    assert written is not None
    documents = len(np.unique(rows.keys))
    return SegmentRecord(written.id, written.files, int(rows.keys[0]), int(rows.keys[-1]), len(rows.keys), documents)
