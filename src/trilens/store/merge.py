"""Merging neighbouring segments: when it pays, and how."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from trilens.index.lens import Mask
from trilens.kernels.postings import MOST_ROWS
from trilens.store.lenses import Lenses
from trilens.store.schema import SegmentRecord
from trilens.store.segment import Rows, Segment, write_segment
from trilens.store.shared import SharedParts

FANOUT = 8
SMALLEST = 1024  # rows; segments below this size are all alike


def tier(rows: int) -> int:
    """Segments of one tier are within a factor of FANOUT in size."""
    return max(0, math.floor(math.log(max(rows, 1) / SMALLEST, FANOUT)) + 1)


def choose(rows: Sequence[int], live: Sequence[int]) -> slice | None:
    """The run of neighbours to merge next, given each segment's rows and live rows; None if all is well.

    Segments at the end (the youngest) are merged when FANOUT of them are of the same tier or smaller, so that every row
    is copied only a logarithmic number of times. A segment with more dead than live rows is rewritten alone.
    """
    end = len(rows)
    if end >= FANOUT:
        last = tier(rows[-1])
        start = end
        while start > 0 and tier(rows[start - 1]) <= last:
            start -= 1
        if end - start >= FANOUT and sum(live[start:]) <= MOST_ROWS:
            return slice(start, end)
    for i in range(end):
        if live[i] * 2 < rows[i]:
            return slice(i, i + 1)
    return None


def choose_all(live: Sequence[int]) -> list[slice]:
    """Runs of neighbours that make as few segments as possible, the last run first."""
    runs = []
    end = len(live)
    while end:
        start, total = end - 1, live[end - 1]
        while start and total + live[start - 1] <= MOST_ROWS:
            start -= 1
            total += live[start]
        runs.append(slice(start, end))
        end = start
    return runs


def merge_segments(
    root: Path, segments: Sequence[Segment], keep: Sequence[Mask], lenses: Lenses, shared: SharedParts
) -> SegmentRecord | None:
    """Write one segment with the kept rows of several neighbours; None if nothing is kept."""
    if not any(mask.any() for mask in keep):
        return None
    pairs = list(zip(segments, keep, strict=True))
    rows = Rows(
        np.concatenate([segment.rows.keys[mask] for segment, mask in pairs]),
        np.concatenate([segment.rows.starts[mask] for segment, mask in pairs]),
        np.concatenate([segment.rows.ends[mask] for segment, mask in pairs]),
    )

    def fill(folder: Path) -> None:
        for name in lenses.names:
            lenses[name].merge([segment.parts[name] for segment in segments], keep, folder / name, shared.of(name))

    return write_segment(root, rows, fill)
