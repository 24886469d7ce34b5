"""`DensePart`: the vectors of one segment and, for a large one, a faiss IVF index over 8-bit codes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trilens.index.ivf_file import has_faiss, open_ivf, write_ivf
from trilens.kernels.array_types import Mask
from trilens.represent import Dense
from trilens.represent.arrays import create_array

ANN_FILE = "ivf.faiss"
COPY_ROWS = 16_384
SAMPLES_PER_LIST = 64
SEED = 1234


@dataclass(frozen=True, eq=False, slots=True)
class DensePart:
    """Vectors, and a faiss index if the segment is large and faiss is installed; without one, the search is exact."""

    dense: Dense
    ann: Any

    def __len__(self) -> int:
        return len(self.dense)

    @staticmethod
    def open(folder: Path) -> "DensePart":
        """Map a part that `build` or `merge` wrote."""
        dense, path = Dense.open(folder), folder / ANN_FILE
        return DensePart(dense, open_ivf(path, dense.dim, len(dense)) if path.exists() else None)

    @staticmethod
    def build(dense: Dense, ann_rows: int, folder: Path) -> None:
        """Write the vectors of one batch."""
        dense.save(folder)
        _build_ann(dense, ann_rows, folder)

    @staticmethod
    def merge(parts: Sequence["DensePart"], keep: Sequence[Mask], ann_rows: int, folder: Path) -> None:
        """Copy the kept vectors piece by piece."""
        total = sum(int(mask.sum()) for mask in keep)
        vectors = create_array(folder, "vectors", np.float32, (total, parts[0].dense.dim))
        copied = 0
        for part, mask in zip(parts, keep, strict=True):
            for start in range(0, len(part), COPY_ROWS):
                piece = part.dense.vectors[start : start + COPY_ROWS][mask[start : start + COPY_ROWS]]
                vectors[copied : copied + len(piece)] = piece
                copied += len(piece)
        _build_ann(Dense(vectors), ann_rows, folder)


def _build_ann(dense: Dense, ann_rows: int, folder: Path) -> None:
    rows = len(dense)
    if rows < ann_rows or not has_faiss():
        return
    import faiss

    lists = 1 << round(np.log2(4 * np.sqrt(rows)))
    quantizer = faiss.IndexFlatIP(dense.dim)
    codes = faiss.ScalarQuantizer.QT_8bit
    ann = faiss.IndexIVFScalarQuantizer(quantizer, dense.dim, lists, codes, faiss.METRIC_INNER_PRODUCT)
    ann.cp.seed, ann.cp.min_points_per_centroid = SEED, 1
    sample_size = min(rows, SAMPLES_PER_LIST * lists)
    sample = np.sort(np.random.default_rng(SEED).choice(rows, sample_size, replace=False))
    ann.train(np.ascontiguousarray(dense.vectors[sample]))
    for start in range(0, rows, COPY_ROWS):
        ann.add(np.ascontiguousarray(dense.vectors[start : start + COPY_ROWS]))
    write_ivf(ann, folder / ANN_FILE)
