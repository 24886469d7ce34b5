"""Own words, lengths and rarity against arithmetic by hand."""

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
OWN = sparse([{0: 1.0, 3: 1.0}, {4: 1.0}, {2: 1.0}], dim=5)
QUERY = sparse([{0: 1.0, 1: 2.0, 4: 5.0}], dim=5)
ASKED = sparse([{1: 1.0}], dim=5)


def test_own_words_are_raised_before_the_length_is_taken() -> None:
    weighed = weigh_docs(Encoded(sparse=DOCS, bag=OWN), "sparse", Weighing(own_doc=2.0, sparse_length=1.0))
    first, second = np.hypot(6, 4), np.sqrt(2.0**2 + 1 + 4**2)
    assert weighed.weights == pytest.approx([6 / first, 4 / first, 2 / second, 1 / second, 4 / second])
    assert (weighed.terms.tolist(), weighed.indptr.tolist()) == (DOCS.terms.tolist(), DOCS.indptr.tolist())


def test_a_length_may_count_in_part() -> None:
    weighed = weigh_docs(Encoded(lexical=DOCS), "lexical", Weighing(own_doc=9.0, lexical_length=0.5))
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
