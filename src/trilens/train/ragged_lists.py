"""`RaggedLists`: one list of numbers per example, stored as two flat arrays."""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from trilens.kernels.array_types import Int64s
from trilens.represent.ragged import offsets_of, take_ragged

DTYPES = {"i": np.int32, "f": np.float32}


@dataclass(frozen=True, eq=False, slots=True)
class RaggedLists:
    """Lists of numbers; list i is `values[offsets[i]:offsets[i + 1]]`."""

    offsets: Int64s
    values: NDArray[Any]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> NDArray[Any]:
        return self.values[self.offsets[index] : self.offsets[index + 1]]

    @property
    def lengths(self) -> Int64s:
        """Length of each list."""
        return np.diff(self.offsets)

    def take(self, rows: NDArray[np.integer]) -> "RaggedLists":
        """The lists at `rows`, in that order."""
        offsets, picked = take_ragged(self.offsets, rows)
        return RaggedLists(offsets, self.values[picked])

    @staticmethod
    def of(rows: Iterable[Iterable[float]], kind: Literal["i", "f"] = "i") -> "RaggedLists":
        """Build from an iterable of lists."""
        builder = RaggedListsBuilder(kind)
        for row in rows:
            builder.add(row)
        return builder.lists()


class RaggedListsBuilder:
    """Collects lists in compact arrays. `kind`: "i" for integers, "f" for floats."""

    def __init__(self, kind: Literal["i", "f"] = "i") -> None:
        self._kind = kind
        self._values = array(kind)
        self._lengths = array("q")

    def add(self, row: Iterable[float]) -> None:
        """Append a list."""
        before = len(self._values)
        self._values.extend(row)  # type: ignore[arg-type]
        self._lengths.append(len(self._values) - before)

    def lists(self) -> RaggedLists:
        """All lists."""
        values = np.frombuffer(self._values, DTYPES[self._kind]) if self._values else np.empty(0, DTYPES[self._kind])
        lengths = np.frombuffer(self._lengths, np.int64) if self._lengths else np.empty(0, np.int64)
        return RaggedLists(offsets_of(lengths), values)
