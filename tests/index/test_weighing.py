"""Own words, repeats, lengths and rarity against arithmetic by hand."""

from pathlib import Path

import numpy as np
import pytest

from trilens.encode.encoder import Encoded
from trilens.encode.folder import Weighing
from trilens.index.sparse import Field, SparseConfig, SparseLens, SparseSearcher
from trilens.index.sparse_params import SparseParams
from trilens.index.weighing import PLAIN, bag_scales, rarity, weigh_docs, weigh_queries

from .test_sparse import NoEncoder, as_bag, sparse

# Three documents over five terms, with the terms that they hold themselves.
DOCS = sparse([{0: 3.0, 1: 4.0}, {1: 2.0, 2: 1.0, 4: 2.0}, {}], dim=5)
OWN = sparse([{0: 1.0, 3: 3.0}, {4: 1.0}, {2: 2.0}], dim=5)
QUERY = sparse([{0: 1.0, 1: 2.0, 4: 5.0}], dim=5)
ASKED = sparse([{1: 1.0}], dim=5)


def test_a_part_of_the_bag_is_added_at_length_1() -> None:
    weighed = weigh_docs(Encoded(sparse=DOCS, bag=OWN), "sparse", Weighing(repeats=1.0, sparse_length=1.0, bag_added=0.5))
    assert weighed.weights == pytest.approx([3 / 5 + 0.5, 4 / 5, 0.75, 2 / 3, 1 / 3, 2 / 3 + 0.5, 2 / 3])
    assert (weighed.terms.tolist(), weighed.indptr.tolist()) == ([0, 1, 3, 1, 2, 4, 2], [0, 3, 6, 7])


def test_repeated_tokens_of_a_bag_count_more_but_never_twice() -> None:
    docs = Encoded(bag=sparse([{0: 1.0, 1: 2.0, 2: 9.0}, {}], dim=5))
    assert weigh_docs(docs, "bag", Weighing(repeats=1.0)).weights == pytest.approx([1, 4 / 3, 1.8])
    assert weigh_docs(docs, "bag", PLAIN).weights.tolist() == [1, 1, 1]


def test_bags_with_repeats_are_stored_with_weights(tmp_path: Path) -> None:
    weighing = Weighing(repeats=1.0, bag_length=1.0)
    lens = SparseLens("tokens", "bag", NoEncoder(), SparseConfig(weights="float32"), weighing)
    for name in ("a", "b", "joined"):
        (tmp_path / name).mkdir()
    lens.build(Encoded(bag=OWN), tmp_path / "a")
    lens.build(Encoded(bag=sparse([{0: 3.0, 1: 1.0}], dim=5)), tmp_path / "b")
    lens.merge(
        [lens.open(tmp_path / name) for name in "ab"], [np.array([True, False, True]), np.array([True])], tmp_path / "joined"
    )
    searcher = lens.searcher([lens.open(tmp_path / "joined")], [None])
    length = np.hypot(1, 1.5)
    assert searcher.row(0)[1] == pytest.approx([1 / length, 1.5 / length])
    found = searcher.search(Encoded(sparse=sparse([{0: 2.0}], dim=5)), 3)
    assert found.rows[0].tolist()[:2] == [2, 0]
    assert found.scores[0][:2] == pytest.approx([3 / length, 2 / length])


def test_a_length_may_count_in_part() -> None:
    weighed = weigh_docs(Encoded(lexical=DOCS), "lexical", Weighing(repeats=9.0, bag_added=9.0, lexical_length=0.5))
    assert weighed.weights == pytest.approx([3 / 5**0.5, 4 / 5**0.5, 2 / 3**0.5, 1 / 3**0.5, 2 / 3**0.5])


def test_queries_keep_their_length() -> None:
    assert weigh_queries(QUERY, ASKED, Weighing(own_query=4.0, sparse_length=1.0)).weights.tolist() == [1, 8, 5]


def test_as_it_stands_nothing_is_changed() -> None:
    assert weigh_docs(Encoded(sparse=DOCS, bag=OWN), "sparse", PLAIN) is DOCS
    assert weigh_queries(QUERY, ASKED, PLAIN) is QUERY
    assert bag_scales(np.array([0, 1, 16]), PLAIN).tolist() == [1, 1, 1]


def test_bags_of_many_terms_count_less() -> None:
    assert bag_scales(np.array([0, 1, 16, 81]), Weighing(bag_length=0.5)) == pytest.approx([1, 1, 1 / 2, 1 / 3])


def test_rarity_is_that_of_bm25() -> None:
    assert rarity(np.array([0, 1, 3]), 3) == pytest.approx(np.log1p([3.5 / 0.5, 2.5 / 1.5, 0.5 / 3.5]))


@pytest.mark.parametrize("field", ["sparse", "lexical", "bag"])
def test_rarity_counts_live_rows_of_all_segments(tmp_path: Path, field: Field) -> None:
    lens = SparseLens(field, field, NoEncoder(), SparseConfig(), Weighing(rarity=True))
    parts = []
    for name, rows in (("a", DOCS), ("b", sparse([{1: 1.0}, {1: 3.0, 2: 2.0}], dim=5))):
        (tmp_path / name).mkdir()
        lens.build(Encoded(sparse=rows, lexical=rows, bag=as_bag(rows)), tmp_path / name)
        parts.append(lens.open(tmp_path / name))
    every = lens.searcher(parts, [None, None])
    assert every.rarity == pytest.approx(rarity(np.array([1, 4, 2, 0, 1]), 5))
    some = lens.searcher(parts, [np.array([False, True, True]), np.array([True, False])])
    assert some.rarity == pytest.approx(rarity(np.array([0, 2, 1, 0, 1]), 3))


def test_a_search_may_leave_rarity_out(tmp_path: Path) -> None:
    lens = SparseLens("sparse", "sparse", NoEncoder(), SparseConfig(weights="float32"), Weighing(rarity=True, own_query=4.0))
    lens.build(Encoded(sparse=DOCS, bag=OWN), tmp_path)
    searcher: SparseSearcher = lens.searcher([lens.open(tmp_path)], [None])
    queries = Encoded(sparse=QUERY, bag=ASKED)
    known = rarity(np.array([1, 2, 1, 0, 1]), 3)
    weighed = searcher.search(queries, 2)
    assert weighed.scores[0] == pytest.approx(
        sorted([3 * known[0] + 32 * known[1], 16 * known[1] + 10 * known[4]], reverse=True)
    )
    plain = searcher.search(queries, 2, params=SparseParams(rarity=False))
    assert (plain.rows[0].tolist(), plain.scores[0].tolist()) == ([0, 1], [35, 26])
    assert searcher.score(queries, np.array([[1, 0]]), SparseParams(rarity=False)).tolist() == [[26, 35]]


def test_a_collection_without_rows_has_no_rare_terms() -> None:
    assert len(SparseSearcher("sparse", [], [], Weighing(rarity=True)).rarity) == 0


@pytest.mark.parametrize(("repeats", "weight"), [(0.0, 1), (1.0, 1.5)])
def test_repeated_tokens_of_a_query_count_as_those_of_documents(repeats: float, weight: float) -> None:
    searcher = SparseSearcher("bag", [], [], Weighing(repeats=repeats))
    asked = searcher.query(Encoded(bag=sparse([{0: 3.0, 1: 1.0}], dim=5)), SparseParams(query="bag"))
    assert asked.weights.tolist() == [weight, 1]
