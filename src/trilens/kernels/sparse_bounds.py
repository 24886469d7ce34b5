"""Upper bounds on the scores of all rows, summed in 16-bit integers.

The query terms are looked up among the lists and columns of a segment (kernels/sparse_lists.py). Contributions are rounded
up, in a unit in which the highest possible sum fits into 16 bits. Columns are added 64 rows at a time, lists one posting at a
time.
"""

from typing import NamedTuple

import numpy as np

from trilens.kernels.array_types import AnyArray, Float32s, Float64s, Int32s, Int64s, Mask, UInt8s, UInt16s
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

LINES = 4  # cache lines of a list that are prefetched; the hardware prefetches the rest
NOWHERE, FIRST_COLUMN = -1, -2  # places of terms: lists are numbered from 0 upwards, columns from -2 downwards
COLUMN_ROWS = 32  # adding this many rows of a column costs as much as adding one posting of a list
MOST_TERMS = 4096  # of a query: more would leave too few steps for each in 16 bits
ROOM = 65535
ROUNDING, TERM_ROUNDING = 1.07, 4  # the most that rounding up adds to a sum: a factor, and steps per term


class SparseArrays(NamedTuple):
    """The arrays of one segment: rows (kernels/sparse.py), lists and columns (kernels/sparse_lists.py)."""

    indptr: Int64s
    terms: Int32s
    codes: AnyArray
    scales: Float32s
    list_most: Float32s
    list_ptr: Int64s
    list_rows: UInt16s
    list_shares: UInt8s
    column_most: Float32s
    column_tops: UInt8s
    columns: UInt8s


class QueryLists(NamedTuple):
    """The lists and columns of the terms of a query, and the highest contribution of each."""

    lists: Int64s
    list_gains: Float64s
    columns: Int64s
    column_gains: Float64s


@kernel
def find_terms(terms: Int32s, weights: Float32s, selected: Mask, places: Int32s, segment: SparseArrays) -> QueryLists:
    """Look up the lists and columns of the selected terms; `places` gives the place of each term of the vocabulary."""
    list_most, column_most = segment.list_most, segment.column_most
    n = len(terms)
    lists, columns = np.empty(n, np.int64), np.empty(n, np.int64)
    list_gains, column_gains = np.empty(n, np.float64), np.empty(n, np.float64)
    list_count, column_count = 0, 0
    for i in range(n):
        place = places[terms[i]]
        if place == NOWHERE or not selected[i] or weights[i] == 0:
            continue
        if place >= 0:
            lists[list_count], list_gains[list_count] = place, np.float64(weights[i]) * list_most[place]
            list_count += 1
        else:
            column = FIRST_COLUMN - place
            columns[column_count] = column
            column_gains[column_count] = np.float64(weights[i]) * column_most[column]
            column_count += 1
    return QueryLists(lists[:list_count], list_gains[:list_count], columns[:column_count], column_gains[:column_count])


@kernel
def heaviest(weights: Float32s, n: int) -> Mask:
    """Mark the n highest weights, the first of equal ones; all if n is 0."""
    if n == 0 or n >= len(weights):
        return np.ones(len(weights), np.bool_)
    limit = np.partition(weights, len(weights) - n)[len(weights) - n]
    marked: Mask = weights > limit
    equal = n - marked.sum()
    for i in range(len(weights)):
        if weights[i] == limit and equal > 0:
            marked[i] = True
            equal -= 1
    return marked


@inline_kernel
def together(left: int) -> int:
    """The number of columns to add at once if `left` remain."""
    return 8 if left >= 8 else 4 if left >= 4 else 2 if left >= 2 else 1


@kernel
def fill_tables(columns: Int64s, gains: Float64s, tops: UInt8s, tables: UInt8s, shifts: Int64s) -> None:
    """Write the contribution of each level of each column, rounded up, in steps of 1 << shift.

    The shift keeps the sum of the columns that are added at once within a byte.
    """
    first = 0
    while first < len(columns):
        last = first + together(len(columns) - first)
        shift, total = -1, 256.0
        while total > 255 - MOST_TOGETHER:  # each entry may be one higher below
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
def add_columns_of(
    window: int, numbers: Int64s, tables: UInt8s, shifts: Int64s, columns: UInt8s, width: int, sums: UInt16s
) -> None:
    """Add the contributions of columns to the sums of one window; each column has `width` bytes."""
    row, first_byte = window * WINDOW, window * WINDOW // 2
    blocks = min(WINDOW // 2, width - first_byte) // BLOCK_BYTES
    starts = numbers * width + first_byte
    first = 0
    while first < len(numbers):
        size = together(len(numbers) - first)
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
def add_list(rows: UInt16s, shares: UInt8s, gain: float, table: UInt16s, sums: UInt16s) -> None:
    """Add the contributions of a list to the sums of one window; the highest share contributes `gain`."""
    unit = np.float32(gain / SHARES)
    for share in range(SHARES + 1):  # a little over 1, so that the truncated product is never too low
        table[share] = np.uint16(unit * np.float32(share) + np.float32(1.01))
    for position in range(len(rows)):
        sums[rows[position]] += table[shares[position]]


@kernel
def add_lists_of(window: int, lists: Int64s, gains: Float64s, segment: SparseArrays, sums: UInt16s) -> None:
    """Add the contributions of lists to the sums of one window."""
    list_ptr, rows, shares = segment.list_ptr, segment.list_rows, segment.list_shares
    first_list, window_sums = window * len(segment.list_most), sums[window * WINDOW :]
    table = np.empty(SHARES + 1, np.uint16)
    for i in range(len(lists)):
        if i + 1 < len(lists):  # prefetch the next list: lists are scattered over large arrays
            start = list_ptr[first_list + lists[i + 1]]
            for line in range(LINES):
                prefetch(rows, start + line * (LINE // 2))
                prefetch(shares, start + line * LINE)
        first, last = list_ptr[first_list + lists[i]], list_ptr[first_list + lists[i] + 1]
        if last > first:
            add_list(rows[first:last], shares[first:last], gains[i], table, window_sums)


@kernel
def work_of(query: QueryLists, rows: int, segment: SparseArrays) -> int:
    """The cost of adding the lists and columns of a query, in postings."""
    list_ptr, lists, list_count = segment.list_ptr, query.lists, len(segment.list_most)
    work = len(query.columns) * (rows // COLUMN_ROWS)
    for window in range((rows + WINDOW - 1) // WINDOW):
        for number in lists:
            work += list_ptr[window * list_count + number + 1] - list_ptr[window * list_count + number]
    return work


@kernel
def add_bounds(query: QueryLists, segment: SparseArrays, sums: UInt16s) -> float:
    """Set `sums` to the upper bounds of all rows; returns the number of units per 1."""
    lists, columns = query.lists, query.columns
    highest = query.list_gains.sum() + query.column_gains.sum()
    unit = (ROOM / ROUNDING - TERM_ROUNDING * (len(lists) + len(columns))) / highest
    tables, shifts = np.empty(len(columns) * LEVELS, np.uint8), np.empty(len(columns), np.int64)
    fill_tables(columns, query.column_gains * unit, segment.column_tops, tables, shifts)
    list_steps, column_bytes = query.list_gains * unit, segment.columns
    width = len(column_bytes) // max(1, len(segment.column_most))
    sums[:] = 0
    for window in range((len(sums) + WINDOW - 1) // WINDOW):
        add_columns_of(window, columns, tables, shifts, column_bytes, width, sums)
        add_lists_of(window, lists, list_steps, segment, sums)
    return float(unit)
