"""Candidate generation of a multi search: the rows of all segments with the highest gains, and the buffers for summing them."""

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from trilens.kernels.array_types import Float32s, Int32s, Mask
from trilens.kernels.multi import keep_best
from trilens.kernels.retrieved_tokens import RetrievedRows, RowGains

Candidates = tuple[Int32s, Float32s]
"""Rows of one segment and their gains."""


class CandidateBuffers:
    """Per-row arrays of one search in one segment: zeros, whose pages are allocated when they are touched."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self.gains = np.zeros(rows, np.float32)
        self.touched = np.empty(rows, np.int32)

    @cached_property
    def last_token(self) -> Int32s:
        """1 + the last query token that added to the gain of each row."""
        return np.zeros(self._rows, np.int32)

    @cached_property
    def retrieved(self) -> RetrievedRows:
        """Rows that one query token retrieved."""
        return RetrievedRows(np.zeros(self._rows, np.float32), np.zeros(self._rows, np.bool_), np.empty(self._rows, np.int32))

    @cached_property
    def row_gains(self) -> RowGains:
        """Rows that any query token retrieved."""
        return RowGains(self.gains, np.zeros(self._rows, np.bool_), self.touched)


Gather = Callable[[int, Mask | None, CandidateBuffers], int]
"""Fills `gains` and `touched` for the allowed rows of a segment; returns the number of touched rows."""


def best_candidates(gather: Gather, segment_rows: Sequence[int], masks: Sequence[Mask | None], keep: int) -> list[Candidates]:
    """About `keep` rows of all segments together, those with the highest gains."""
    candidates = []
    for i, mask in enumerate(masks):
        buffers = CandidateBuffers(segment_rows[i])
        count = gather(i, mask, buffers)
        count = keep_best(buffers.gains, buffers.touched, count, keep)
        rows = buffers.touched[:count]
        candidates.append((rows, buffers.gains[rows]))
    lowest = nth_highest([gains for _, gains in candidates], keep)
    return [(rows[gains >= lowest], gains[gains >= lowest]) for rows, gains in candidates]


def nth_highest(scores: Sequence[Float32s], n: int) -> float:
    """The n-th highest of all scores; -inf if there are at most n."""
    joined = np.concatenate(scores) if scores else np.empty(0, np.float32)
    return float(np.partition(joined, len(joined) - n)[len(joined) - n]) if len(joined) > n else -np.inf
