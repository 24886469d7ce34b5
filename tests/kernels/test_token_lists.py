"""Inverted lists of centroids, and pooling of similar tokens."""

import numpy as np
import pytest

from tests.kernels.token_rows import CENTROIDS, DIMS, ROWS, TokenRows, random_query
from trilens.kernels.array_types import Float32s, Float64s
from trilens.kernels.token_lists import count_lists, fill_lists, pool_tokens


def test_lists_by_hand() -> None:
    offsets, nearest = np.array([0, 4, 4, 6, 7]), np.array([2, 0, 2, 2, 2, 4, 2], np.uint16)
    list_ptr = count_lists(offsets, nearest, 6)
    assert list_ptr.tolist() == [0, 1, 1, 4, 4, 5, 5]
    list_rows = np.full(5, -1, np.int32)
    fill_lists(offsets, nearest, list_ptr, list_rows)
    assert list_rows.tolist() == [0, 0, 2, 3, 2]


def test_lists_contain_each_row_once() -> None:
    tokens = TokenRows(seed=8)
    for centroid in range(CENTROIDS):
        rows = [row for row in range(ROWS) if centroid in tokens.nearest[tokens.span(row)]]
        assert tokens.lists.rows[tokens.lists.ptr[centroid] : tokens.lists.ptr[centroid + 1]].tolist() == rows


def slow_pool(vectors: Float32s, factor: int) -> tuple[list[Float64s], list[int]]:
    """Merge the two most similar groups until few enough are left: the mean and the first token of each group."""
    groups = [[token] for token in range(len(vectors))]
    sums = [vector.astype(np.float64) for vector in vectors]
    while len(groups) > max(1, -(-len(vectors) // factor)):
        units = np.array([total / np.linalg.norm(total) for total in sums])
        similarities = np.where(np.tri(len(units), k=-1) > 0, units @ units.T, -np.inf)
        a, b = (int(index) for index in np.unravel_index(similarities.argmax(), similarities.shape))
        groups[b], sums[b] = groups[b] + groups[a], sums[b] + sums[a]
        del groups[a], sums[a]
    order = np.argsort([min(group) for group in groups])
    return [sums[i] / len(groups[i]) for i in order], [min(groups[i]) for i in order]


@pytest.mark.parametrize("factor", [1, 2, 3, 5, 100])
def test_pooling_merges_the_most_similar_tokens(factor: int) -> None:
    random = np.random.default_rng(factor)
    lengths = [7, 0, 1, 2, 12, 25, 3]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    vectors = (random_query(50, seed=factor) * random.uniform(0.5, 3, (50, 1))).astype(np.float32)
    before = vectors.copy()
    kept_offsets, pooled, first = pool_tokens(offsets, vectors, factor)
    assert vectors.tolist() == before.tolist()
    assert np.diff(kept_offsets).tolist() == [-(-length // factor) for length in lengths]
    for text in range(len(lengths)):
        means, names = slow_pool(vectors[offsets[text] : offsets[text + 1]], factor)
        span = slice(kept_offsets[text], kept_offsets[text + 1])
        assert (first[span] - offsets[text]).tolist() == names
        np.testing.assert_allclose(pooled[span], np.reshape(means, (-1, DIMS)), atol=1e-5)


def test_pooling_by_hand() -> None:
    tokens = [[1, 0, 0, 0], [0, 1, 0, 0], [0.8, 0.6, 0, 0], [0, 0, 1, 0]]
    # Token 2 is nearer to token 0 (0.8) than to token 1 (0.6); their mean (0.9, 0.3) is nearer to 1 than anything to token 3.
    offsets, pooled, first = pool_tokens(np.array([0, 4]), np.array(tokens, np.float32), 2)
    assert (offsets.tolist(), first.tolist()) == ([0, 2], [0, 3])
    np.testing.assert_allclose(pooled, np.array([[0.6, 1.6 / 3, 0, 0], [0, 0, 1, 0]]), rtol=1e-6)


def test_pooling_accepts_zero_vectors() -> None:
    vectors = np.zeros((4, DIMS), np.float32)
    vectors[1] = random_query(1)[0]
    _, pooled, first = pool_tokens(np.array([0, 4]), vectors, 2)
    assert np.isfinite(pooled).all() and len(first) == 2
