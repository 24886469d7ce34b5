"""Exact and PLAID search over token codes against MaxSim over all decoded tokens."""

from pathlib import Path

import numpy as np
import pytest

from trilens.index.multi_params import MultiParams, default_settings
from trilens.index.multi_search import MOST_QUERY_TOKENS
from trilens.represent import Multi

from .token_index import (
    DIMS,
    DOCS,
    EMPTY_ROWS,
    EVERYTHING,
    METHODS,
    QUERIES,
    QUERY_LENGTHS,
    ROWS,
    TokenIndex,
    build,
    every_method,
    one_line,
    ragged,
    recall,
    require_best,
    require_own_scores,
    same,
    searcher_of,
    share,
    slow_maxsim,
    stretched,
    texts,
)


def test_exact_is_maxsim_over_all_decoded_tokens(index: TokenIndex, in_parts: TokenIndex) -> None:
    scores = slow_maxsim(QUERIES, index.decode())
    assert np.isneginf(scores[:, EMPTY_ROWS]).all()
    for searcher in (index.searcher(), in_parts.searcher()):
        require_best(searcher.search(QUERIES, 10, exact=True), scores)
        require_best(searcher.search(QUERIES, 10, params=METHODS["exact"]), scores)


def test_codes_change_little(index: TokenIndex) -> None:
    # Against the vectors as they were: what four bits lose is far less than what tells good rows from others.
    truth = slow_maxsim(QUERIES, np.split(DOCS.vectors, DOCS.offsets[1:-1]))
    top = index.searcher().search(QUERIES, 10, exact=True)
    best = np.argsort(-truth, axis=1)[:, :10]
    assert np.mean([np.isin(rows, other).mean() for rows, other in zip(top.rows, best, strict=True)]) > 0.95


def test_plaid_finds_nearly_all_and_scores_by_maxsim(index: TokenIndex, in_parts: TokenIndex) -> None:
    scores = slow_maxsim(QUERIES, index.decode())
    for searcher in (index.searcher(), in_parts.searcher()):
        truth = searcher.search(QUERIES, 10, exact=True)
        top = searcher.search(QUERIES, 10)
        assert recall(top, truth) >= 0.97
        require_own_scores(top, scores)
        less = searcher.search(QUERIES, 10, params=METHODS["plaid"])
        assert 0.7 <= recall(less, truth) < 1  # 1 would mean that the data is too easy
        require_own_scores(less, scores)


def test_plaid_is_exact_if_it_may_look_at_everything(index: TokenIndex, in_parts: TokenIndex) -> None:
    for searcher in (index.searcher(), in_parts.searcher()):
        truth = searcher.search(QUERIES, 10, exact=True)
        assert same(searcher.search(QUERIES, 10, params=EVERYTHING), truth)
        # even with margin 0, the last step scores all tokens
        none = searcher.search(QUERIES, 10, params=EVERYTHING.model_copy(update={"margin": 0}))
        assert recall(none, truth) >= 0.85


@pytest.mark.parametrize("margin", [0.05, 0.1, 0.3])
def test_a_wider_margin_loses_no_row(index: TokenIndex, tmp_path: Path, margin: float) -> None:
    # Short rows are far from some tokens of a long query. All rows are candidates here, so what is lost is lost by the margin;
    # but a row of one token has its MaxSim with any margin, and one of two tokens nearly.
    short = TokenIndex([build(texts(30, [1] * 300 + [2] * 300), index.pages, tmp_path)], index.pages)
    queries = texts(31, [32] * 20)
    truth = short.searcher().search(queries, 10, exact=True)
    top = short.searcher().search(queries, 10, params=EVERYTHING.model_copy(update={"candidates": 599, "margin": margin}))
    assert recall(top, truth) >= 0.97


def test_queries_of_unequal_lengths_are_answered_as_well_as_others(index: TokenIndex, in_parts: TokenIndex) -> None:
    """Models with weighted query tokens produce such queries; document tokens have length 1."""
    queries = stretched(QUERIES)
    scores = slow_maxsim(queries, index.decode())
    for searcher in (index.searcher(), in_parts.searcher()):
        truth = searcher.search(queries, 10, exact=True)
        require_best(truth, scores)
        top = searcher.search(queries, 10)
        require_own_scores(top, scores)
        assert recall(top, truth) >= 0.97
        assert same(searcher.search(queries, 10, params=EVERYTHING), truth)


@every_method
def test_a_batch_is_its_queries_one_by_one(index: TokenIndex, params: MultiParams) -> None:
    searcher = index.searcher()
    together = searcher.search(QUERIES, 10, params=params)
    for query in range(0, len(QUERY_LENGTHS), 3):
        alone = searcher.search(QUERIES.take(np.array([query])), 10, params=params)
        assert alone.rows[0].tolist() == together.rows[query].tolist()
        assert alone.scores[0].tolist() == together.scores[query].tolist()


@every_method
def test_several_parts_answer_as_one(index: TokenIndex, in_parts: TokenIndex, params: MultiParams) -> None:
    one = index.searcher().search(QUERIES, 10, params=params)
    several = in_parts.searcher().search(QUERIES, 10, params=params)
    assert several.rows.tolist() == one.rows.tolist()
    np.testing.assert_allclose(several.scores, one.scores, atol=1e-5)


def test_several_parts_answer_as_one_with_few_candidates(index: TokenIndex, in_parts: TokenIndex) -> None:
    for candidates in (12, 20, 32):
        params = MultiParams(method="plaid", reach=4, probes=4, candidates=candidates)
        one = index.searcher().search(QUERIES, 10, params=params)
        several = in_parts.searcher().search(QUERIES, 10, params=params)
        assert several.rows.tolist() == one.rows.tolist()


@every_method
@pytest.mark.parametrize("k", [1, 2, 300, ROWS - len(EMPTY_ROWS), ROWS + 5])
def test_any_number_of_rows_can_be_asked_for(index: TokenIndex, in_parts: TokenIndex, params: MultiParams, k: int) -> None:
    queries = QUERIES.take(np.arange(6))
    for searcher in (index.searcher(), in_parts.searcher()):
        top = searcher.search(queries, k, params=params)
        assert top.rows.shape == top.scores.shape == (6, k)
        count = min(k, ROWS - len(EMPTY_ROWS))
        assert (top.rows[:, :count] >= 0).all() and (top.rows[:, count:] == -1).all()
        assert not np.isin(top.rows, EMPTY_ROWS).any()  # rows without tokens are never found
        assert all(len(set(rows[:count].tolist())) == count for rows in top.rows)
    if not default_settings(params, k, 0).imputes and k >= 300:
        scores = slow_maxsim(queries, index.decode())
        (require_best if k > 300 or params.method == "exact" else require_own_scores)(top, scores)


@every_method
@pytest.mark.parametrize("share_of_rows", [0.9, 0.3, 0.02])
def test_deleted_rows_and_those_filtered_out_are_not_found(
    index: TokenIndex, in_parts: TokenIndex, params: MultiParams, share_of_rows: float
) -> None:
    mask = np.random.default_rng(5).random(ROWS) < share_of_rows
    edges = np.cumsum([len(part) for part in in_parts.parts])[:-1]
    answers = [
        index.searcher([mask]).search(QUERIES, 10, params=params),
        index.searcher().search(QUERIES, 10, mask, params=params),
        in_parts.searcher(np.split(mask, edges)).search(QUERIES, 10, params=params),
        in_parts.searcher().search(QUERIES, 10, mask, params=params),
    ]
    for top in answers:
        assert mask[top.rows[top.rows >= 0]].all()
        count = min(10, int(mask.sum()) - int(mask[EMPTY_ROWS].sum()))
        assert ((top.rows >= 0).sum(axis=1) == count).all()
        assert not np.isin(top.rows, EMPTY_ROWS).any()
    assert same(answers[0], answers[1]) and same(answers[2], answers[3])
    if not default_settings(params, 1, 0).imputes:
        scores = np.where(mask, slow_maxsim(QUERIES, index.decode()), -np.inf)
        for top in answers:
            (require_best if params.method == "exact" else require_own_scores)(top, scores)


@every_method
def test_a_filter_that_leaves_nothing(index: TokenIndex, params: MultiParams) -> None:
    for nothing in (np.zeros(ROWS, np.bool_), np.isin(np.arange(ROWS), EMPTY_ROWS)):
        top = index.searcher().search(QUERIES, 3, nothing, params=params)
        assert (top.rows == -1).all() and (top.scores == -np.inf).all()


@every_method
def test_a_filter_on_rows_far_from_the_query_is_answered_in_full(index: TokenIndex, params: MultiParams) -> None:
    scores = slow_maxsim(QUERIES.take(np.array([2])), index.decode())[0]
    scores[EMPTY_ROWS] = np.inf
    mask = np.isin(np.arange(ROWS), np.argsort(scores)[:100])
    top = index.searcher().search(QUERIES.take(np.array([2])), 10, mask, params=params)
    assert (top.rows >= 0).all() and mask[top.rows].all()


def test_equal_rows_are_found_in_their_order(index: TokenIndex, tmp_path: Path) -> None:
    twice = Multi.concat([DOCS, DOCS])
    double = TokenIndex([build(twice, index.pages, tmp_path)], index.pages)
    for params in METHODS.values():
        top = double.searcher().search(QUERIES, 20, params=params)
        for rows, scores in zip(top.rows.tolist(), top.scores.tolist(), strict=True):
            assert rows == sorted(rows, key=lambda row: (-scores[rows.index(row)], row))
    exact = double.searcher().search(QUERIES, 20, exact=True)
    assert (exact.rows[:, 1::2] == exact.rows[:, ::2] + ROWS).all()


@every_method
def test_a_query_without_tokens_finds_nothing(index: TokenIndex, params: MultiParams) -> None:
    queries = ragged(QUERIES.vectors[:5], [0, 5, 0])
    top = index.searcher().search(queries, 4, params=params)
    assert (top.rows[[0, 2]] == -1).all() and (top.rows[1] >= 0).all()


@every_method
def test_a_query_of_zeros_is_answered(index: TokenIndex, params: MultiParams) -> None:
    top = index.searcher().search(ragged(np.zeros((3, DIMS)), [3]), 4, params=params)
    assert (top.rows >= 0).all()
    np.testing.assert_allclose(top.scores, 0, atol=1e-6)


@every_method
def test_nothing_to_search(index: TokenIndex, tmp_path: Path, params: MultiParams) -> None:
    for searcher in (searcher_of([], [], []), searcher_of([], [], index.pages)):
        assert (searcher.search(QUERIES, 3, params=params).rows == -1).all()
    blank = build(ragged(np.zeros((0, DIMS)), [0, 0]), index.pages, tmp_path)
    assert (searcher_of([blank], [None], index.pages).search(QUERIES, 3, params=params).rows == -1).all()


def test_scores_and_tokens_of_chosen_rows(index: TokenIndex, in_parts: TokenIndex) -> None:
    scores, decoded = slow_maxsim(QUERIES, index.decode()), index.decode()
    rows = np.random.default_rng(6).integers(-1, ROWS, (len(QUERY_LENGTHS), 30))
    rows[:, :3] = [13, -1, ROWS - 2]
    expected = np.where(rows >= 0, np.take_along_axis(scores, np.maximum(rows, 0), axis=1), -np.inf)
    for searcher in (index.searcher(), in_parts.searcher()):
        np.testing.assert_allclose(searcher.score(QUERIES, rows), expected, atol=1e-4)
        for row in (0, 1, 12, 13, 14, 15, 16, 399, 400, ROWS - 1):
            assert searcher.decode(row).tolist() == decoded[row].tolist()
            assert len(searcher.codes(row)) == len(decoded[row])
        assert searcher.dim == DIMS


@every_method
def test_the_same_search_gives_the_same_bytes(in_parts: TokenIndex, params: MultiParams) -> None:
    searcher = in_parts.searcher()
    before = searcher.search(QUERIES, 10, params=params)
    assert same(searcher.search(QUERIES, 10, params=params), before)
    # other searches in between leave no trace
    for other in (*METHODS.values(), EVERYTHING):
        searcher.search(QUERIES.take(np.arange(3)), 50, params=other)
    searcher.search(QUERIES, 3, np.random.default_rng(9).random(ROWS) < 0.5)
    searcher.search(QUERIES, 300, exact=True)
    assert same(searcher.search(QUERIES, 10, params=params), before)
    assert same(in_parts.searcher().search(QUERIES, 10, params=params), before)


@every_method
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_queries_that_are_no_numbers_are_refused(index: TokenIndex, params: MultiParams, bad: float) -> None:
    queries = QUERIES.take(np.array([1]))
    queries.vectors[3, 2] = bad
    assert "NaN or infinite" in one_line(lambda: index.searcher().search(queries, 5, params=params))


def test_other_dimensions_are_refused(index: TokenIndex) -> None:
    message = one_line(lambda: index.searcher().search(ragged(np.ones((2, 64)), [2]), 5))
    assert message == "query tokens have 64 dimensions; expected 32, as the documents"


def test_a_query_that_is_too_long_is_refused(index: TokenIndex) -> None:
    long = texts(1, [MOST_QUERY_TOKENS + 1])
    for params in METHODS.values():
        message = one_line(lambda params=params: index.searcher().search(long, 5, params=params))  # type: ignore[misc]
        assert message == f"the query has {MOST_QUERY_TOKENS + 1} tokens; expected at most {MOST_QUERY_TOKENS}"
    longest = texts(1, [MOST_QUERY_TOKENS])
    scores = slow_maxsim(longest, index.decode())
    for params in (METHODS["exact"], METHODS["plaid"], METHODS["xtr and MaxSim"]):
        require_own_scores(index.searcher().search(longest, 5, params=params), scores, atol=1e-2)


def test_no_rows_cannot_be_asked_for(index: TokenIndex) -> None:
    assert "k is 0" in one_line(lambda: index.searcher().search(QUERIES, 0))


def test_plaid_finds_nearly_all_of_vectors_of_other_lengths(tmp_path: Path) -> None:
    docs, queries = stretched(DOCS), stretched(QUERIES)
    pages = share(docs, [], tmp_path / "page")
    assert not pages[0].normalised
    far = TokenIndex([build(docs, pages, tmp_path / "part")], pages)
    scores = slow_maxsim(queries, far.decode())
    truth = far.searcher().search(queries, 10, exact=True)
    require_best(truth, scores, atol=1e-3)
    top = far.searcher().search(queries, 10)
    require_own_scores(top, scores, atol=1e-3)
    # Lengths that have nothing to do with the direction are the hardest case: a long token of a far centroid may be the best.
    assert recall(top, truth) >= 0.8
    assert recall(far.searcher().search(queries, 10, params=MultiParams(margin=0.5)), truth) >= 0.97
