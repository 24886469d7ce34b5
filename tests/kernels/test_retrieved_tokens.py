"""XTR's token retrieval against a slow implementation that decodes all tokens."""

import numpy as np
import pytest

from tests.kernels.token_rows import CENTROIDS, ROWS, TokenRows, probe, random_mask, random_query
from trilens.kernels.array_types import Float32s
from trilens.kernels.retrieved_tokens import (
    RetrievedRows,
    RowGains,
    TokenSegment,
    add_gains,
    gather_gains,
    gather_tokens,
    offer_similarities,
)
from trilens.kernels.row_filter import RowFilter
from trilens.kernels.topk import new_heaps


def empty_retrieved() -> RetrievedRows:
    return RetrievedRows(np.empty(ROWS, np.float32), np.zeros(ROWS, np.bool_), np.empty(ROWS, np.int32))


@pytest.mark.parametrize("bits, dims", [(4, 32), (2, 64)])
@pytest.mark.parametrize("known", [CENTROIDS, 40])
@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize("room", [0, 3, 2000])
def test_similarities_of_retrieved_tokens(known: int, filtered: bool, room: int, bits: int, dims: int) -> None:
    rows = TokenRows(seed=6, bits=bits, dims=dims)
    probed = probe(rows, random_query(3, dims=dims), 4, 12)
    allowed = random_mask(7, 0.5) if filtered else np.ones(ROWS, np.bool_)
    segment = TokenSegment(rows.offsets, rows.codes, rows.lists_of(known))
    row_filter = RowFilter.of(allowed if filtered else None)
    row_of = np.repeat(np.arange(ROWS), np.diff(rows.offsets))
    all_scores, all_tokens = new_heaps(3, room)
    unmarked = empty_retrieved()
    if room:
        offer_similarities(probed.query, probed.scores, segment, rows.tables, row_filter, unmarked, all_scores, all_tokens)
    for token in range(3):
        heap_scores, heap_rows = new_heaps(1, room)
        found = empty_retrieved()
        count = gather_tokens(
            token, probed.query, probed.scores, segment, rows.tables, row_filter, found, heap_scores[0], heap_rows[0]
        )
        ids = probed.scores.probed[token]
        retrieved = np.flatnonzero(np.isin(rows.nearest, ids[ids < known]) & allowed[row_of])
        similarities = rows.similarities(probed.vectors)[token]
        expected = sorted(set(row_of[retrieved].tolist()))
        assert sorted(found.rows[:count].tolist()) == np.flatnonzero(found.marked).tolist() == expected
        for row in expected:
            best = similarities[retrieved[row_of[retrieved] == row]].max()
            np.testing.assert_allclose(found.best[row], best, atol=1e-5)
        highest = retrieved[np.argsort(-similarities[retrieved])][:room]
        assert sorted(heap_rows[0][heap_rows[0] >= 0].tolist()) == sorted(highest.tolist())
        assert all_tokens[token].tolist() == heap_rows[0].tolist()
        assert all_scores[token].tolist() == heap_scores[0].tolist()
    assert not unmarked.marked.any()


@pytest.mark.parametrize("filtered", [False, True])
def test_gains_of_all_query_tokens_are_summed(filtered: bool) -> None:
    rows = TokenRows(seed=6)
    probed = probe(rows, random_query(5), 4, 12)
    allowed = random_mask(7, 0.5) if filtered else np.ones(ROWS, np.bool_)
    segment, row_filter = TokenSegment(rows.offsets, rows.codes, rows.lists), RowFilter.of(allowed if filtered else None)
    imputed: Float32s = probed.scores.probed_scores[:, -1].copy()
    gains = RowGains(np.zeros(ROWS, np.float32), np.zeros(ROWS, np.bool_), np.empty(ROWS, np.int32))
    retrieved = empty_retrieved()
    total = gather_gains(probed.query, probed.scores, segment, rows.tables, row_filter, imputed, retrieved, gains)
    similarities = rows.similarities(probed.vectors)
    near = (rows.nearest[None, :, None] == probed.scores.probed[:, None, :]).any(axis=2)
    over = np.where(near, np.maximum(similarities - imputed[:, None], 0), 0)
    expected = [over[:, rows.span(row)].max(axis=1, initial=0).sum() * allowed[row] for row in range(ROWS)]
    matching = [row for row in range(ROWS) if allowed[row] and near[:, rows.span(row)].any()]
    np.testing.assert_allclose(gains.gains, expected, atol=1e-4)
    assert sorted(gains.rows[:total].tolist()) == np.flatnonzero(gains.marked).tolist() == matching
    assert not retrieved.marked.any()


def test_gains_over_the_imputed_value_by_hand() -> None:
    best = np.array([9, 0.5, 2, 0.25], np.float32)
    gains = RowGains(np.zeros(4, np.float32), np.zeros(4, np.bool_), np.full(4, -1, np.int32))
    marked = np.array([False, True, True, True])
    total = add_gains(RetrievedRows(best, marked, np.array([2, 1, 3], np.int32)), 3, 0.5, gains, 0)
    assert total == 3 and gains.rows.tolist() == [2, 1, 3, -1]
    # row 1 scores exactly the imputed value, row 3 less: both count as not retrieved
    assert gains.gains.tolist() == [0, 0, 1.5, 0]
    assert not marked.any()
    marked[[0, 2]] = True
    total = add_gains(RetrievedRows(best, marked, np.array([0, 2, 7], np.int32)), 2, 1, gains, total)
    assert total == 4 and gains.rows.tolist() == [2, 1, 3, 0]
    assert gains.gains.tolist() == [8, 0, 2.5, 0]
    assert not marked.any() and gains.marked.all()
