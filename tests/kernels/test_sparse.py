import numpy as np
import pytest

from trilens.kernels.sparse import sparse_dot_all


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
