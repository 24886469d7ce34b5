"""BM25 search and scoring of posting lists against sums over all rows."""

import numpy as np
import pytest

from tests.kernels.test_postings import ROWS, TERMS, built, random_rows
from trilens.kernels.array_types import Float64s, Int64s
from trilens.kernels.bm25 import SEEDS, count_in_rows, posting_of, score_rows, search, take_highest, take_possible
from trilens.kernels.topk import new_heaps, sort_heaps

QUERY_PTR = np.array([0, 3, 3, 4, 9], np.int64)
QUERY_TERMS = np.array([1, 4, 7, 0, 2, 3, 5, 8, 11], np.int64)
QUERY_WEIGHTS = np.array([1, 0.5, 2, 1, 0.1, 3, 1, 1, 2], np.float32)
NORMS = np.random.default_rng(2).uniform(0.3, 2, ROWS).astype(np.float32)


def count_matrix() -> Float64s:
    """Counts (rows, terms)."""
    indptr, terms, weights = random_rows(1)
    counts = np.zeros((ROWS, TERMS))
    counts[np.repeat(np.arange(ROWS), np.diff(indptr)), terms] = weights
    return counts


def slow_scores() -> Float64s:
    counts = count_matrix()
    saturated = counts / (counts + NORMS[:, None])
    spans = [slice(QUERY_PTR[q], QUERY_PTR[q + 1]) for q in range(4)]
    return np.array([saturated[:, QUERY_TERMS[span]] @ QUERY_WEIGHTS[span].astype(np.float64) for span in spans])


@pytest.mark.parametrize("k", [1, 10, 700])
@pytest.mark.parametrize("share", [None, 0.3, 0.01])
@pytest.mark.parametrize("stretch", [1.0, 1.7])
def test_the_top_k_are_those_of_all_scores(k: int, share: float | None, stretch: float) -> None:
    lists = built(*random_rows(1), NORMS)
    allowed = np.random.default_rng(4).random(ROWS) < (1 if share is None else share)
    heap_scores, heap_rows = new_heaps(4, k)
    options = (allowed, share is not None, 100, heap_scores, heap_rows)
    search(QUERY_PTR, QUERY_TERMS, QUERY_WEIGHTS, stretch, *lists, NORMS, *options)
    sort_heaps(heap_scores, heap_rows)
    for query, scores in enumerate(slow_scores()):
        matching = np.flatnonzero((scores > 0) & allowed)
        best = np.sort(scores[matching])[::-1][:k]
        assert (heap_rows[query] >= 0).sum() == len(best)
        np.testing.assert_allclose(heap_scores[query, : len(best)], best, rtol=1e-6)
        np.testing.assert_allclose(scores[heap_rows[query, : len(best)] - 100], best, rtol=1e-6)
        assert allowed[heap_rows[query, : len(best)] - 100].all()


def test_scores_of_given_rows() -> None:
    lists = built(*random_rows(1), NORMS)
    rows: Int64s = np.random.default_rng(5).integers(0, ROWS, (4, 30)) + 100
    rows[:, [3, 9]] = 7, 100 + ROWS  # of other segments
    scores = np.full(rows.shape, -np.inf, np.float32)
    arrays = (lists.cell_ptr, lists.cells, lists.postings, lists.counts)
    score_rows(QUERY_PTR, QUERY_TERMS, QUERY_WEIGHTS, rows, 100, *arrays, NORMS, scores)
    assert (scores[:, [3, 9]] == -np.inf).all()
    here = np.delete(np.arange(30), [3, 9])
    expected = np.take_along_axis(slow_scores(), rows[:, here] - 100, axis=1)
    np.testing.assert_allclose(scores[:, here], expected, rtol=1e-6)


def test_counts_in_rows() -> None:
    lists = built(*random_rows(1), NORMS)
    arrays = (lists.cell_ptr, lists.cells, lists.postings)
    terms, rows = np.array([3, -1, 0]), np.arange(ROWS)
    counts = np.empty((3, ROWS))
    count_in_rows(terms, rows, *arrays, lists.counts, counts)
    expected = count_matrix()
    assert counts.tolist() == [expected[:, 3].tolist(), [0.0] * ROWS, expected[:, 0].tolist()]
    assert posting_of(-1, 0, *arrays) == -1


def test_windows_are_queued_by_their_bounds() -> None:
    bounds = np.random.default_rng(6).permutation(100).astype(np.float32)
    before, queue = bounds.copy(), np.empty(100 + SEEDS, np.int64)
    assert take_highest(bounds, queue) == SEEDS
    assert queue[:SEEDS].tolist() == np.argsort(-before)[:SEEDS].tolist()
    assert not bounds[queue[:SEEDS]].any()
    size = take_possible(bounds, 40.0, np.float32(1), queue)
    assert queue[:size].tolist() == np.flatnonzero(bounds > 40).tolist()
