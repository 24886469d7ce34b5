"""Inverted lists cut by windows of WINDOW neighbouring rows.

A posting says that a row holds a term, and how often. The postings of one term in one window form a *cell*. Postings lie window
by window, and in a window term by term, so that all a query needs of a window is close together. Term t owns the cells
`cell_ptr[t]:cell_ptr[t + 1]`, ascending by window. A cell is one integer:

    window << 48 | highest impact << 40 | (number of postings - 1) << 32 | position of its first posting

and beside it `bests`: the highest impact in each block of 32 rows of the window, the first block in the lowest byte.
A posting is 16 bits: the place of the row in its window above, the impact below. The impact is the saturated count
count / (count + norm) in 255ths, rounded up and so at least 1: enough to decide who can win without looking at lengths.
`counts` beside it is read only for the few rows whose exact score is needed.
"""

import numpy as np
from numpy.typing import NDArray

from trilens.kernels.compile import inline_kernel, kernel

WINDOW = 256
BLOCK = 32
BLOCKS = WINDOW // BLOCK
MOST_ROWS = WINDOW << 15
STEPS = np.float32(255)

Ints = NDArray[np.int64]
Rows = NDArray[np.int32]
Postings = NDArray[np.uint16]
Bests = NDArray[np.uint64]
Counts = NDArray[np.uint32]
Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]


@inline_kernel
def cell_window(cell: int) -> int:
    """The window of a cell."""
    return cell >> 48


@inline_kernel
def cell_best(cell: int) -> int:
    """The highest impact in a cell."""
    return (cell >> 40) & 255


@inline_kernel
def cell_size(cell: int) -> int:
    """How many postings a cell has."""
    return ((cell >> 32) & 255) + 1


@inline_kernel
def cell_start(cell: int) -> int:
    """Where the postings of a cell begin."""
    return cell & 0xFFFFFFFF


@kernel
def invert(indptr: Ints, terms: Rows, weights: Floats, dim: int) -> tuple[Ints, Rows, Counts]:
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
def count_cells(lists: Ints, rows: Rows) -> Ints:
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
    lists: Ints, rows: Rows, counts: Counts, norms: Floats, cells: Ints, bests: Bests, postings: Postings, to_counts: Counts
) -> None:
    """Write the cells of the given lists, and their postings and counts in the order of windows."""
    cursor = np.zeros(len(norms) // WINDOW + 2, np.int64)
    for row in rows:
        cursor[row // WINDOW + 1] += 1
    cursor = np.cumsum(cursor)
    cell = -1
    for term in range(len(lists) - 1):
        window, best, start = -1, 0, 0
        for at in range(lists[term], lists[term + 1]):
            row = int(rows[at])
            if row // WINDOW != window:
                window, best = row // WINDOW, 0
                start = cursor[window]
                cell += 1
                bests[cell] = 0
            count = np.float32(counts[at])
            impact = int(np.ceil(count / (count + norms[row]) * STEPS))
            best = max(best, impact)
            place = row - window * WINDOW
            byte = np.uint64(place // BLOCK * 8)
            more = impact - int(bests[cell] >> byte & np.uint64(255))
            bests[cell] += np.uint64(max(more, 0)) << byte
            to = cursor[window]
            postings[to], to_counts[to] = place << 8 | impact, counts[at]
            cursor[window] = to + 1
            cells[cell] = window << 48 | best << 40 | (to - start) << 32 | start


@kernel
def count_allowed(cells: Ints, postings: Postings, allowed: Mask) -> int:
    """How many postings of the cells are of allowed rows."""
    total = 0
    for cell in cells:
        first_row = cell_window(cell) * WINDOW
        for at in range(cell_start(cell), cell_start(cell) + cell_size(cell)):
            total += allowed[first_row + (postings[at] >> 8)]
    return total


@kernel
def count_kept(cell_ptr: Ints, cells: Ints, postings: Postings, row_map: Rows, merged: Ints, kept: Ints) -> None:
    """Add to `kept[merged[t]]` the postings of term t whose row is kept (has a place >= 0 in `row_map`)."""
    for term in range(len(cell_ptr) - 1):
        for cell in cells[cell_ptr[term] : cell_ptr[term + 1]]:
            first_row = cell_window(cell) * WINDOW
            for at in range(cell_start(cell), cell_start(cell) + cell_size(cell)):
                kept[merged[term]] += row_map[first_row + (postings[at] >> 8)] >= 0


@kernel
def copy_kept(
    cell_ptr: Ints,
    cells: Ints,
    postings: Postings,
    counts: Counts,
    row_map: Rows,
    merged: Ints,
    cursor: Ints,
    to_rows: Rows,
    to_counts: Counts,
) -> None:
    """Append the kept postings of each term to its merged list, at `cursor`, which moves on."""
    for term in range(len(cell_ptr) - 1):
        to = cursor[merged[term]]
        for cell in cells[cell_ptr[term] : cell_ptr[term + 1]]:
            first_row = cell_window(cell) * WINDOW
            for at in range(cell_start(cell), cell_start(cell) + cell_size(cell)):
                row = row_map[first_row + (postings[at] >> 8)]
                if row >= 0:
                    to_rows[to], to_counts[to] = row, counts[at]
                    to += 1
        cursor[merged[term]] = to
