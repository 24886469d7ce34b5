"""Inverted lists and columns of weighted terms, which bound the scores of rows.

A rare term has a *list*, partitioned into windows of WINDOW rows: the offsets of its rows in the window (16 bits), and for
each the weight as a share of the highest weight of the term, in 255ths, rounded up. A frequent term has a *column*
(kernels/columns.py), whose 15 levels are chosen among the same 255ths. Window w of list l is `list_ptr[w · lists +
l]:list_ptr[w · lists + l + 1]`.
"""

from typing import NamedTuple

import numpy as np

from trilens.kernels.array_types import Float32s, Int64s, UInt8s, UInt16s
from trilens.kernels.columns import BLOCK, BLOCK_BYTES, LEVELS
from trilens.kernels.compile import inline_kernel, kernel
from trilens.kernels.sparse import CodedRows

WINDOW = 1 << 16
SHARES = 255


class TermNumbers(NamedTuple):
    """The number of the list and of the column of each term of the vocabulary; -1 if it has none."""

    lists: Int64s
    columns: Int64s


class ListArrays(NamedTuple):
    """The arrays that `fill_lists` writes, apart from `ptr`; `columns` is zero on entry."""

    ptr: Int64s
    rows: UInt16s
    shares: UInt8s
    columns: UInt8s


@kernel
def count_terms(rows: CodedRows, dim: int) -> tuple[Int64s, Float32s]:
    """The document frequency and the highest weight of each term."""
    indptr, terms, codes, scales = rows.indptr, rows.terms, rows.codes, rows.scales
    counts, highest = np.zeros(dim, np.int64), np.zeros(dim, np.float32)
    for row in range(len(indptr) - 1):
        for position in range(indptr[row], indptr[row + 1]):
            term = terms[position]
            counts[term] += 1
            highest[term] = max(highest[term], np.float32(scales[row] * np.float32(codes[position])))
    return counts, highest


@inline_kernel
def share_of(weight: np.float32, highest: np.float32) -> int:
    """The smallest share of the highest weight that is not below the weight."""
    return max(1, min(SHARES, int(np.ceil(np.float64(weight) / np.float64(highest) * SHARES))))


@kernel
def count_shares(rows: CodedRows, highest: Float32s, numbers: TermNumbers) -> tuple[Int64s, Int64s]:
    """Compute `list_ptr`, and the histogram of the shares of each column."""
    indptr, terms, codes, scales = rows.indptr, rows.terms, rows.codes, rows.scales
    lists, columns = numbers.lists, numbers.columns
    row_count = len(indptr) - 1
    list_count = lists.max() + 1
    list_ptr = np.zeros((row_count + WINDOW - 1) // WINDOW * list_count + 1, np.int64)
    shares = np.zeros((columns.max() + 1, SHARES + 1), np.int64)
    for row in range(row_count):
        first = row // WINDOW * list_count
        for position in range(indptr[row], indptr[row + 1]):
            term = terms[position]
            if lists[term] >= 0:
                list_ptr[first + lists[term] + 1] += 1
            else:
                weight = np.float32(scales[row] * np.float32(codes[position]))
                shares[columns[term], share_of(weight, highest[term])] += 1
    return np.cumsum(list_ptr), shares


@kernel
def choose_levels(shares: Int64s) -> tuple[UInt8s, UInt8s]:
    """The level of each share in each column, and the highest share of each level.

    A level bounds its weights from above. The total overestimate is least if the density of levels follows the square root of
    the density of weights. The last level is the highest weight.
    """
    level_of = np.zeros((len(shares), SHARES + 1), np.uint8)
    tops = np.zeros((len(shares), LEVELS), np.uint8)
    for column in range(len(shares)):
        roots = np.sqrt(shares[column].astype(np.float64))
        step = roots.sum() / (LEVELS - 1)
        level, spread = 1, 0.0
        for share in range(1, SHARES + 1):
            spread += roots[share]
            level_of[column, share] = level
            tops[column, level] = share
            if spread >= step * level and level < LEVELS - 1 and share < SHARES:
                level += 1
        tops[column, level:] = SHARES
    return level_of, tops


@kernel
def fill_lists(rows: CodedRows, highest: Float32s, numbers: TermNumbers, level_of: UInt8s, to: ListArrays) -> None:
    """Write the row offsets and shares of all lists, and the levels of all columns."""
    indptr, terms, codes, scales = rows.indptr, rows.terms, rows.codes, rows.scales
    lists, columns, list_rows, list_shares, column_bytes = numbers.lists, numbers.columns, to.rows, to.shares, to.columns
    cursor = to.ptr[:-1].copy()
    row_count = len(indptr) - 1
    list_count = lists.max() + 1
    width = (row_count + BLOCK - 1) // BLOCK * BLOCK_BYTES
    for row in range(row_count):
        first = row // WINDOW * list_count
        byte = row // BLOCK * BLOCK_BYTES + row % BLOCK_BYTES
        shift = 4 * (row % BLOCK // BLOCK_BYTES)
        for position in range(indptr[row], indptr[row + 1]):
            term = terms[position]
            share = share_of(np.float32(scales[row] * np.float32(codes[position])), highest[term])
            if lists[term] >= 0:
                cell = first + lists[term]
                list_rows[cursor[cell]], list_shares[cursor[cell]] = row % WINDOW, share
                cursor[cell] += 1
            else:
                column_bytes[columns[term] * width + byte] |= level_of[columns[term], share] << shift
