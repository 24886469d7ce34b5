"""Bags: which rows hold a term, and nothing else, in as few bytes as can be read quickly.

A term that many rows hold has a *column* of bits, 64 rows in a word. Any other has a *list* of the gaps between its rows, 7
bits in a byte, the lowest first; the top bit tells that more follow.
"""

import numpy as np
from numpy.typing import NDArray

from trilens.kernels.compile import inline_kernel, kernel
from trilens.kernels.lanes import lowest_bit
from trilens.kernels.topk import offer

WORD = 64

Ints = NDArray[np.int64]
Terms = NDArray[np.int32]
Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]
Floats = NDArray[np.float32]
Totals = NDArray[np.float64]
Mask = NDArray[np.bool_]


@inline_kernel
def gap_bytes(gap: int) -> int:
    """How many bytes a gap takes."""
    size = 1
    while gap > 127:
        gap >>= 7
        size += 1
    return size


@kernel
def measure_lists(indptr: Ints, terms: Terms, lists: Ints) -> Ints:
    """Where the bytes of each list begin; `lists` numbers the terms, -1 for those without one."""
    list_ptr = np.zeros(lists.max() + 2, np.int64)
    before = np.full(lists.max() + 1, -1, np.int64)
    for row in range(len(indptr) - 1):
        for at in range(indptr[row], indptr[row + 1]):
            place = lists[terms[at]]
            if place >= 0:
                list_ptr[place + 1] += gap_bytes(row - before[place])
                before[place] = row
    return np.cumsum(list_ptr)


@kernel
def fill_bags(indptr: Ints, terms: Terms, lists: Ints, columns: Ints, list_ptr: Ints, gaps: Bytes, bits: Words) -> None:
    """Write the gaps of all lists, and the bits of all columns; `bits` (columns, words) is zero on entry."""
    cursor = list_ptr[:-1].copy()
    before = np.full(len(cursor), -1, np.int64)
    for row in range(len(indptr) - 1):
        for at in range(indptr[row], indptr[row + 1]):
            place = lists[terms[at]]
            if place < 0:
                bits[columns[terms[at]], row // WORD] |= np.uint64(1) << np.uint64(row % WORD)
                continue
            gap = row - before[place]
            before[place] = row
            while gap > 127:
                gaps[cursor[place]] = 128 | (gap & 127)
                cursor[place] += 1
                gap >>= 7
            gaps[cursor[place]] = gap
            cursor[place] += 1


@inline_kernel
def next_row(row: int, gaps: Bytes, at: int) -> tuple[int, int]:
    """The row after `row` in a list whose next gap is at `at`, and where the one after that is."""
    byte = np.int64(gaps[at])  # int() of a byte would be unsigned to the compiler
    gap, shift = byte & 127, 7
    while byte > 127:
        at += 1
        byte = np.int64(gaps[at])
        gap += (byte & 127) << shift
        shift += 7
    return row + int(gap), at + 1


@kernel
def add_list(first: int, last: int, gaps: Bytes, weight: float, totals: Totals) -> None:
    """Add a weight to the totals of the rows of a list."""
    row, at = -1, first
    while at < last:
        row, at = next_row(row, gaps, at)
        totals[row] += weight


@kernel
def add_bits(words: Words, weight: float, totals: Totals) -> None:
    """Add a weight to the totals of the rows of a column."""
    for i in range(len(words)):
        word = words[i]
        while word:
            totals[i * WORD + lowest_bit(word)] += weight
            word &= word - np.uint64(1)


@kernel
def add_terms(
    terms: Terms,
    weights: Floats,
    list_terms: Terms,
    list_ptr: Ints,
    gaps: Bytes,
    column_terms: Terms,
    bits: Words,
    totals: Totals,
) -> None:
    """Add the weights of a query's terms, ascending, to the totals of the rows that hold them."""
    for i in range(len(terms)):
        place = np.searchsorted(list_terms, terms[i])
        if place < len(list_terms) and list_terms[place] == terms[i]:
            add_list(list_ptr[place], list_ptr[place + 1], gaps, np.float64(weights[i]), totals)
            continue
        column = np.searchsorted(column_terms, terms[i])
        if column < len(column_terms) and column_terms[column] == terms[i]:
            add_bits(bits[column], np.float64(weights[i]), totals)


@kernel
def offer_totals(totals: Totals, allowed: Mask, filtered: bool, first_row: int, scores: Floats, rows: Ints) -> None:
    """Offer the allowed rows whose total is above 0."""
    for row in range(len(totals)):
        score = np.float32(totals[row])
        if score > 0 and score >= scores[0] and (not filtered or allowed[row]):
            offer(scores, rows, float(score), first_row + row)


@kernel
def count_bags(list_ptr: Ints, gaps: Bytes, bits: Words, counts: Ints) -> None:
    """Add to each row's count the terms that it holds."""
    for place in range(len(list_ptr) - 1):
        row, at = -1, list_ptr[place]
        while at < list_ptr[place + 1]:
            row, at = next_row(row, gaps, at)
            counts[row] += 1
    for column in range(len(bits)):
        for row in range(len(counts)):
            counts[row] += np.int64(bits[column, row // WORD] >> np.uint64(row % WORD) & np.uint64(1))


@kernel
def unfold_bags(
    list_terms: Terms, list_ptr: Ints, gaps: Bytes, column_terms: Terms, bits: Words, cursor: Ints, terms: Terms
) -> None:
    """Write the terms of each row, ascending, at its cursor, which moves on; a cursor of -1 leaves the row out."""
    place, column = 0, 0
    while place < len(list_terms) or column < len(column_terms):
        if column == len(column_terms) or (place < len(list_terms) and list_terms[place] < column_terms[column]):
            row, at = -1, list_ptr[place]
            while at < list_ptr[place + 1]:
                row, at = next_row(row, gaps, at)
                if cursor[row] >= 0:
                    terms[cursor[row]] = list_terms[place]
                    cursor[row] += 1
            place += 1
        else:
            for row in range(len(cursor)):
                if cursor[row] >= 0 and bits[column, row // WORD] >> np.uint64(row % WORD) & np.uint64(1):
                    terms[cursor[row]] = column_terms[column]
                    cursor[row] += 1
            column += 1
