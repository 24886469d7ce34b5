"""Upper bounds on the scores of rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trilens.index.sparse_parts import WeightedPart, Weights
from trilens.kernels.sparse import sparse_dot_all
from trilens.kernels.sparse_bounds import FIRST_COLUMN, NOWHERE, QueryLists, add_bounds, find_terms, heaviest
from trilens.represent import Sparse


def test_the_heaviest_terms() -> None:
    weights = np.array([2, 3, 1, 3, 2, 2], np.float32)
    assert np.flatnonzero(heaviest(weights, 3)).tolist() == [0, 1, 3]
    assert np.flatnonzero(heaviest(weights, 4)).tolist() == [0, 1, 3, 4]
    assert heaviest(weights, 0).all() and heaviest(weights, 9).all()


@pytest.mark.parametrize("count", [0, 2])
def test_terms_are_looked_up_among_lists_and_columns(count: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    # Term 0 is in all rows and has a column; terms 1 and 2 have lists; no row has term 3.
    rows = [{0: 2.0, **({1: 4.0} if row == 5 else {}), **({2: 8.0} if row == 6 else {})} for row in range(200)]
    items = [item for row in rows for item in row.items()]
    indptr = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    terms, weights = np.array([term for term, _ in items], np.int32), np.array([weight for _, weight in items], np.float32)
    folder = tmp_path_factory.mktemp("terms")
    WeightedPart.build(Sparse(indptr, terms, weights, 4), "float32", folder)
    part = WeightedPart.open(folder)
    assert (part.list_terms.tolist(), part.column_terms.tolist()) == ([1, 2], [0])
    places = np.array([FIRST_COLUMN, 0, 1, NOWHERE], np.int32)
    query_terms, query_weights = np.arange(4, dtype=np.int32), np.array([1, 0.5, 0.25, 3], np.float32)
    found = find_terms(query_terms, query_weights, heaviest(query_weights, count), places, part.arrays)
    assert found.columns.tolist() == [0] and found.column_gains.tolist() == [2.0]
    assert found.lists.tolist() == ([0, 1] if count == 0 else [])
    assert found.list_gains.tolist() == ([2.0, 2.0] if count == 0 else [])


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_no_bound_is_below_its_score(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Whatever the weights, sums fit into 16 bits and are not below the scores of the rows."""
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    rows, dim, density = data.draw(st.sampled_from([(100, 40, 0.9), (300, 60, 0.5), (2500, 30, 0.1), (5000, 30, 0.02)]))
    kinds: list[Weights] = ["uint8", "float32"]
    kind = data.draw(st.sampled_from(kinds))
    spread = data.draw(st.sampled_from([0.0, 0.5, 5.0]))  # all equal, similar, over many orders of magnitude
    mask = random.random((rows, dim)) < density
    weights = np.exp(spread * random.standard_normal(mask.sum())).astype(np.float32)
    indptr = np.concatenate([[0], np.cumsum(mask.sum(axis=1))])
    folder = tmp_path_factory.mktemp("bounds")
    WeightedPart.build(Sparse(indptr, np.nonzero(mask)[1].astype(np.int32), weights, dim), kind, folder)
    part = WeightedPart.open(folder)
    terms = random.choice(dim, data.draw(st.integers(1, dim)), replace=False)
    query = np.zeros(dim, np.float32)
    query[terms] = np.exp(spread * random.standard_normal(len(terms)))
    lists = np.flatnonzero(query[part.list_terms])
    columns = np.flatnonzero(query[part.column_terms])
    if not len(lists) + len(columns):
        return
    list_gains = query[part.list_terms[lists]].astype(np.float64) * part.arrays.list_most[lists]
    column_gains = query[part.column_terms[columns]].astype(np.float64) * part.arrays.column_most[columns]
    sums = np.empty(-(-rows // 64) * 64, np.uint16)
    unit = add_bounds(QueryLists(lists, list_gains, columns, column_gains), part.arrays, sums)
    decoded = part.take(np.arange(rows)).weights
    scores = sparse_dot_all(query, part.arrays.indptr, part.arrays.terms.astype(np.int32), decoded)
    assert (sums[:rows] >= scores * unit * (1 - 1e-6)).all()
    # A sum that overflowed would be far below its score. Equal weights are not overestimated by much either.
    if spread == 0:
        assert (sums[:rows] <= scores * unit * 1.1 + 4 * len(terms) + 1).all()
