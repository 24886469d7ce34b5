"""Each kernel of a multi search against a slow implementation that decodes all tokens."""

import numpy as np
import pytest

from tests.kernels.token_rows import (
    CENTROIDS,
    GROUPS,
    ROWS,
    ProbedTokens,
    TokenRows,
    padded_columns,
    probe,
    random_mask,
    random_query,
)
from trilens.kernels.array_types import Float32s, Int32s, Mask, UInt8s
from trilens.kernels.multi import gather, keep_best, maxsim, rerank
from trilens.kernels.row_filter import RowFilter

QUERY_TOKENS = [1, 31, 32, 33, 70]
KINDS = [(4, 32), (4, 96), (2, 64), (1, 128)]  # bits and dimensions: 16 or 48 bytes of codes


def reached(rows: TokenRows, probed: ProbedTokens, reach: int) -> Mask:
    """Which centroids belong to the best groups of each query token (m, centroids)."""
    best = np.argsort(-probed.leader_scores, axis=1)[:, :reach]
    group_of = np.repeat(np.arange(GROUPS), np.diff(rows.group_ptr))
    inside: Mask = (best[:, :, None] == group_of).any(axis=1)
    return inside


@pytest.mark.parametrize("tokens", QUERY_TOKENS)
@pytest.mark.parametrize("reach, probes, normalised", [(1, 1, True), (3, 5, True), (3, 5, False), (GROUPS, CENTROIDS, True)])
def test_centroids_are_scored_in_the_best_groups_only(tokens: int, reach: int, probes: int, normalised: bool) -> None:
    rows = TokenRows(normalised=normalised)
    query = random_query(tokens)
    probed = probe(rows, query, reach, probes)
    scores = probed.scores
    products = query @ rows.centroids.T
    inside = reached(rows, probed, reach)
    assert (np.isfinite(scores.scores.T) == inside).all()
    np.testing.assert_allclose(scores.scores.T[inside], products[inside], atol=1e-5)
    visible = np.where(inside, products, -np.inf)
    for token in range(tokens):
        count = min(probes, int(inside[token].sum()))
        best = np.argsort(-visible[token])[:count]
        assert scores.probed[token, :count].tolist() == best.tolist()
        np.testing.assert_allclose(scores.probed_scores[token, :count], visible[token][best], atol=1e-5)
        # fewer centroids than probes: the last one is repeated
        assert (scores.probed[token, count:] == best[-1]).all()
        np.testing.assert_allclose(scores.probed_scores[token, count:], visible[token][best[-1]], atol=1e-5)


@pytest.mark.parametrize("tokens", QUERY_TOKENS)
@pytest.mark.parametrize("reach", [1, 4, GROUPS])
def test_bytes_are_scores_on_a_scale_of_254(tokens: int, reach: int) -> None:
    rows = TokenRows()
    query = random_query(tokens)
    probed = probe(rows, query, reach, 1)
    score_bytes = probed.scores.score_bytes
    products = query @ rows.centroids.T
    inside = reached(rows, probed, reach)
    leaders = np.repeat(probed.leader_scores, np.diff(rows.group_ptr), axis=1)
    lowest = np.minimum(probed.leader_scores.min(axis=1), np.where(inside, products, np.inf).min(axis=1))
    highest = np.where(inside, products, -np.inf).max(axis=1)
    np.testing.assert_allclose(probed.scores.units, 254 / (highest - lowest), rtol=1e-4)
    scale = (254 / (highest - lowest))[:, None]
    expected = np.minimum(254, (np.where(inside, products, leaders) - lowest[:, None]) * scale)
    assert (np.abs(score_bytes.T[:tokens] - np.floor(expected)) <= 1).all()
    assert score_bytes.max() <= 254
    assert (score_bytes[:, tokens:] == 0).all()


def test_identical_centroids_have_a_finite_scale() -> None:
    rows = TokenRows()
    rows.centroids[:] = rows.centroids[0]
    rows.leaders[:] = rows.centroids[0]
    scores = probe(rows, random_query(2), GROUPS, 3).scores
    assert np.isfinite(scores.units).all() and np.isfinite(scores.scores).all()
    assert len(np.unique(scores.score_bytes[:, 0])) == 1


def slow_gains(rows: TokenRows, probed: ProbedTokens, known: int, allowed: Mask) -> dict[int, float]:
    """The gains of all allowed rows with a token near a probed centroid."""
    ids, scores = probed.scores.probed, probed.scores.probed_scores
    gains = {}
    for row in np.flatnonzero(allowed).tolist():
        near = np.isin(ids, rows.nearest[rows.span(row)]) & (ids < known)
        if near.any():
            margins = np.where(near, scores - scores[:, -1:], 0)
            gains[row] = float(margins.max(axis=1).sum())
    return gains


@pytest.mark.parametrize("probes", [1, 2, 8, CENTROIDS])
@pytest.mark.parametrize("known", [CENTROIDS, 40])
@pytest.mark.parametrize("filtered", [False, True])
def test_rows_gain_by_their_best_centroid_for_each_query_token(probes: int, known: int, filtered: bool) -> None:
    # `known` < CENTROIDS: a segment older than the last page of the codebook.
    rows = TokenRows(seed=2)
    probed = probe(rows, random_query(9), 4, probes)
    allowed = random_mask(5, 0.6) if filtered else np.ones(ROWS, np.bool_)
    gains, last, touched = np.zeros(ROWS, np.float32), np.zeros(ROWS, np.int32), np.empty(ROWS, np.int32)
    row_filter = RowFilter.of(allowed if filtered else None)
    count = gather(probed.scores, rows.lists_of(known), *row_filter, gains, last, touched)
    expected = slow_gains(rows, probed, known, allowed)
    assert sorted(touched[:count].tolist()) == sorted(expected)
    np.testing.assert_allclose([gains[row] for row in expected], list(expected.values()), atol=1e-5)
    assert gains[~np.isin(np.arange(ROWS), list(expected))].max(initial=0) == 0


@pytest.mark.parametrize("keep", [1, 7, 50, 199, 200, 300])
@pytest.mark.parametrize("shape", ["spread", "ties", "zeros", "tiny"])
def test_the_best_rows_are_kept_and_few_others(keep: int, shape: str) -> None:
    random = np.random.default_rng(keep)
    values = random.gamma(2, size=1000).astype(np.float32)
    if shape == "ties":
        values = random.integers(0, 4, 1000).astype(np.float32)
    elif shape in ("zeros", "tiny"):
        values *= np.float32(0 if shape == "zeros" else 1e-12)
    listed = random.permutation(1000)[:200].astype(np.int32)
    rows = np.concatenate([listed, np.full(5, -7, np.int32)])  # entries after the count are ignored
    kept = keep_best(values, rows, 200, keep)
    assert kept >= min(keep, 200)
    front = rows[:kept].tolist()
    assert len(set(front)) == kept and set(front) <= set(listed.tolist())
    assert front == [row for row in listed.tolist() if row in set(front)]  # in their original order
    lost = [row for row in listed.tolist() if row not in set(front)]
    assert values[front].min() >= values[lost].max(initial=0)
    if shape == "spread" and keep < 200:
        nth = np.sort(values[listed])[-keep]
        assert values[front].min() >= nth - values[listed].max() / 1000  # a bin at most


@pytest.mark.parametrize("bits, dims", KINDS)
@pytest.mark.parametrize("tokens", QUERY_TOKENS)
def test_the_score_of_a_row_is_maxsim(tokens: int, bits: int, dims: int) -> None:
    rows = TokenRows(seed=3, bits=bits, dims=dims)
    query = random_query(tokens, length=2, dims=dims)
    scores = scores_by_maxsim(rows, query, np.arange(ROWS, dtype=np.int32))
    expected = rows.maxsim(query)
    assert expected[3] == expected[17] == -np.inf  # no tokens
    np.testing.assert_allclose(scores, expected, atol=1e-4)
    selected = np.array([5, 17, 2, 5], np.int32)
    assert scores_by_maxsim(rows, query, selected).tolist() == scores[selected].tolist()


def scores_by_maxsim(rows: TokenRows, query: Float32s, numbers: Int32s) -> Float32s:
    scores = np.empty(len(numbers), np.float32)
    maxsim(numbers, padded_columns(query), len(query), rows.offsets, rows.codes, rows.tables, scores)
    return scores


def scores_by_rerank(rows: TokenRows, probed: ProbedTokens, margins: UInt8s) -> Float32s:
    scores = np.empty(ROWS, np.float32)
    numbers = np.arange(ROWS, dtype=np.int32)
    rerank(numbers, probed.query, probed.scores, margins, rows.offsets, rows.codes, rows.tables, scores)
    return scores


@pytest.mark.parametrize("bits, dims", KINDS)
@pytest.mark.parametrize("tokens", QUERY_TOKENS)
@pytest.mark.parametrize("reach", [1, GROUPS])
def test_with_the_widest_margin_reranking_is_maxsim(tokens: int, reach: int, bits: int, dims: int) -> None:
    rows = TokenRows(seed=4, bits=bits, dims=dims)
    probed = probe(rows, random_query(tokens, dims=dims), reach, 1)
    scores = scores_by_rerank(rows, probed, np.full(tokens, 255, np.uint8))
    np.testing.assert_allclose(scores, rows.maxsim(probed.vectors), atol=1e-4 * tokens)  # the query is quantised
    assert scores[3] == scores[17] == -np.inf
    # centroid scores that were computed on the way are correct
    computed = np.isfinite(probed.scores.scores)
    products = rows.centroids @ probed.vectors.T
    np.testing.assert_allclose(probed.scores.scores[computed], products[computed], atol=1e-5)


@pytest.mark.parametrize("tokens", [1, 33, 70])
def test_with_smaller_margins_it_is_a_lower_bound(tokens: int) -> None:
    rows = TokenRows(seed=4)
    query = random_query(tokens)
    similarities = rows.similarities(query)
    exact = np.array([similarities[:, rows.span(row)].max(axis=1, initial=-np.inf).sum() for row in range(ROWS)])
    last, below = np.full(ROWS, -np.inf), 0
    for margin in (0, 1, 5, 20, 60, 120, 255):
        probed = probe(rows, query, 3, 1)
        margins = np.full(tokens, margin, np.uint8)
        margins[0] = min(255, margin + 10)  # query tokens have different margins
        scores = scores_by_rerank(rows, probed, margins)
        for row in range(ROWS):
            near = probed.scores.score_bytes[rows.nearest[rows.span(row)], :tokens].astype(np.int64)
            used = near >= np.maximum(near.max(axis=0, initial=0) - margins, 0)
            slow = np.where(used.T, similarities[:, rows.span(row)], -np.inf).max(axis=1, initial=-np.inf).sum()
            np.testing.assert_allclose(scores[row], slow, atol=1e-4)
        assert (scores <= exact + 1e-4).all() and (scores >= last - 1e-4).all()
        below += int((scores < exact - 1e-3).sum())
        last = scores
    assert below > 20  # otherwise this data would not test the bound


def test_a_lower_bound_uses_far_fewer_tokens() -> None:
    # Row 5 has 1,100 tokens; a margin of 0 must use those of the best centroid only.
    rows = TokenRows(seed=4)
    probed = probe(rows, random_query(1), GROUPS, 1)
    near = probed.scores.score_bytes[rows.nearest[rows.span(5)], 0]
    best = rows.similarities(random_query(1))[0, rows.span(5)][near == near.max()].max()
    np.testing.assert_allclose(scores_by_rerank(rows, probed, np.zeros(1, np.uint8))[5], best, atol=1e-4)
    assert (near == near.max()).sum() < 100
