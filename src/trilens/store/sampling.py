"""`Sampling`: the random passages of a commit, which depend on its documents alone, not on its segments."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from trilens.kernels.array_types import Int64s, Mask, UInt64s
from trilens.lenses.statistics import SAMPLE_ROWS, Sample, sampling_numbers
from trilens.store.segment import Segment

LARGEST = (1 << 64) - 1


class Sampling:
    """Draws the rows with the smallest sampling numbers."""

    def __init__(self, segments: Sequence[Segment], live: Sequence[Mask | None]) -> None:
        self._segments = segments
        self._live = live
        self._samples: dict[str, tuple[int, Sample]] = {}

    @property
    def numbers(self) -> UInt64s:
        """The sampling numbers of the rows that are drawn, ascending."""
        return self._drawn[1]

    def sample(self, lens: str, limit: int = LARGEST) -> Sample:
        """The sample for a lens: of this commit, or its part of that of a larger collection, whose largest number is `limit`.

        The last one is kept.
        """
        known = self._samples.get(lens)
        if known is None or known[0] != limit:
            rows, numbers = self._drawn
            known = self._samples[lens] = (limit, Sample(np.sort(rows[numbers <= np.uint64(limit)])))
        return known[1]

    @cached_property
    def _drawn(self) -> tuple[Int64s, UInt64s]:
        """The live rows with the smallest sampling numbers, and these numbers, ascending."""
        rows, numbers, first_row = np.empty(0, np.int64), np.empty(0, np.uint64), 0
        for segment, live in zip(self._segments, self._live, strict=True):
            drawn = sampling_numbers(segment.rows.keys, segment.rows.starts.astype(np.int64))
            here = np.arange(len(segment)) if live is None else np.flatnonzero(live)
            rows, numbers = np.concatenate([rows, first_row + here]), np.concatenate([numbers, drawn[here]])
            best = np.argsort(numbers, kind="stable")[:SAMPLE_ROWS]
            rows, numbers = rows[best], numbers[best]
            first_row += len(segment)
        return rows, numbers
