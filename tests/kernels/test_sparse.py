import numpy as np
import pytest

from trilens.kernels.sparse import add_rows, raise_own, sparse_dot_all


def test_inner_products_by_hand() -> None:
    query = np.array([2, 0, 0.5], np.float32)
    indptr, terms = np.array([0, 2, 2, 3]), np.array([0, 2, 1], np.int32)
    # Row 0: 2·3 + 0.5·4. Row 1 is empty. Row 2 holds only a term that the query does not have.
    assert sparse_dot_all(query, indptr, terms, np.array([3, 4, 5], np.float32)).tolist() == [8, 0, 0]


@pytest.mark.parametrize("seed", range(5))
def test_inner_products_are_what_numpy_gives(seed: int) -> None:
    random = np.random.default_rng(seed)
    docs = (random.normal(size=(40, 12)) * (random.random((40, 12)) < 0.3)).astype(np.float32)
    query = random.normal(size=12).astype(np.float32)
    rows, terms = np.nonzero(docs)
    indptr = np.searchsorted(rows, np.arange(41)).astype(np.int64)
    scores = sparse_dot_all(query, indptr, terms.astype(np.int32), docs[rows, terms])
    np.testing.assert_allclose(scores, docs @ query, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_sums_and_raised_weights_are_what_numpy_gives(seed: int) -> None:
    random = np.random.default_rng(seed)
    one, other = (np.where(random.random((7, 12)) < share, random.random((7, 12)), 0) for share in (0.5, 0.3))
    one[2] = other[2] = one[4] = other[6] = 0
    indptr, terms, weights = add_rows(*rows_of(one), *rows_of(other))
    total = one.astype(np.float32) + other.astype(np.float32)
    for found, expected in zip((indptr, terms, weights), rows_of(total), strict=True):
        np.testing.assert_array_equal(found, expected)
    (starts, held, before), (own_starts, own, _) = rows_of(one), rows_of(other)
    raised = raise_own(starts, held, before, own_starts, own, 3.0)
    np.testing.assert_allclose(raised, rows_of(np.where(other > 0, 3 * one, one))[2], rtol=1e-6)


def rows_of(dense: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As compressed rows."""
    held = dense > 0
    return np.append(0, held.sum(axis=1).cumsum()), np.nonzero(held)[1].astype(np.int32), dense[held].astype(np.float32)
