"""Lists and columns of weighted terms against the rows that they were built from."""

import numpy as np

from trilens.kernels.array_types import Float32s
from trilens.kernels.columns import BLOCK, BLOCK_BYTES, LEVELS
from trilens.kernels.sparse import CodedRows
from trilens.kernels.sparse_lists import SHARES, ListArrays, TermNumbers, choose_levels, count_shares, count_terms, fill_lists

ROWS, TERMS = 300, 6
NUMBERS = TermNumbers(np.array([0, -1, 1, -1, 2, 3]), np.array([-1, 0, -1, 1, -1, -1]))


def random_rows() -> tuple[CodedRows, Float32s]:
    """Rows, and their weights (rows, terms); term 5 does not occur."""
    random = np.random.default_rng(0)
    codes = random.integers(1, 256, (ROWS, TERMS)) * (random.random((ROWS, TERMS)) < [0.1, 0.7, 0.1, 0.9, 0.1, 0])
    scales = random.uniform(0.01, 0.1, ROWS).astype(np.float32)
    rows, terms = np.nonzero(codes)
    indptr = np.searchsorted(rows, np.arange(ROWS + 1)).astype(np.int64)
    weights = (scales[:, None] * codes.astype(np.float32)).astype(np.float32)
    return CodedRows(indptr, terms.astype(np.int32), codes[rows, terms].astype(np.uint8), scales), weights


def test_lists_and_columns_bound_the_weights() -> None:
    rows, weights = random_rows()
    counts, highest = count_terms(rows, TERMS)
    assert counts.tolist() == (weights > 0).sum(axis=0).tolist()
    assert highest.tolist() == weights.max(axis=0).tolist()
    list_ptr, histogram = count_shares(rows, highest, NUMBERS)
    assert np.diff(list_ptr).tolist() == counts[[0, 2, 4, 5]].tolist()
    assert histogram.sum(axis=1).tolist() == counts[[1, 3]].tolist()
    level_of, tops = choose_levels(histogram)
    width = -(-ROWS // BLOCK) * BLOCK_BYTES
    list_rows, list_shares = np.empty(list_ptr[-1], np.uint16), np.empty(list_ptr[-1], np.uint8)
    columns = np.zeros(2 * width, np.uint8)
    fill_lists(rows, highest, NUMBERS, level_of, ListArrays(list_ptr, list_rows, list_shares, columns))
    for number, term in enumerate([0, 2, 4, 5]):
        span = slice(list_ptr[number], list_ptr[number + 1])
        assert list_rows[span].tolist() == np.flatnonzero(weights[:, term]).tolist()
        bounds = list_shares[span] / SHARES * highest[term]
        exact = weights[list_rows[span], term]
        assert (bounds >= exact * (1 - 1e-6)).all() and (bounds <= exact + highest[term] / SHARES * 1.001).all()
    for number, term in enumerate([1, 3]):
        blocks = columns[number * width : (number + 1) * width].reshape(-1, BLOCK_BYTES)
        levels = np.concatenate([blocks & 15, blocks >> 4], axis=1).reshape(-1)
        assert not levels[ROWS:].any()
        assert ((levels[:ROWS] > 0) == (weights[:, term] > 0)).all()
        assert (tops[number][levels[:ROWS]] / SHARES * highest[term] >= weights[:, term] * (1 - 1e-6)).all()


def test_levels_ascend_to_the_highest_share() -> None:
    histogram = np.random.default_rng(1).integers(0, 50, (3, SHARES + 1))
    histogram[1, 20:] = 0
    histogram[2] = 0
    level_of, tops = choose_levels(histogram)
    for column in range(3):
        assert (np.diff(tops[column].astype(int)) >= 0).all() and tops[column, LEVELS - 1] == SHARES
        levels = level_of[column, 1:]
        assert (np.diff(levels.astype(int)) >= 0).all() and levels[0] == 1 and levels[-1] <= LEVELS - 1
        assert (tops[column][levels] >= np.arange(1, SHARES + 1)).all()
