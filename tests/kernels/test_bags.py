"""Compressed lists and bitmaps decode to the rows that they were built from."""

import numpy as np
import pytest

from trilens.kernels.array_types import Int32s, Int64s
from trilens.kernels.bags import WORD, add_bits, add_list, fill_bags, measure_lists, unfold_bags


def rows_of(lists: list[list[int]], rows: int) -> tuple[Int64s, Int32s]:
    """Offsets and terms of rows, from the list of rows of each term."""
    pairs = sorted((row, term) for term, term_rows in enumerate(lists) for row in term_rows)
    lengths = np.bincount([row for row, _ in pairs], minlength=rows)
    return np.concatenate([[0], np.cumsum(lengths)]), np.array([term for _, term in pairs], np.int32)


def test_gaps_by_hand() -> None:
    # Gaps start from row -1: 1, 127, 128 = 1·128 + 0, 16384 = 1·128² + 0·128 + 0; the lowest 7 bits come first.
    indptr, terms = rows_of([[0, 127, 255, 16639]], 16640)
    list_ptr = measure_lists(indptr, terms, np.array([0]))
    gaps = np.zeros(list_ptr[-1], np.uint8)
    fill_bags(indptr, terms, np.array([0]), np.array([-1]), list_ptr, gaps, np.zeros((0, 260), np.uint64))
    assert gaps.tolist() == [1, 127, 128, 1, 128, 128, 1]
    totals = np.zeros(16640)
    add_list(0, len(gaps), gaps, 2.5, totals)
    assert np.flatnonzero(totals).tolist() == [0, 127, 255, 16639]
    assert set(totals[totals > 0].tolist()) == {2.5}


def test_bits_by_hand() -> None:
    totals = np.ones(3 * WORD)
    add_bits(np.array([1 << 63 | 1, 0, 1 << 5], np.uint64), 0.5, totals)
    assert np.flatnonzero(totals > 1).tolist() == [0, 63, 2 * WORD + 5]


@pytest.mark.parametrize("seed", range(3))
def test_rows_are_decoded(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows, shares = 300_000, [0.3, 0.0001, 0.02, 0.00001, 0.1]
    rows_with = [np.flatnonzero(random.random(rows) < share).tolist() for share in shares]
    indptr, terms = rows_of(rows_with, rows)
    lists, columns = np.array([-1, 0, 1, 2, -1]), np.array([0, -1, -1, -1, 1])
    list_ptr = measure_lists(indptr, terms, lists)
    gaps, bits = np.zeros(list_ptr[-1], np.uint8), np.zeros((2, -(-rows // WORD)), np.uint64)
    fill_bags(indptr, terms, lists, columns, list_ptr, gaps, bits)
    keep = random.random(rows) < 0.5
    lengths = np.diff(indptr)[keep]
    cursor = np.full(rows, -1)
    cursor[keep] = np.cumsum(lengths) - lengths
    decoded = np.empty(lengths.sum(), np.int32)
    unfold_bags(np.array([1, 2, 3], np.int32), list_ptr, gaps, np.array([0, 4], np.int32), bits, cursor, decoded)
    assert decoded.tolist() == terms[np.repeat(keep, np.diff(indptr))].tolist()
