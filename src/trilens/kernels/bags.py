"""Inverted index of unweighted terms: compressed lists of rows, and bitmaps of frequent terms.

A frequent term has a *column* of bits, 64 rows per word. Any other term has a *list* of the gaps between its rows, in
variable-byte code: 7 bits per byte, the lowest first; the top bit marks that more bytes follow.
"""

import numpy as np

from trilens.kernels.array_types import Float32s, Float64s, Int32s, Int64s, Mask, UInt8s, UInt64s
from trilens.kernels.compile import inline_kernel, kernel
from trilens.kernels.lanes import lowest_bit
from trilens.kernels.topk import offer

WORD = 64


@inline_kernel
def gap_bytes(gap: int) -> int:
    """The number of bytes of an encoded gap."""
    size = 1
    while gap > 127:
        gap >>= 7
        size += 1
    return size


@kernel
def measure_lists(indptr: Int64s, terms: Int32s, lists: Int64s) -> Int64s:
    """The byte offsets of all lists; `lists` is the list number of each term, -1 if it has none."""
    list_ptr = np.zeros(lists.max() + 2, np.int64)
    before = np.full(lists.max() + 1, -1, np.int64)
    for row in range(len(indptr) - 1):
        for position in range(indptr[row], indptr[row + 1]):
            number = lists[terms[position]]
            if number >= 0:
                list_ptr[number + 1] += gap_bytes(row - before[number])
                before[number] = row
    return np.cumsum(list_ptr)


@kernel
def fill_bags(
    indptr: Int64s, terms: Int32s, lists: Int64s, columns: Int64s, list_ptr: Int64s, gaps: UInt8s, bits: UInt64s
) -> None:
    """Write the gaps of all lists and the bits of all columns; `bits` (columns, words) is zero on entry."""
    cursor = list_ptr[:-1].copy()
    before = np.full(len(cursor), -1, np.int64)
    for row in range(len(indptr) - 1):
        for position in range(indptr[row], indptr[row + 1]):
            number = lists[terms[position]]
            if number < 0:
                bits[columns[terms[position]], row // WORD] |= np.uint64(1) << np.uint64(row % WORD)
                continue
            gap = row - before[number]
            before[number] = row
            while gap > 127:
                gaps[cursor[number]] = 128 | (gap & 127)
                cursor[number] += 1
                gap >>= 7
            gaps[cursor[number]] = gap
            cursor[number] += 1


@inline_kernel
def next_row(row: int, gaps: UInt8s, position: int, last: int) -> tuple[int, int]:
    """Decode the gap at `position`, before `last`: returns the row after `row`, and the position of the next gap.

    In a damaged list the row may be any number.
    """
    byte = np.int64(gaps[position])  # int() of a byte would be unsigned
    gap, shift = byte & 127, 7
    while byte > 127 and position + 1 < last and shift < WORD - 7:
        position += 1
        byte = np.int64(gaps[position])
        gap += (byte & 127) << shift
        shift += 7
    return row + int(gap), position + 1


@kernel
def add_list(first: int, last: int, gaps: UInt8s, weight: float, totals: Float64s) -> None:
    """Add a weight to the totals of the rows of a list."""
    row, position = -1, first
    while position < last:
        row, position = next_row(row, gaps, position, last)
        if row < 0 or row >= len(totals):
            return
        totals[row] += weight


@kernel
def add_bits(words: UInt64s, weight: float, totals: Float64s) -> None:
    """Add a weight to the totals of the rows of a column."""
    for i in range(len(words)):
        word = words[i]
        while word:
            row = i * WORD + lowest_bit(word)
            if row >= len(totals):
                return
            totals[row] += weight
            word &= word - np.uint64(1)


@kernel
def add_terms(
    terms: Int32s,
    weights: Float32s,
    list_terms: Int32s,
    list_ptr: Int64s,
    gaps: UInt8s,
    column_terms: Int32s,
    bits: UInt64s,
    totals: Float64s,
) -> None:
    """Add the weights of the query terms (ascending) to the totals of the rows that contain them."""
    for i in range(len(terms)):
        number = np.searchsorted(list_terms, terms[i])
        if number < len(list_terms) and list_terms[number] == terms[i]:
            add_list(list_ptr[number], list_ptr[number + 1], gaps, np.float64(weights[i]), totals)
            continue
        column = np.searchsorted(column_terms, terms[i])
        if column < len(column_terms) and column_terms[column] == terms[i]:
            add_bits(bits[column], np.float64(weights[i]), totals)


@kernel
def offer_totals(totals: Float64s, allowed: Mask, filtered: bool, first_row: int, scores: Float32s, rows: Int64s) -> None:
    """Offer the allowed rows whose total is above 0."""
    for row in range(len(totals)):
        score = np.float32(totals[row])
        if score > 0 and score >= scores[0] and (not filtered or allowed[row]):
            offer(scores, rows, float(score), first_row + row)


@kernel
def unfold_bags(
    list_terms: Int32s, list_ptr: Int64s, gaps: UInt8s, column_terms: Int32s, bits: UInt64s, cursor: Int64s, terms: Int32s
) -> None:
    """Write the terms of each row, ascending, at its cursor, which advances; rows with a cursor of -1 are skipped.

    A cursor beyond the room of its row shows that the arrays are damaged. Nothing is written beyond the end of `terms`.
    """
    number, column = 0, 0
    while number < len(list_terms) or column < len(column_terms):
        if column == len(column_terms) or (number < len(list_terms) and list_terms[number] < column_terms[column]):
            row, position = -1, list_ptr[number]
            while position < list_ptr[number + 1]:
                row, position = next_row(row, gaps, position, list_ptr[number + 1])
                if row < 0 or row >= len(cursor):
                    break
                if 0 <= cursor[row] < len(terms):
                    terms[cursor[row]] = list_terms[number]
                    cursor[row] += 1
            number += 1
        else:
            for row in range(len(cursor)):
                if 0 <= cursor[row] < len(terms) and bits[column, row // WORD] >> np.uint64(row % WORD) & np.uint64(1):
                    terms[cursor[row]] = column_terms[column]
                    cursor[row] += 1
            column += 1
