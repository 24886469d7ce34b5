"""`StoredArrays`: the arrays of a folder, checked when they are opened, so that no kernel reads outside of them.

Whatever a file says, an array that is returned has the expected type and shape, and its numbers are in range where that takes
one pass over an array of rows or terms. Arrays of postings and codes are too large for that: kernels check what they read.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from trilens.errors import CollectionDamaged
from trilens.kernels.array_types import AnyArray, Int32s, Int64s
from trilens.represent.arrays import open_array


class StoredArrays:
    """The arrays of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open(self, name: str, dtypes: DTypeLike | tuple[DTypeLike, ...], shape: tuple[int | None, ...]) -> AnyArray:
        """An array of one of these types; a length of None is any."""
        array = open_array(self.folder, name)
        allowed = dtypes if isinstance(dtypes, tuple) else (dtypes,)
        fits = len(array.shape) == len(shape) and all(
            wanted in (None, length) for length, wanted in zip(array.shape, shape, strict=True)
        )
        if not fits:
            raise self._fault(name, f"shape {array.shape}", f"{shape}".replace("None", "any"))
        if array.dtype not in allowed:
            raise self._fault(name, str(array.dtype), " or ".join(str(np.dtype(known)) for known in allowed))
        return array

    def number(self, name: str, dtypes: DTypeLike | tuple[DTypeLike, ...], least: float, most: float) -> Any:
        """A single number in a range."""
        value = self.open(name, dtypes, ())[()]
        self.require(bool(least <= value <= most), name, str(value), f"{least} to {most}")
        return value.item()

    def pointers(self, name: str, end: int, count: int | None = None) -> Int64s:
        """The edges of `count` rows or lists in a flat array of `end` items: from 0, ascending, to the end."""
        edges = self.open(name, np.int64, (None if count is None else count + 1,))
        fits = len(edges) > 0 and edges[0] == 0 and edges[-1] == end and bool((edges[:-1] <= edges[1:]).all())
        self.require(fits, name, "other offsets", f"ascending ones from 0 to {end}")
        return edges

    def integers(self, name: str, least: int, most: int, shape: tuple[int | None, ...] = (None,)) -> Int32s:
        """32-bit integers in a range."""
        values = self.open(name, np.int32, shape)
        fits = not values.size or bool(least <= values.min() and values.max() <= most)
        self.require(fits, name, "numbers out of range", f"{least} to {most}")
        return values

    def ids(self, name: str, below: int) -> Int32s:
        """Distinct ascending 32-bit numbers from 0 to `below`, which is excluded."""
        values = self.integers(name, 0, below - 1)
        self.require(bool((values[:-1] < values[1:]).all()), name, "repeated or unordered numbers", "ascending ones")
        return values

    def floats(self, name: str, shape: tuple[int | None, ...]) -> AnyArray:
        """Finite 32-bit floats."""
        values = self.open(name, np.float32, shape)
        self.require(bool(np.isfinite(values).all()), name, "NaN or infinite values", "finite ones")
        return values

    def require(self, fits: bool, name: str, given: str, expected: str) -> None:
        """Raise if an array is not as expected."""
        if not fits:
            raise self._fault(name, given, expected)

    def _fault(self, name: str, given: str, expected: str) -> CollectionDamaged:
        return CollectionDamaged(
            f"{self.folder / name}.npy has {given}; expected {expected}: run `trilens check` and restore it or index again"
        )
