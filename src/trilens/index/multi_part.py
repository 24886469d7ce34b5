"""`MultiPart`: the token codes of one segment, and for each centroid the rows with a token near it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trilens.errors import CollectionDamaged
from trilens.index.codebook import CODE_ARRAYS, Codebook, Codes, Page
from trilens.kernels.array_types import Int32s, Int64s, Mask
from trilens.kernels.token_lists import count_lists, fill_lists
from trilens.represent import Multi
from trilens.represent.arrays import create_array, save_arrays
from trilens.represent.ragged import concat_offsets
from trilens.represent.stored import StoredArrays

COPY_ROWS = 4096


@dataclass(frozen=True, eq=False, slots=True)
class MultiPart:
    """Row i has the tokens `offsets[i]:offsets[i + 1]` of `codes`; the rows `list_rows[list_ptr[c]:list_ptr[c + 1]]` have a
    token whose nearest centroid is c. `error` is the sum of the squared quantisation errors of all tokens."""

    offsets: Int64s
    codes: Codes
    list_ptr: Int64s
    list_rows: Int32s
    error: float

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @staticmethod
    def open(folder: Path) -> "MultiPart":
        """Map a part that `build` or `merge` wrote."""
        arrays = StoredArrays(folder)
        nearest = arrays.open("nearest", (np.uint16, np.uint32), (None,))
        residuals = arrays.open("residuals", np.uint8, (len(nearest), None))
        sizes, stretches = (arrays.open(name, np.uint8, nearest.shape) for name in ("sizes", "stretches"))
        list_rows = arrays.open("list_rows", np.int32, (None,))
        return MultiPart(
            arrays.pointers("offsets", len(nearest)),
            Codes(nearest, residuals, sizes, stretches),
            arrays.pointers("list_ptr", len(list_rows)),
            list_rows,
            arrays.number("error", np.float64, 0, np.finfo(np.float64).max),
        )

    @staticmethod
    def build(multi: Multi, pages: Sequence[Page], folder: Path) -> None:
        """Write the codes of one batch."""
        if not pages:  # no text so far had a token
            _save_empty(folder, len(multi))
            return
        codebook = Codebook(pages)
        codes, errors = codebook.encode(multi.vectors)
        save_arrays(folder, offsets=multi.offsets, **{name: getattr(codes, name) for name in CODE_ARRAYS})
        _save_lists(folder, multi.offsets, codes.nearest, len(codebook.centroids), float(errors.sum()))

    @staticmethod
    def merge(parts: Sequence["MultiPart"], keep: Sequence[Mask], pages: Sequence[Page], folder: Path) -> None:
        """Copy the codes of the kept rows piece by piece, and rebuild the lists."""
        lengths = [np.diff(part.offsets)[mask] for part, mask in zip(parts, keep, strict=True)]
        offsets = concat_offsets([np.concatenate([[0], np.cumsum(kept)]) for kept in lengths])
        first = next((part for part in parts if len(part.codes)), parts[0])
        centroid_dtype = np.result_type(*(part.codes.nearest.dtype for part in parts))
        arrays = {}
        for name in CODE_ARRAYS:
            like = getattr(first.codes, name)
            dtype = centroid_dtype if name == "nearest" else like.dtype
            arrays[name] = create_array(folder, name, dtype, (int(offsets[-1]), *like.shape[1:]))
        copied, error, centroids = 0, 0.0, sum(len(page.centroids) for page in pages)
        for part, mask in zip(parts, keep, strict=True):
            kept = 0
            for start in range(0, len(part), COPY_ROWS):
                rows = mask[start : start + COPY_ROWS]
                low, high = part.offsets[start], part.offsets[start + len(rows)]
                tokens = np.repeat(rows, np.diff(part.offsets[start : start + len(rows) + 1]))
                count = int(tokens.sum())
                for name, array in arrays.items():
                    array[copied + kept : copied + kept + count] = getattr(part.codes, name)[low:high][tokens]
                highest = int(arrays["nearest"][copied + kept : copied + kept + count].max(initial=0))
                if count and highest >= centroids:
                    raise CollectionDamaged(
                        f"a segment of {folder} names the centroid {highest} of {centroids}; run `trilens check`"
                    )
                kept += count
            copied += kept
            error += part.error * kept / max(1, len(part.codes))
        save_arrays(folder, offsets=offsets)
        _save_lists(folder, offsets, arrays["nearest"], centroids, error)


def _save_empty(folder: Path, rows: int) -> None:
    """Write a part whose rows have no tokens."""
    offsets, nearest = np.zeros(rows + 1, np.int64), np.zeros(0, np.uint16)
    no_bytes = np.zeros(0, np.uint8)
    save_arrays(folder, offsets=offsets, nearest=nearest, residuals=no_bytes[:, None], sizes=no_bytes, stretches=no_bytes)
    _save_lists(folder, offsets, nearest, 0, 0.0)


def _save_lists(folder: Path, offsets: Int64s, nearest: NDArray[Any], centroids: int, error: float) -> None:
    list_ptr = count_lists(offsets, nearest, centroids)
    list_rows = create_array(folder, "list_rows", np.int32, (int(list_ptr[-1]),))
    fill_lists(offsets, nearest, list_ptr, list_rows)
    save_arrays(folder, list_ptr=list_ptr, error=np.array(error))
