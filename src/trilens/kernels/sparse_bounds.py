"""Bounds: what every row can score at most, added up in whole numbers of 16 bits.

The terms of a query are found among the lists and columns of a segment (kernels/sparse_lists.py). What each gives a row is
rounded up, in a unit that lets the most that all of them can give fit into 16 bits. Columns are added 64 rows at a time, lists
one posting at a time.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trilens.kernels.columns import (
    BLOCK_BYTES,
    LEVELS,
    MOST_TOGETHER,
    add_1_columns,
    add_2_columns,
    add_4_columns,
    add_8_columns,
)
from trilens.kernels.compile import inline_kernel, kernel
from trilens.kernels.prefetch import prefetch
from trilens.kernels.sparse import LINE
from trilens.kernels.sparse_lists import SHARES, WINDOW

LINES = 4  # of a list that are fetched before it is read; the processor fetches the rest by itself
NOWHERE, FIRST_COLUMN = -1, -2  # places of terms: lists count from 0 upwards, columns from -2 downwards
COLUMN_ROWS = 32  # adding this many rows of a column costs as much as adding one posting of a list
MOST_TERMS = 4096  # of a query: more would leave too few steps for each in 16 bits
ROOM = 65535
ROUNDING, TERM_ROUNDING = 1.07, 4  # what rounding up adds to a sum at most: a share of it, and steps per term

Ints = NDArray[np.int64]
Terms = NDArray[np.int32]
Floats = NDArray[np.float32]
Gains = NDArray[np.float64]
Bytes = NDArray[np.uint8]
Sums = NDArray[np.uint16]
Codes = NDArray[Any]
Mask = NDArray[np.bool_]


class Arrays(NamedTuple):
    """What one segment holds: rows (kernels/sparse.py), lists and columns (kernels/sparse_lists.py)."""

    indptr: Ints
    terms: Terms
    codes: Codes
    scales: Floats
    list_most: Floats
    list_ptr: Ints
    list_rows: NDArray[np.uint16]
    list_shares: Bytes
    column_most: Floats
    column_tops: Bytes
    columns: Bytes


@kernel
def heaviest(weights: Floats, n: int) -> Mask:
    """Which n weights are the highest, of equal ones the first; all, where n is 0."""
    if n == 0 or n >= len(weights):
        return np.ones(len(weights), np.bool_)
    limit = np.partition(weights, len(weights) - n)[len(weights) - n]
    chosen: Mask = weights > limit
    equal = n - chosen.sum()
    for i in range(len(weights)):
        if weights[i] == limit and equal > 0:
            chosen[i] = True
            equal -= 1
    return chosen


@kernel
def find_terms(
    terms: Terms,
    weights: Floats,
    chosen: Mask,
    places: Terms,
    part: Arrays,
    lists: Ints,
    list_gains: Gains,
    columns: Ints,
    gains: Gains,
) -> tuple[int, int]:
    """The lists and columns of the chosen terms, and the most that each can give; returns how many of each there are."""
    list_most, column_most = part.list_most, part.column_most
    found_lists, found_columns = 0, 0
    for i in range(len(terms)):
        place = places[terms[i]]
        if place == NOWHERE or not chosen[i] or weights[i] == 0:
            continue
        if place >= 0:
            lists[found_lists], list_gains[found_lists] = place, np.float64(weights[i]) * list_most[place]
            found_lists += 1
        else:
            column = FIRST_COLUMN - place
            columns[found_columns], gains[found_columns] = column, np.float64(weights[i]) * column_most[column]
            found_columns += 1
    return found_lists, found_columns


@inline_kernel
def together(left: int) -> int:
    """How many of the columns that are left are added at once."""
    return 8 if left >= 8 else 4 if left >= 4 else 2 if left >= 2 else 1


@kernel
def fill_tables(columns: Ints, gains: Gains, tops: Bytes, tables: Bytes, shifts: Ints) -> None:
    """What each level of each column gives, rounded up, in steps of 1 << shift that keep the sum of a group in a byte."""
    first = 0
    while first < len(columns):
        last = first + together(len(columns) - first)
        shift, total = -1, 256.0
        while total > 255 - MOST_TOGETHER:  # each may come out one higher below
            shift, total = shift + 1, 0.0
            for i in range(first, last):
                total += np.ceil(gains[i] / (1 << shift))
        for i in range(first, last):
            shifts[i] = shift
            unit = gains[i] / SHARES / (1 << shift)
            tables[i * LEVELS] = 0
            for level in range(1, LEVELS):
                tables[i * LEVELS + level] = np.uint8(np.ceil(unit * tops[columns[i], level]))
        first = last


@kernel
def add_columns_of(window: int, found: Ints, tables: Bytes, shifts: Ints, columns: Bytes, width: int, sums: Sums) -> None:
    """Add to the sums of one window what the columns give its rows; each column is `width` bytes wide."""
    row, first_byte = window * WINDOW, window * WINDOW // 2
    blocks = min(WINDOW // 2, width - first_byte) // BLOCK_BYTES
    starts = found * width + first_byte
    first = 0
    while first < len(found):
        size = together(len(found) - first)
        shift, begins, table = shifts[first], starts[first:], tables[first * LEVELS :]
        if size == 8:
            add_8_columns(sums, row, columns, begins, table, shift, blocks)
        elif size == 4:
            add_4_columns(sums, row, columns, begins, table, shift, blocks)
        elif size == 2:
            add_2_columns(sums, row, columns, begins, table, shift, blocks)
        else:
            add_1_columns(sums, row, columns, begins, table, shift, blocks)
        first += size


@kernel
def add_list(rows: NDArray[np.uint16], shares: Bytes, gain: float, table: Sums, sums: Sums) -> None:
    """Add to the sums of one window what a list gives its rows; the highest share gives `gain`."""
    unit = np.float32(gain / SHARES)
    for share in range(SHARES + 1):  # a little over 1, so that a rounded product is not rounded down to too little
        table[share] = np.uint16(unit * np.float32(share) + np.float32(1.01))
    for at in range(len(rows)):
        sums[rows[at]] += table[shares[at]]


@kernel
def add_lists_of(window: int, found: Ints, gains: Gains, part: Arrays, sums: Sums) -> None:
    """Add to the sums of one window what the lists give its rows."""
    list_ptr, rows, shares = part.list_ptr, part.list_rows, part.list_shares
    first_list, here = window * len(part.list_most), sums[window * WINDOW :]
    table = np.empty(SHARES + 1, np.uint16)
    for i in range(len(found)):
        if i + 1 < len(found):  # have the next list on its way: it lies anywhere in large arrays
            start = list_ptr[first_list + found[i + 1]]
            for line in range(LINES):
                prefetch(rows, start + line * (LINE // 2))
                prefetch(shares, start + line * LINE)
        first, last = list_ptr[first_list + found[i]], list_ptr[first_list + found[i] + 1]
        if last > first:
            add_list(rows[first:last], shares[first:last], gains[i], table, here)


@kernel
def work_of(lists: Ints, columns: Ints, rows: int, part: Arrays) -> int:
    """What adding lists and columns costs, in postings."""
    list_ptr, count = part.list_ptr, len(part.list_most)
    work = len(columns) * (rows // COLUMN_ROWS)
    for window in range((rows + WINDOW - 1) // WINDOW):
        for place in lists:
            work += list_ptr[window * count + place + 1] - list_ptr[window * count + place]
    return work


@kernel
def add_bounds(lists: Ints, list_gains: Gains, columns: Ints, gains: Gains, part: Arrays, sums: Sums) -> float:
    """Make the sums what each row can score at most, in a unit that is returned: so many make 1."""
    most = list_gains.sum() + gains.sum()
    unit = (ROOM / ROUNDING - TERM_ROUNDING * (len(lists) + len(columns))) / most
    tables, shifts = np.empty(len(columns) * LEVELS, np.uint8), np.empty(len(columns), np.int64)
    fill_tables(columns, gains * unit, part.column_tops, tables, shifts)
    list_steps, column_bytes = list_gains * unit, part.columns
    width = len(column_bytes) // max(1, len(part.column_most))
    sums[:] = 0
    for window in range((len(sums) + WINDOW - 1) // WINDOW):
        add_columns_of(window, columns, tables, shifts, column_bytes, width, sums)
        add_lists_of(window, lists, list_steps, part, sums)
    return float(unit)
