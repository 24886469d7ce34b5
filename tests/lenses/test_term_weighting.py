"""IDF and stored weights of the term lenses against arithmetic by hand."""

from pathlib import Path

import numpy as np
import pytest

from trilens.encode.encoder import Encoded
from trilens.encode.folder import TermWeighting
from trilens.lenses.bm25 import idf
from trilens.lenses.sparse import SparseParams
from trilens.lenses.term_lens import EncodedField
from trilens.lenses.term_settings import SparseConfig

from .term_rows import as_bag, lens_of, sparse

# Three documents over five terms, and the terms that they contain themselves.
DOCS = sparse([{0: 3.0, 1: 4.0}, {1: 2.0, 2: 1.0, 4: 2.0}, {}], dim=5)
OWN = sparse([{0: 1.0, 3: 3.0}, {4: 1.0}, {2: 2.0}], dim=5)
QUERY = sparse([{0: 1.0, 1: 2.0, 4: 5.0}], dim=5)
QUERY_BAG = sparse([{1: 1.0}], dim=5)


def test_bags_with_repeats_are_stored_with_weights(tmp_path: Path) -> None:
    weighting = TermWeighting(repeats=1.0, bag_length=1.0)
    lens = lens_of("bag", SparseConfig(weights="float32"), weighting)
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


@pytest.mark.parametrize("field", ["sparse", "lexical", "bag"])
def test_idf_counts_live_rows_of_all_segments(tmp_path: Path, field: EncodedField) -> None:
    lens = lens_of(field, SparseConfig(), TermWeighting(idf=True))
    parts = []
    for name, rows in (("a", DOCS), ("b", sparse([{1: 1.0}, {1: 3.0, 2: 2.0}], dim=5))):
        (tmp_path / name).mkdir()
        lens.build(Encoded(sparse=rows, lexical=rows, bag=as_bag(rows)), tmp_path / name)
        parts.append(lens.open(tmp_path / name))
    whole = lens.searcher(parts, [None, None])
    assert whole.idf == pytest.approx(idf(np.array([1, 4, 2, 0, 1]), 5))
    rest = lens.searcher(parts, [np.array([False, True, True]), np.array([True, False])])
    assert rest.idf == pytest.approx(idf(np.array([0, 2, 1, 0, 1]), 3))


def test_a_search_may_leave_idf_out(tmp_path: Path) -> None:
    lens = lens_of("sparse", SparseConfig(weights="float32"), TermWeighting(idf=True, own_query=4.0))
    lens.build(Encoded(sparse=DOCS, bag=OWN), tmp_path)
    searcher = lens.searcher([lens.open(tmp_path)], [None])
    queries = Encoded(sparse=QUERY, bag=QUERY_BAG)
    known = idf(np.array([1, 2, 1, 0, 1]), 3)
    weighted = searcher.search(queries, 2)
    assert weighted.scores[0] == pytest.approx(
        sorted([3 * known[0] + 32 * known[1], 16 * known[1] + 10 * known[4]], reverse=True)
    )
    plain = searcher.search(queries, 2, params=SparseParams(idf=False))
    assert (plain.rows[0].tolist(), plain.scores[0].tolist()) == ([0, 1], [35, 26])
    assert searcher.score(queries, np.array([[1, 0]]), SparseParams(idf=False)).tolist() == [[26, 35]]


def test_a_collection_without_rows_has_no_rare_terms() -> None:
    assert len(lens_of("sparse", weighting=TermWeighting(idf=True)).searcher([], []).idf) == 0


@pytest.mark.parametrize(("repeats", "weight"), [(0.0, 1), (1.0, 1.5)])
def test_repeated_tokens_of_a_query_count_as_those_of_documents(repeats: float, weight: float) -> None:
    searcher = lens_of("bag", weighting=TermWeighting(repeats=repeats)).searcher([], [])
    query = searcher.query(Encoded(bag=sparse([{0: 3.0, 1: 1.0}], dim=5)), SparseParams(query="bag"))
    assert query.weights.tolist() == [weight, 1]
