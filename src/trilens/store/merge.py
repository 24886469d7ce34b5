"""The merge policy, and merging of adjacent segments."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from trilens.kernels.array_types import Int64s, Mask
from trilens.kernels.postings import MOST_ROWS
from trilens.store.catalog import LARGEST_KEY
from trilens.store.documents import DocumentsPart
from trilens.store.folders import require_whole
from trilens.store.lens_set import LensSet
from trilens.store.schema import SegmentRecord
from trilens.store.segment import DOCUMENTS, PassageRows, Segment, write_segment
from trilens.store.shared import SharedParts

FANOUT = 8
SMALLEST = 1024  # rows; smaller segments are all of tier 0


def tier(rows: int) -> int:
    """The tier of a segment; sizes within a tier differ by less than a factor of FANOUT."""
    return max(0, math.floor(math.log(max(rows, 1) / SMALLEST, FANOUT)) + 1)


def next_merge(rows: Sequence[int], live: Sequence[int], outdated: Sequence[bool] = (), most: int = MOST_ROWS) -> slice | None:
    """The adjacent segments to merge next, given the rows and live rows of each segment; None if no merge is due.

    The youngest segments, at the end, are merged when FANOUT of them are of the same tier or smaller, so each row is copied a
    logarithmic number of times; no merge has more than `most` rows. A segment with more deleted than live rows, or with
    `outdated` metadata, is rewritten alone.
    """
    end = len(rows)
    if end >= FANOUT:
        last = tier(rows[-1])
        start = end
        while start > 0 and tier(rows[start - 1]) <= last:
            start -= 1
        while sum(live[start:]) > most:
            start += 1
        if end - start >= FANOUT:
            return slice(start, end)
    for i in range(end):
        if live[i] * 2 < rows[i] or (outdated and outdated[i]):
            return slice(i, i + 1)
    return None


def full_merge(live: Sequence[int]) -> list[slice]:
    """Runs of adjacent segments whose merges leave as few segments as possible, last run first."""
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


def divisions(keys: Sequence[Int64s], keep: Sequence[Mask], parts: int) -> list[list[Mask]]:
    """The masks of the kept rows of segments for each of several parts of about equal size; no document is divided."""
    kept = np.concatenate([rows[mask] for rows, mask in zip(keys, keep, strict=True)])
    edges = [int(kept[len(kept) * part // parts]) for part in range(1, parts)] if len(kept) else []
    bounds = [0, *edges, LARGEST_KEY + 1]
    return [
        [mask & (rows >= first) & (rows < end) for rows, mask in zip(keys, keep, strict=True)]
        for first, end in pairwise(bounds)
    ]


def merge_segments(
    root: Path,
    segments: Sequence[Segment],
    keep: Sequence[Mask],
    lenses: LensSet,
    shared: SharedParts,
    changed: Mapping[int, str],
) -> SegmentRecord | None:
    """Write one segment with the kept rows of adjacent segments; None if no row is kept.

    `changed` is the metadata of documents where it has changed, by key.
    """
    if not any(mask.any() for mask in keep):
        return None
    for segment in segments:  # what a merge writes gets checksums of its own, which would hide any damage
        require_whole(root, segment.record, read=True)
    pairs = list(zip(segments, keep, strict=True))
    rows = PassageRows(
        np.concatenate([segment.rows.keys[mask] for segment, mask in pairs]),
        np.concatenate([segment.rows.starts[mask] for segment, mask in pairs]),
        np.concatenate([segment.rows.ends[mask] for segment, mask in pairs]),
    )

    def fill(folder: Path) -> None:
        kept_documents = [np.isin(segment.documents.keys, rows.keys) for segment in segments]
        DocumentsPart.merge([segment.documents for segment in segments], kept_documents, changed, folder / DOCUMENTS)
        for name in lenses.names:
            parts = [segment.parts[name] for segment in segments]
            lenses[name].merge(parts, keep, folder / lenses.folder(name), shared.of(name))

    return write_segment(root, rows, fill)
