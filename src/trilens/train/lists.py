"""`Lists`: a list of numbers for each of many examples, as two flat arrays."""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from trilens.represent.ragged import offsets_of, take_ragged

DTYPES = {"i": np.int32, "f": np.float32}


@dataclass(frozen=True, eq=False, slots=True)
class Lists:
    """List i is `values[offsets[i]:offsets[i + 1]]`."""

    offsets: NDArray[np.int64]
    values: NDArray[Any]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, at: int) -> NDArray[Any]:
        return self.values[self.offsets[at] : self.offsets[at + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How long each list is."""
        return np.diff(self.offsets)

    def take(self, rows: NDArray[np.integer]) -> "Lists":
        """The lists at `rows`, in that order."""
        offsets, picked = take_ragged(self.offsets, rows)
        return Lists(offsets, self.values[picked])

    @staticmethod
    def of(rows: Iterable[Iterable[float]], kind: Literal["i", "f"] = "i") -> "Lists":
        """From lists of numbers."""
        maker = ListsMaker(kind)
        for row in rows:
            maker.add(row)
        return maker.lists()


class ListsMaker:
    """Collects lists in the room that their arrays take. `kind`: "i" for whole numbers, "f" for scores."""

    def __init__(self, kind: Literal["i", "f"] = "i") -> None:
        self._kind = kind
        self._values = array(kind)
        self._lengths = array("q")

    def add(self, row: Iterable[float]) -> None:
        """One more list."""
        before = len(self._values)
        self._values.extend(row)  # type: ignore[arg-type]
        self._lengths.append(len(self._values) - before)

    def lists(self) -> Lists:
        """All lists."""
        values = np.frombuffer(self._values, DTYPES[self._kind]) if self._values else np.empty(0, DTYPES[self._kind])
        lengths = np.frombuffer(self._lengths, np.int64) if self._lengths else np.empty(0, np.int64)
        return Lists(offsets_of(lengths), values)
