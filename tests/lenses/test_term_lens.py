"""The term lenses against an exact search over the rows that they store, and against arithmetic by hand."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trilens.errors import BadInput
from trilens.lenses.lens import Searcher
from trilens.lenses.sparse import SparseParams
from trilens.lenses.term_lens import EncodedField
from trilens.lenses.term_settings import SparseConfig
from trilens.represent import Sparse
from trilens.search.options import params_of, parse_params

from .term_rows import DIM, as_bag, assert_same, best, build, drawn, encoded, lens_of, skewed, sparse, stored

EXACT = SparseParams(method="exact")
FIELDS: list[tuple[EncodedField, SparseConfig]] = [
    ("sparse", SparseConfig()),
    ("sparse", SparseConfig(weights="float32")),
    ("lexical", SparseConfig()),
    ("bag", SparseConfig()),
]


@pytest.mark.parametrize(("field", "config"), FIELDS)
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("rows", [1, 70, 2000])
def test_exact_search_is_the_oracle(tmp_path: Path, field: EncodedField, config: SparseConfig, ties: bool, rows: int) -> None:
    random = np.random.default_rng(rows)
    docs, queries = drawn(random, rows, 30, ties=ties), drawn(random, 40, 20, ties=ties)
    lens = lens_of(field, config)
    searcher = lens.searcher([build(lens, docs, tmp_path / "p")], [None])
    kept = stored(searcher, rows)
    np.testing.assert_array_equal(kept.terms, docs.terms)
    np.testing.assert_allclose(kept.weights, np.ones(len(docs.terms)) if field == "bag" else docs.weights, atol=0.05)
    for k in (1, 10, rows + 5):
        assert_same(searcher.search(encoded(queries), k, exact=True), best(queries, kept, k))
        for share in (0.5, 0.02):
            allowed = random.random(rows) < share
            assert_same(searcher.search(encoded(queries), k, allowed, params=EXACT), best(queries, kept, k, allowed))


def test_weights_of_eight_bits_are_near(tmp_path: Path) -> None:
    docs = drawn(np.random.default_rng(0), 200, 30)
    searcher = lens_of("sparse").searcher([build(lens_of("sparse"), docs, tmp_path / "p")], [None])
    kept = stored(searcher, 200)
    most = np.maximum.reduceat(docs.weights, docs.indptr[:-1][np.diff(docs.indptr) > 0])
    lengths = np.diff(docs.indptr)[np.diff(docs.indptr) > 0]
    assert (np.abs(kept.weights - docs.weights) <= np.repeat(most, lengths) / 255 * 1.001).all()
    assert (kept.weights > 0).all()


def test_scores_by_hand(tmp_path: Path) -> None:
    docs = sparse([{1: 2.0, 3: 1.0}, {3: 4.0}, {}, {2: 1.0}])
    queries = sparse([{1: 1.0, 3: 0.5}, {9: 1.0}, {}])
    scores_of: dict[EncodedField, dict[int, float]] = {"sparse": {0: 2.5, 1: 2.0}, "bag": {0: 1.5, 1: 0.5}}
    for field, expected in scores_of.items():
        lens = lens_of(field)
        searcher = lens.searcher([build(lens, docs, tmp_path / field)], [None])
        top = searcher.search(encoded(queries), 3)
        assert top.rows.tolist() == [[0, 1, -1], [-1] * 3, [-1] * 3]
        assert top.scores[0, :2].tolist() == pytest.approx(list(expected.values()), rel=1e-2)
        scores = searcher.score(encoded(queries), np.array([[3, 1, -1], [0, 1, 2], [0, -1, -1]]))
        assert scores[0].tolist() == pytest.approx([0, expected[1], -np.inf], rel=1e-2)
        assert scores[1].tolist() == [0, 0, 0]
        assert isinstance(searcher, Searcher)


def test_a_query_as_weights_and_as_a_bag(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    docs, queries = drawn(random, 300, 20), drawn(random, 20, 10)
    for field in ("sparse", "bag"):
        lens = lens_of(field)
        searcher = lens.searcher([build(lens, docs, tmp_path / field)], [None])
        kept = stored(searcher, 300)
        assert_same(searcher.search(encoded(queries), 9, params=SparseParams(query="bag")), best(as_bag(queries), kept, 9))
        assert_same(searcher.search(encoded(queries), 9), best(queries, kept, 9))


@pytest.mark.parametrize(("field", "config"), FIELDS)
def test_parts_and_merges_answer_as_one_build(tmp_path: Path, field: EncodedField, config: SparseConfig) -> None:
    random = np.random.default_rng(7)
    docs, queries = drawn(random, 900, 30), drawn(random, 30, 20)
    lens = lens_of(field, config)
    cuts = [0, 200, 201, 900]
    spans = [np.arange(first, last) for first, last in pairwise(cuts)]
    parts = [build(lens, docs.take(span), tmp_path / str(number)) for number, span in enumerate(spans)]
    live = random.random(900) < 0.7
    masks = [live[span] for span in spans]
    kept = np.flatnonzero(live)
    lens.merge(parts, masks, tmp_path / "merged")
    build(lens, docs.take(kept), tmp_path / "fresh")
    for file in sorted(path.name for path in (tmp_path / "fresh").iterdir()):
        assert (tmp_path / "merged" / file).read_bytes() == (tmp_path / "fresh" / file).read_bytes(), file
    fresh = lens.searcher([lens.open(tmp_path / "fresh")], [None])
    together = lens.searcher(parts, masks)
    for params in (EXACT, None):
        expected = fresh.search(encoded(queries), 10, params=params)
        found = together.search(encoded(queries), 10, params=params)
        assert (
            np.where(found.rows >= 0, found.rows, 0).tolist() == np.where(expected.rows >= 0, kept[expected.rows], 0).tolist()
        )
        assert found.scores.tolist() == expected.scores.tolist()


@pytest.mark.parametrize(("field", "config"), FIELDS)
def test_nothing_at_all(tmp_path: Path, field: EncodedField, config: SparseConfig) -> None:
    lens = lens_of(field, config)
    queries = encoded(drawn(np.random.default_rng(1), 3, 5))
    assert (lens.searcher([], []).search(queries, 4).rows == -1).all()
    empty = build(lens, sparse([{}, {}, {}]), tmp_path / "empty")
    assert (lens.searcher([empty], [None]).search(queries, 4).rows == -1).all()
    lens.merge([empty], [np.zeros(3, np.bool_)], tmp_path / "none")
    assert len(lens.open(tmp_path / "none")) == 0
    dead = build(lens, drawn(np.random.default_rng(2), 30, 10), tmp_path / "dead")
    assert (lens.searcher([dead], [np.zeros(30, np.bool_)]).search(queries, 4).rows == -1).all()


def test_approximate_search_finds_nearly_all_and_scores_exactly(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    docs, queries = skewed(random, 4000, 2000, 80), skewed(random, 40, 2000, 80)
    lens = lens_of("sparse")
    searcher = lens.searcher([build(lens, docs, tmp_path / "p")], [None])
    exact = searcher.search(encoded(queries), 10, exact=True)
    recall = {}
    for terms, candidates in ((4, 20), (40, 200), (1000, 4000)):
        found = searcher.search(encoded(queries), 10, params=SparseParams(terms=terms, candidates=candidates))
        assert found.scores.tolist() == searcher.score(encoded(queries), found.rows).tolist()
        shared = [len(set(mine) & set(theirs)) for mine, theirs in zip(found.rows.tolist(), exact.rows.tolist(), strict=True)]
        recall[terms] = np.mean(shared) / 10
    assert recall[4] < recall[40] <= recall[1000] == 1
    assert recall[40] > 0.8


def test_a_filter_never_costs_results(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    docs, queries = skewed(random, 3000, 1000, 60), skewed(random, 10, 1000, 60)
    lens = lens_of("sparse")
    searcher = lens.searcher([build(lens, docs, tmp_path / "p")], [None])
    for share in (0.9, 0.1, 0.004):
        allowed = random.random(3000) < share
        found = searcher.search(encoded(queries), 10, allowed, params=SparseParams(terms=5, candidates=12))
        complete = best(queries, stored(searcher, 3000, 1000), 10, allowed)
        assert ((found.rows >= 0).sum(axis=1) == (complete.rows >= 0).sum(axis=1)).all()
        assert all(allowed[row] for row in found.rows.ravel() if row >= 0)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_rows_and_queries(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    weights = st.floats(0, 100, width=32, allow_subnormal=False)
    rows = st.lists(st.dictionaries(st.integers(0, 19), weights, max_size=8), max_size=90)
    docs, queries = sparse(data.draw(rows), 20), sparse(data.draw(rows)[:5], 20)
    field, config = data.draw(st.sampled_from(FIELDS))
    lens = lens_of(field, config)
    searcher = lens.searcher([build(lens, docs, tmp_path_factory.mktemp("any") / "p")], [None])
    if not len(docs):
        return
    k = data.draw(st.integers(1, 12))
    expected = best(queries, stored(searcher, len(docs), 20), k)
    assert_same(searcher.search(encoded(queries), k, exact=True), expected)


def test_a_vocabulary_of_a_quarter_million(tmp_path: Path) -> None:
    random = np.random.default_rng(8)
    rows = [{int(term): 1.0 + term % 3 for term in random.choice(250_002, 20, replace=False)} for _ in range(200)]
    docs = sparse(rows, 250_002)
    for field in ("lexical", "bag"):
        lens = lens_of(field)
        searcher = lens.searcher([build(lens, docs, tmp_path / field)], [None])
        top = searcher.search(encoded(docs), 1)
        assert top.rows[:, 0].tolist() == list(range(200))


def test_figures_tell_of_rows_without_terms(tmp_path: Path) -> None:
    lens = lens_of("sparse")
    part = build(lens, sparse([{1: 1.0, 2: 1.0}, {1: 2.0}, {}]), tmp_path / "p")
    figures = lens.figures([part])
    assert (figures["rows"], figures["postings"], figures["terms used"], figures["rows without any term"]) == (3, 3, 2, 1)
    assert "advice" not in figures
    collapsed = lens.figures([build(lens, sparse([{1: 1.0}, {}, {}]), tmp_path / "q")])
    assert "collapsed" in collapsed["advice"]
    assert lens.figures([]) == {"rows": 0}


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        (
            Sparse(np.array([0, 1]), np.array([3], np.int32), np.array([-1], np.float32), DIM),
            "document 0 .* weight -1.0 for term 3",
        ),
        (Sparse(np.array([0, 1]), np.array([3], np.int32), np.array([np.nan], np.float32), DIM), "weight nan"),
        (Sparse(np.array([0, 1]), np.array([3], np.int32), np.array([np.inf], np.float32), DIM), "weight inf"),
        (Sparse(np.array([0, 0, 1]), np.array([DIM], np.int32), np.array([1], np.float32), DIM), "document 1 .* term 300"),
        (Sparse(np.array([0, 1]), np.array([-1], np.int32), np.array([1], np.float32), DIM), "term -1"),
        (Sparse(np.array([0, 2]), np.array([3, 3], np.int32), np.ones(2, np.float32), DIM), "ascending unique terms"),
    ],
)
def test_rows_that_no_score_can_be_made_of(tmp_path: Path, rows: Sparse, complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        lens_of("sparse").build(encoded(rows), tmp_path / "bad")
    searcher = lens_of("sparse").searcher([build(lens_of("sparse"), sparse([{1: 1.0}]), tmp_path / "p")], [None])
    with pytest.raises(BadInput, match=complaint.replace("document", "query")):
        searcher.search(encoded(rows), 3)


def test_a_query_over_another_vocabulary(tmp_path: Path) -> None:
    searcher = lens_of("sparse").searcher([build(lens_of("sparse"), sparse([{1: 1.0}]), tmp_path / "p")], [None])
    with pytest.raises(BadInput, match="over 20 dimensions; expected 300"):
        searcher.search(encoded(sparse([{1: 1.0}], 20)), 3)
    with pytest.raises(BadInput, match="row is 1; expected 0 to 0"):
        searcher.row(1)


def test_rows_of_several_windows(tmp_path: Path) -> None:
    random = np.random.default_rng(11)
    rows, dim = 70_000, 50
    held_terms = random.random((rows, dim)) < np.geomspace(0.4, 0.001, dim)
    weights = random.choice([0.5, 1.0, 1.5, 2.5], int(held_terms.sum())).astype(np.float32)
    indptr = np.concatenate([[0], np.cumsum(held_terms.sum(axis=1))])
    docs = Sparse(indptr, np.nonzero(held_terms)[1].astype(np.int32), weights, dim)
    queries = drawn(random, 12, 15, dim)
    for field in ("sparse", "bag"):
        lens = lens_of(field, SparseConfig(weights="float32"))
        searcher = lens.searcher([build(lens, docs, tmp_path / field)], [None])
        kept = as_bag(docs) if field == "bag" else docs
        allowed = random.random(rows) < 0.5
        assert_same(searcher.search(encoded(queries), 20, exact=True), best(queries, kept, 20))
        assert_same(searcher.search(encoded(queries), 20, allowed, exact=True), best(queries, kept, 20, allowed))
        assert searcher.row(69_999)[0].tolist() == docs.terms[docs.indptr[-2] :].tolist()


def test_a_query_of_very_many_terms(tmp_path: Path) -> None:
    random = np.random.default_rng(12)
    dim = 30_000
    full = sparse([{term: float(weight) for term, weight in enumerate(random.gamma(2, 1, dim))}], dim)
    few = drawn(random, 300, 40, dim)  # most terms of the query are in no row
    many = sparse([{int(term): 1.0 for term in random.choice(dim, 500, replace=False)} for _ in range(300)], dim)
    for name, docs in (("few", few), ("many", many)):
        lens = lens_of("sparse")
        searcher = lens.searcher([build(lens, docs, tmp_path / name)], [None])
        assert_same(searcher.search(encoded(full), 10, exact=True), best(full, stored(searcher, 300, dim), 10))
        few_terms = searcher.search(encoded(full), 10, params=SparseParams(terms=50, candidates=20))
        assert (few_terms.rows >= 0).all()


def test_weights_of_all_sizes(tmp_path: Path) -> None:
    random = np.random.default_rng(13)
    rows = [{int(t): float(10.0 ** random.uniform(-30, 15)) for t in random.choice(40, 12, replace=False)} for _ in range(400)]
    docs, queries = sparse(rows, 40), sparse([{t: float(10.0 ** random.uniform(-12, 12)) for t in range(40)}] * 3, 40)
    for kind in ("uint8", "float32"):
        lens = lens_of("sparse", SparseConfig(weights="uint8" if kind == "uint8" else "float32"))
        searcher = lens.searcher([build(lens, docs, tmp_path / kind)], [None])
        assert_same(searcher.search(encoded(queries), 7, exact=True), best(queries, stored(searcher, 400, 40), 7))


def test_equal_rows_of_several_parts_come_in_order(tmp_path: Path) -> None:
    lens = lens_of("sparse")
    parts = [build(lens, sparse([{1: 1.0, 2: 3.0}] * 100), tmp_path / str(number)) for number in range(3)]
    top = lens.searcher(parts, [None] * 3).search(encoded(sparse([{1: 2.0, 2: 1.0}])), 150)
    assert top.rows[0].tolist() == list(range(150))
    assert len(set(top.scores[0].tolist())) == 1


def test_terms_of_weight_zero_do_not_count(tmp_path: Path) -> None:
    lens = lens_of("sparse")
    searcher = lens.searcher([build(lens, sparse([{1: 0.0, 2: 1.0}, {1: 1.0}, {1: 0.0}]), tmp_path / "p")], [None])
    assert searcher.row(0)[0].tolist() == [2] and searcher.row(2)[0].tolist() == []
    top = searcher.search(encoded(sparse([{1: 1.0, 2: 0.0}, {1: 0.0}])), 3)
    assert top.rows.tolist() == [[1, -1, -1], [-1, -1, -1]]


def test_a_search_leaves_no_trace(tmp_path: Path) -> None:
    random = np.random.default_rng(14)
    docs, queries = skewed(random, 2000, 500, 40), skewed(random, 6, 500, 40)
    lens = lens_of("sparse")
    searcher = lens.searcher([build(lens, docs, tmp_path / "p")], [None])
    before = searcher.search(encoded(queries), 10)
    for params in (EXACT, SparseParams(terms=3, candidates=11), SparseParams(query="bag")):
        searcher.search(encoded(queries), 3, random.random(2000) < 0.1, params=params)
        searcher.score(encoded(queries), random.integers(-1, 2000, (6, 9)), params)
    assert_same(searcher.search(encoded(queries), 10), before)
    one_by_one = [searcher.search(encoded(queries.take(np.array([i]))), 10) for i in range(6)]
    assert np.concatenate([top.rows for top in one_by_one]).tolist() == before.rows.tolist()


def test_params_are_checked() -> None:
    assert params_of("sparse", parse_params('{"sparse": {"query": "bag", "terms": 9}}')["sparse"]) == SparseParams(
        query="bag", terms=9
    )
    with pytest.raises(BadInput):
        parse_params("{")
    bad: list[Any] = [[], {"probes": 1}, {"terms": 0}, {"candidates": 1.5}, {"query": "x"}, {"method": "x"}]
    for params in bad:
        with pytest.raises(BadInput):
            params_of("sparse", params)
