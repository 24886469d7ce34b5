"""Rows of weighted terms turned into lists and columns, which bound what a row can score.

A term that few rows hold has a *list*, cut by windows of WINDOW rows: the places of its rows in the window (16 bits), and for
each the share of the term's highest weight that the row has, in 255ths, rounded up. A term that many rows hold has a *column*
(kernels/columns.py), whose 15 levels are chosen among the same 255ths. Window w of list l is
`list_ptr[w · lists + l]:list_ptr[w · lists + l + 1]`.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trilens.kernels.columns import BLOCK, BLOCK_BYTES, LEVELS
from trilens.kernels.compile import inline_kernel, kernel

WINDOW = 1 << 16
SHARES = 255

Ints = NDArray[np.int64]
Terms = NDArray[np.int32]
Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]
Codes = NDArray[Any]


@kernel
def count_terms(indptr: Ints, terms: Terms, codes: Codes, scales: Floats, dim: int) -> tuple[Ints, Floats]:
    """In how many rows each term stands, and its highest weight."""
    counts, most = np.zeros(dim, np.int64), np.zeros(dim, np.float32)
    for row in range(len(indptr) - 1):
        for at in range(indptr[row], indptr[row + 1]):
            counts[terms[at]] += 1
            most[terms[at]] = max(most[terms[at]], np.float32(scales[row] * np.float32(codes[at])))
    return counts, most


@inline_kernel
def share_of(weight: np.float32, most: np.float32) -> int:
    """The smallest share of the highest weight that is at least the weight."""
    return max(1, min(SHARES, int(np.ceil(np.float64(weight) / np.float64(most) * SHARES))))


@kernel
def count_shares(
    indptr: Ints, terms: Terms, codes: Codes, scales: Floats, most: Floats, lists: Ints, columns: Ints
) -> tuple[Ints, Ints]:
    """`list_ptr`, and how often each share occurs in each column; `lists` and `columns` number the terms, -1 for none."""
    rows = len(indptr) - 1
    count = lists.max() + 1
    list_ptr = np.zeros((rows + WINDOW - 1) // WINDOW * count + 1, np.int64)
    shares = np.zeros((columns.max() + 1, SHARES + 1), np.int64)
    for row in range(rows):
        first = row // WINDOW * count
        for at in range(indptr[row], indptr[row + 1]):
            term = terms[at]
            if lists[term] >= 0:
                list_ptr[first + lists[term] + 1] += 1
            else:
                weight = np.float32(scales[row] * np.float32(codes[at]))
                shares[columns[term], share_of(weight, most[term])] += 1
    return np.cumsum(list_ptr), shares


@kernel
def choose_levels(shares: Ints) -> tuple[Bytes, Bytes]:
    """The level of each share in each column, and the highest share of each level.

    Bounds lie closest where there are most weights: what a level overstates is least in all if levels are spread as the square
    root of how many weights there are. Every level is at least as high as its weights; the last is the highest weight.
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
def fill_lists(
    indptr: Ints,
    terms: Terms,
    codes: Codes,
    scales: Floats,
    most: Floats,
    lists: Ints,
    columns: Ints,
    level_of: Bytes,
    list_ptr: Ints,
    list_rows: NDArray[np.uint16],
    list_shares: Bytes,
    column_bytes: Bytes,
) -> None:
    """Write the places and shares of all lists, and the levels of all columns; `column_bytes` is zero on entry."""
    cursor = list_ptr[:-1].copy()
    rows = len(indptr) - 1
    count = lists.max() + 1
    width = (rows + BLOCK - 1) // BLOCK * BLOCK_BYTES
    for row in range(rows):
        first = row // WINDOW * count
        byte = row // BLOCK * BLOCK_BYTES + row % BLOCK_BYTES
        shift = 4 * (row % BLOCK // BLOCK_BYTES)
        for at in range(indptr[row], indptr[row + 1]):
            term = terms[at]
            share = share_of(np.float32(scales[row] * np.float32(codes[at])), most[term])
            if lists[term] >= 0:
                cell = first + lists[term]
                list_rows[cursor[cell]], list_shares[cursor[cell]] = row % WINDOW, share
                cursor[cell] += 1
            else:
                column_bytes[columns[term] * width + byte] |= level_of[columns[term], share] << shift
