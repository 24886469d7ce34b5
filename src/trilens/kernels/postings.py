"""Inverted lists cut by windows of WINDOW neighbouring rows.

A posting says that a row holds a term, and how often. Postings are sorted by term, then row, and grouped into *cells*: one
cell for each (term, window) pair that has postings. Cell c is of window `windows[c]`, its postings are
`starts[c]:starts[c + 1]`, and `bests[c]` is the highest saturated count in it, in 255ths, rounded up. Term t owns the cells
`cell_ptr[t]:cell_ptr[t + 1]`. Within a window a row is one byte, its `place`, so a posting takes as little as two bytes, and
a search can pass over whole windows by looking at cells alone.
"""

import numpy as np
from numpy.typing import NDArray

from trilens.kernels.compile import kernel

WINDOW = 256
MOST_ROWS = WINDOW << 16  # windows are numbered with 16 bits
STEPS = np.float32(255)

Ints = NDArray[np.int64]
Starts = NDArray[np.uint32]
Windows = NDArray[np.uint16]
Places = NDArray[np.uint8]
Counts = NDArray[np.uint32]
Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]


@kernel
def invert(indptr: Ints, terms: NDArray[np.int32], weights: Floats, dim: int) -> tuple[Ints, NDArray[np.int32], Counts]:
    """Turn rows of terms into lists of rows: where each list starts, rows, counts."""
    lists = np.zeros(dim + 1, np.int64)
    for term in terms:
        lists[term + 1] += 1
    lists = np.cumsum(lists)
    cursor = lists[:-1].copy()
    rows, counts = np.empty(len(terms), np.int32), np.empty(len(terms), np.uint32)
    for row in range(len(indptr) - 1):
        for i in range(indptr[row], indptr[row + 1]):
            at = cursor[terms[i]]
            rows[at], counts[at] = row, np.uint32(weights[i])
            cursor[terms[i]] = at + 1
    return lists, rows, counts


@kernel
def count_cells(lists: Ints, rows: NDArray[np.int32]) -> Ints:
    """`cell_ptr` of the given lists."""
    cell_ptr = np.zeros(len(lists), np.int64)
    for term in range(len(lists) - 1):
        cells, window = 0, -1
        for at in range(lists[term], lists[term + 1]):
            if rows[at] // WINDOW != window:
                window = rows[at] // WINDOW
                cells += 1
        cell_ptr[term + 1] = cell_ptr[term] + cells
    return cell_ptr


@kernel
def fill_cells(
    lists: Ints,
    rows: NDArray[np.int32],
    counts: Counts,
    norms: Floats,
    windows: Windows,
    starts: Starts,
    bests: Places,
    places: Places,
) -> None:
    """Write the cells of the given lists, and the place of each posting in its window."""
    cell = -1
    for term in range(len(lists) - 1):
        window = -1
        best = np.float32(0)
        for at in range(lists[term], lists[term + 1]):
            row = rows[at]
            if row // WINDOW != window:
                window = row // WINDOW
                cell += 1
                windows[cell], starts[cell] = window, at
                best = np.float32(0)
            places[at] = row - window * WINDOW
            count = np.float32(counts[at])
            best = max(best, count / (count + norms[row]))
            bests[cell] = np.uint8(np.ceil(best * STEPS))
    starts[cell + 1] = lists[-1]


@kernel
def count_allowed(first_cell: int, end_cell: int, windows: Windows, starts: Starts, places: Places, allowed: Mask) -> int:
    """How many postings of the cells are of allowed rows."""
    total = 0
    for cell in range(first_cell, end_cell):
        first_row = np.int64(windows[cell]) * WINDOW
        for at in range(starts[cell], starts[cell + 1]):
            total += allowed[first_row + places[at]]
    return total


@kernel
def count_kept(
    cell_ptr: Ints,
    windows: Windows,
    starts: Starts,
    places: Places,
    row_map: NDArray[np.int32],
    merged: Ints,
    kept: Ints,
) -> None:
    """Add to `kept[merged[t]]` the postings of term t whose row is kept (has a place >= 0 in `row_map`)."""
    for term in range(len(cell_ptr) - 1):
        for cell in range(cell_ptr[term], cell_ptr[term + 1]):
            first_row = np.int64(windows[cell]) * WINDOW
            for at in range(starts[cell], starts[cell + 1]):
                kept[merged[term]] += row_map[first_row + places[at]] >= 0


@kernel
def copy_kept(
    cell_ptr: Ints,
    windows: Windows,
    starts: Starts,
    places: Places,
    counts: Counts,
    row_map: NDArray[np.int32],
    merged: Ints,
    cursor: Ints,
    to_rows: NDArray[np.int32],
    to_counts: Counts,
) -> None:
    """Append the kept postings of each term to its merged list, at `cursor`, which moves on."""
    for term in range(len(cell_ptr) - 1):
        to = cursor[merged[term]]
        for cell in range(cell_ptr[term], cell_ptr[term + 1]):
            first_row = np.int64(windows[cell]) * WINDOW
            for at in range(starts[cell], starts[cell + 1]):
                row = row_map[first_row + places[at]]
                if row >= 0:
                    to_rows[to], to_counts[to] = row, counts[at]
                    to += 1
        cursor[merged[term]] = to
