import numpy as np
import pytest

from trilens.kernels.sparse import add_rows, raise_own, sparse_dot_all


def test_inner_products_by_hand() -> None:
    query = np.array([2, 0, 0.5], np.float32)
    indptr, terms = np.array([0, 2, 2, 3]), np.array([0, 2, 1], np.int32)
    # Row 0: 2·3 + 0.5·4. Row 1 is empty. Row 2 has only a term that is not in the query.
    assert sparse_dot_all(query, indptr, terms, np.array([3, 4, 5], np.float32)).tolist() == [8, 0, 0]


@pytest.mark.parametrize("seed", range(5))
def test_inner_products_equal_numpy(seed: int) -> None:
    random = np.random.default_rng(seed)
    docs = (random.normal(size=(40, 12)) * (random.random((40, 12)) < 0.3)).astype(np.float32)
    query = random.normal(size=12).astype(np.float32)
    rows, terms = np.nonzero(docs)
    indptr = np.searchsorted(rows, np.arange(41)).astype(np.int64)
    scores = sparse_dot_all(query, indptr, terms.astype(np.int32), docs[rows, terms])
    np.testing.assert_allclose(scores, docs @ query, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_sums_and_raised_weights_equal_numpy(seed: int) -> None:
    random = np.random.default_rng(seed)
    first, second = (np.where(random.random((7, 12)) < share, random.random((7, 12)), 0) for share in (0.5, 0.3))
    first[2] = second[2] = first[4] = second[6] = 0
    sums = add_rows(*rows_of(first), *rows_of(second))
    total = first.astype(np.float32) + second.astype(np.float32)
    for array, expected in zip(sums, rows_of(total), strict=True):
        np.testing.assert_array_equal(array, expected)
    own_starts, own_terms, _ = rows_of(second)
    raised = raise_own(*rows_of(first), own_starts, own_terms, 3.0)
    np.testing.assert_allclose(raised, rows_of(np.where(second > 0, 3 * first, first))[2], rtol=1e-6)


def rows_of(dense: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Offsets, terms and weights of the positive entries."""
    positive = dense > 0
    offsets = np.append(0, positive.sum(axis=1).cumsum())
    return offsets, np.nonzero(positive)[1].astype(np.int32), dense[positive].astype(np.float32)
