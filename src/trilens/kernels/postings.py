"""BM25 posting lists, partitioned into windows of WINDOW consecutive rows.

A posting is a row that contains a term, with the term count. The postings of one term in one window form a *cell*. Postings are
stored window by window, and term by term within a window, so that a query reads adjacent memory for each window. Term t has the
cells `cell_ptr[t]:cell_ptr[t + 1]`, in ascending order of windows. A cell is one integer:

    window << 48 | highest impact << 40 | (number of postings - 1) << 32 | position of its first posting

`bests` holds, for each cell, the highest impact in each block of 32 rows of the window, the first block in the lowest byte.
A posting has 16 bits: the offset of the row in its window in the high byte, the impact in the low byte. The impact is the
saturated count, count / (count + norm), in 255ths, rounded up and therefore at least 1. It bounds the score without reading row
lengths. `counts` is read only for the few rows whose exact score is needed.
"""

from typing import NamedTuple

import numpy as np

from trilens.kernels.array_types import Float32s, Int32s, Int64s, Mask, UInt16s, UInt32s, UInt64s
from trilens.kernels.compile import inline_kernel, kernel

WINDOW = 256
BLOCK = 32
BLOCKS = WINDOW // BLOCK
MOST_ROWS = WINDOW << 15
STEPS = np.float32(255)


class PostingLists(NamedTuple):
    """The posting lists of one segment, as the module describes them; `counts` is parallel to `postings`.

    `cell_ptr` has been checked. Cells and postings are read from files that may be damaged: see `is_inside`.
    """

    cell_ptr: Int64s
    cells: Int64s
    bests: UInt64s
    postings: UInt16s
    counts: UInt32s


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
    """The number of postings in a cell."""
    return ((cell >> 32) & 255) + 1


@inline_kernel
def cell_start(cell: int) -> int:
    """The position of the first posting of a cell."""
    return cell & 0xFFFFFFFF


@inline_kernel
def is_inside(cell: int, rows: int, postings: int) -> bool:
    """Whether a cell belongs to a window of so many rows and lies within so many postings; not so if its file is damaged."""
    return cell >= 0 and cell_window(cell) * WINDOW < rows and cell_start(cell) + cell_size(cell) <= postings


@kernel
def invert(indptr: Int64s, terms: Int32s, weights: Float32s, dim: int) -> tuple[Int64s, Int32s, UInt32s]:
    """Transpose rows of term counts into lists of rows: returns list offsets, rows and counts."""
    lists = np.zeros(dim + 1, np.int64)
    for term in terms:
        lists[term + 1] += 1
    lists = np.cumsum(lists)
    cursor = lists[:-1].copy()
    rows, counts = np.empty(len(terms), np.int32), np.empty(len(terms), np.uint32)
    for row in range(len(indptr) - 1):
        for i in range(indptr[row], indptr[row + 1]):
            position = cursor[terms[i]]
            rows[position], counts[position] = row, np.uint32(weights[i])
            cursor[terms[i]] = position + 1
    return lists, rows, counts


@kernel
def count_cells(lists: Int64s, rows: Int32s) -> Int64s:
    """Compute `cell_ptr` of lists that `invert` made."""
    cell_ptr = np.zeros(len(lists), np.int64)
    for term in range(len(lists) - 1):
        cells, window = 0, -1
        for position in range(lists[term], lists[term + 1]):
            if rows[position] // WINDOW != window:
                window = rows[position] // WINDOW
                cells += 1
        cell_ptr[term + 1] = cell_ptr[term] + cells
    return cell_ptr


@kernel
def fill_cells(lists: Int64s, rows: Int32s, counts: UInt32s, norms: Float32s, to: PostingLists) -> None:
    """Write the cells, postings and counts of lists that `invert` made into `to`; its `cell_ptr` is not used."""
    cells, bests, postings, to_counts = to.cells, to.bests, to.postings, to.counts
    cursor = np.zeros(len(norms) // WINDOW + 2, np.int64)
    for row in rows:
        cursor[row // WINDOW + 1] += 1
    cursor = np.cumsum(cursor)
    cell = -1
    for term in range(len(lists) - 1):
        window, best, start = -1, 0, 0
        for position in range(lists[term], lists[term + 1]):
            row = int(rows[position])
            if row // WINDOW != window:
                window, best = row // WINDOW, 0
                start = cursor[window]
                cell += 1
                bests[cell] = 0
            count = np.float32(counts[position])
            impact = int(np.ceil(count / (count + norms[row]) * STEPS))
            best = max(best, impact)
            offset = row - window * WINDOW
            byte = np.uint64(offset // BLOCK * 8)
            increase = impact - int(bests[cell] >> byte & np.uint64(255))
            bests[cell] += np.uint64(max(increase, 0)) << byte
            target = cursor[window]
            postings[target], to_counts[target] = offset << 8 | impact, counts[position]
            cursor[window] = target + 1
            cells[cell] = window << 48 | best << 40 | (target - start) << 32 | start


@kernel
def count_allowed(cells: Int64s, postings: UInt16s, allowed: Mask) -> int:
    """Count the postings of the cells whose row is allowed."""
    total = 0
    for cell in cells:
        if not is_inside(cell, len(allowed), len(postings)):
            continue
        first_row = cell_window(cell) * WINDOW
        for position in range(cell_start(cell), cell_start(cell) + cell_size(cell)):
            row = first_row + (postings[position] >> 8)
            total += row < len(allowed) and allowed[row]
    return total


@kernel
def count_kept(lists: PostingLists, row_map: Int32s, merged_terms: Int64s, kept: Int64s) -> None:
    """Add to `kept[merged_terms[t]]` the number of postings of term t whose row is kept (`row_map` is not -1)."""
    cell_ptr, cells, postings = lists.cell_ptr, lists.cells, lists.postings
    for term in range(len(cell_ptr) - 1):
        for cell in cells[cell_ptr[term] : cell_ptr[term + 1]]:
            if not is_inside(cell, len(row_map), len(postings)):
                continue
            first_row = cell_window(cell) * WINDOW
            for position in range(cell_start(cell), cell_start(cell) + cell_size(cell)):
                row = first_row + (postings[position] >> 8)
                kept[merged_terms[term]] += row < len(row_map) and row_map[row] >= 0


@kernel
def copy_kept(
    lists: PostingLists, row_map: Int32s, merged_terms: Int64s, cursor: Int64s, to_rows: Int32s, to_counts: UInt32s
) -> None:
    """Append the kept postings of each term to its merged list at `cursor`, which advances."""
    cell_ptr, cells, postings, counts = lists.cell_ptr, lists.cells, lists.postings, lists.counts
    for term in range(len(cell_ptr) - 1):
        target = cursor[merged_terms[term]]
        for cell in cells[cell_ptr[term] : cell_ptr[term + 1]]:
            if not is_inside(cell, len(row_map), len(postings)):
                continue
            first_row = cell_window(cell) * WINDOW
            for position in range(cell_start(cell), cell_start(cell) + cell_size(cell)):
                row = first_row + (postings[position] >> 8)
                if row < len(row_map) and row_map[row] >= 0:
                    to_rows[target], to_counts[target] = row_map[row], counts[position]
                    target += 1
        cursor[merged_terms[term]] = target
