import numpy as np
import pytest

from trilens.errors import BadInput
from trilens.index.exact import BLOCK_ROWS, exact_dense, exact_multi, exact_sparse, exact_xtr
from trilens.index.topk import TopK
from trilens.kernels.array_types import Float32s, Mask
from trilens.represent import Dense, Multi, Sparse


def sparse(matrix: Float32s) -> Sparse:
    rows, terms = np.nonzero(matrix)
    indptr = np.searchsorted(rows, np.arange(len(matrix) + 1)).astype(np.int64)
    return Sparse(indptr, terms.astype(np.int32), matrix[rows, terms], matrix.shape[1])


def multi(texts: list[Float32s], dims: int) -> Multi:
    offsets = np.cumsum([0, *(len(text) for text in texts)], dtype=np.int64)
    return Multi(offsets, np.concatenate([np.empty((0, dims), np.float32), *texts]), np.zeros(offsets[-1], np.int32))


def random_texts(random: np.random.Generator, count: int, dims: int, least: int = 0) -> list[Float32s]:
    return [random.normal(size=(random.integers(least, 6), dims)).astype(np.float32) for _ in range(count)]


def require_best(top: TopK, scores: Float32s, allowed: Mask | None = None) -> None:
    """Check that `top` has the best rows of the score matrix, each with its score."""
    rows = np.arange(scores.shape[1]) if allowed is None else np.flatnonzero(allowed)
    count = min(top.rows.shape[1], len(rows))
    assert (top.rows[:, count:] == -1).all() and (top.scores[:, count:] == -np.inf).all()
    for query in range(len(scores)):
        best = top.rows[query, :count]
        assert len(set(best.tolist())) == count and set(best.tolist()) <= set(rows.tolist())
        np.testing.assert_allclose(top.scores[query, :count], np.sort(scores[query, rows])[::-1][:count], atol=1e-5)
        np.testing.assert_allclose(top.scores[query, :count], scores[query, best], atol=1e-5)


def test_dense_by_hand() -> None:
    docs = Dense(np.array([[1, 0], [0, 2], [1, 1], [1, 0]], np.float32))
    queries = Dense(np.array([[3, 1], [-1, 0]], np.float32))
    top = exact_dense(queries, docs, 3)
    assert top.rows.tolist() == [[2, 0, 3], [1, 0, 2]]  # 3 + 1, 3, 3 (the smaller row first); 0, −1, −1
    assert top.scores.tolist() == [[4, 3, 3], [0, -1, -1]]
    filtered = exact_dense(queries, docs, 3, np.array([False, True, False, True]))
    assert filtered.rows.tolist() == [[3, 1, -1], [1, 3, -1]]


@pytest.mark.parametrize("rows", [0, 1, 100, BLOCK_ROWS + 700])
@pytest.mark.parametrize("passing", [None, 0.0, 0.01, 0.5])
@pytest.mark.parametrize("k", [1, 10, 150])
def test_dense_equals_numpy(rows: int, passing: float | None, k: int) -> None:
    random = np.random.default_rng(rows)
    queries, docs = (Dense(random.normal(size=(count, 8)).astype(np.float32)) for count in (3, rows))
    allowed = None if passing is None else random.random(rows) < passing
    require_best(exact_dense(queries, docs, k, allowed), queries.vectors @ docs.vectors.T, allowed)


def test_equal_vectors_are_ordered_by_row() -> None:
    random = np.random.default_rng(0)
    firsts = []
    for batch in (1, 2, 8):
        for rows in range(2, 60):
            docs = random.normal(size=(rows, 384)).astype(np.float32)
            docs[-1] = docs[0]
            top = exact_dense(Dense(np.repeat(docs[:1], batch, axis=0)), Dense(docs), 1)
            firsts += top.rows[:, 0].tolist()
    assert set(firsts) == {0}


def test_sparse_by_hand() -> None:
    docs = sparse(np.array([[1, 0, 2], [0, 0, 0], [0, 5, 0], [0, 0, 1]], np.float32))
    queries = sparse(np.array([[2, 0, 3], [0, 0, 0]], np.float32))
    top = exact_sparse(queries, docs, 5)
    assert top.rows.tolist() == [[0, 3, 1, 2, -1], [0, 1, 2, 3, -1]]
    assert top.scores.tolist() == [[2 * 1 + 3 * 2, 3 * 1, 0, 0, -np.inf], [0, 0, 0, 0, -np.inf]]
    assert exact_sparse(queries, docs, 1, np.array([False, True, True, True])).rows.tolist() == [[3], [1]]


@pytest.mark.parametrize("seed", range(4))
def test_sparse_equals_numpy(seed: int) -> None:
    random = np.random.default_rng(seed)
    matrix = (random.normal(size=(60, 20)) * (random.random((60, 20)) < 0.2)).astype(np.float32)
    allowed = random.random(50) < 0.5 if seed % 2 else None
    queries, docs = matrix[:10], matrix[10:]
    require_best(exact_sparse(sparse(queries), sparse(docs), 7, allowed), queries @ docs.T, allowed)


def test_multi_by_hand() -> None:
    tokens = [np.array(rows, np.float32) for rows in ([[1, 0], [0, 1]], [[2, 0]], [[1, 1]])]
    query = multi([np.array([[1, 0], [0, 2]], np.float32)], 2)
    top = exact_multi(query, multi(tokens, 2), 4)
    assert top.rows.tolist() == [[0, 2, 1, -1]]  # 1 + 2; 1 + 2 (the smaller row first); 2 + 0
    assert top.scores.tolist() == [[3, 3, 2, -np.inf]]
    assert exact_multi(query, multi(tokens, 2), 1, np.array([False, True, False])).rows.tolist() == [[1]]


@pytest.mark.parametrize("seed", range(4))
def test_multi_equals_numpy(seed: int) -> None:
    random = np.random.default_rng(seed)
    queries, docs = random_texts(random, 5, 4), random_texts(random, 40, 4, least=1)
    allowed = random.random(40) < 0.5 if seed % 2 else None
    scores = np.array([[(query @ doc.T).max(axis=1).sum() for doc in docs] for query in queries], np.float32)
    require_best(exact_multi(multi(queries, 4), multi(docs, 4), 7, allowed), scores, allowed)


def test_a_row_without_tokens_ranks_last() -> None:
    docs = [np.empty((0, 2), np.float32), np.array([[-1, -1]], np.float32), np.array([[1, 1]], np.float32)]
    top = exact_multi(multi([np.ones((1, 2), np.float32)], 2), multi(docs, 2), 3)
    assert top.rows[0, :2].tolist() == [2, 1]
    assert top.scores.tolist() == [[2, -2, -np.inf]]


def test_other_dimensions_are_refused() -> None:
    narrow, wide = (np.ones((1, dims), np.float32) for dims in (2, 3))
    with pytest.raises(BadInput, match="query vectors have 3 dimensions; expected 2"):
        exact_dense(Dense(wide), Dense(narrow), 1)
    with pytest.raises(BadInput, match="query terms are over 3 dimensions; expected 2"):
        exact_sparse(sparse(wide), sparse(narrow), 1)
    with pytest.raises(BadInput, match="query tokens have 3 dimensions; expected 2"):
        exact_multi(multi([wide], 3), multi([narrow], 2), 1)


def test_k_must_be_positive() -> None:
    vectors = Dense(np.ones((1, 2), np.float32))
    with pytest.raises(BadInput, match="k is 0; expected at least 1"):
        exact_dense(vectors, vectors, 0)


def test_xtr_by_hand() -> None:
    docs = multi(
        [np.array([[1.0, 0], [0.5, 0]], np.float32), np.array([[0, 1]], np.float32), np.array([[0.9, 0]], np.float32)], 2
    )
    queries = multi([np.array([[1, 0], [0, 1]], np.float32)], 2)
    # One token each: the first query token retrieves a token of row 0, the second a token of row 1.
    top = exact_xtr(queries, docs, 3, 1)
    assert top.rows.tolist() == [[0, 1, -1]] and top.scores.tolist() == [[2, 2, -np.inf]]
    top = exact_xtr(queries, docs, 3, 2)  # similarities [1, 0.9] and [1, 0]: the imputed scores are 0.9 and 0
    np.testing.assert_allclose(top.scores, [[1.9, 1, 0.9]])
    assert top.rows.tolist() == [[1, 0, 2]]


def test_xtr_over_all_tokens_is_maxsim() -> None:
    random = np.random.default_rng(3)
    docs, queries = multi(random_texts(random, 40, 8), 8), multi(random_texts(random, 9, 8, least=1), 8)
    xtr, exact = exact_xtr(queries, docs, 10, 10**6), exact_multi(queries, docs, 10)
    np.testing.assert_allclose(xtr.scores, exact.scores, atol=1e-5)
    np.testing.assert_array_equal(xtr.rows, exact.rows)


@pytest.mark.parametrize("docs", [[], [np.empty((0, 2), np.float32)]], ids=["no rows", "a row without tokens"])
def test_xtr_without_tokens_returns_no_rows(docs: list[Float32s]) -> None:
    assert exact_xtr(multi([np.ones((2, 2), np.float32)], 2), multi(docs, 2), 3, 5).rows.tolist() == [[-1, -1, -1]]
