"""The steps of a search, each against numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trilens.index.sparse_parts import WeightedPart, Weights
from trilens.kernels.sparse import sparse_dot_all
from trilens.kernels.sparse_bounds import ROOM, add_bounds, heaviest
from trilens.kernels.sparse_search import GROUP, highest_sums, keep_highest, nth_highest, take_rows
from trilens.represent import Sparse


def test_the_heaviest_terms() -> None:
    weights = np.array([2, 3, 1, 3, 2, 2], np.float32)
    assert np.flatnonzero(heaviest(weights, 3)).tolist() == [0, 1, 3]
    assert np.flatnonzero(heaviest(weights, 4)).tolist() == [0, 1, 3, 4]
    assert heaviest(weights, 0).all() and heaviest(weights, 9).all()


@settings(deadline=None)
@given(st.lists(st.integers(0, ROOM), min_size=1, max_size=300), st.integers(1, 320))
def test_the_nth_highest(values: list[int], n: int) -> None:
    expected = sorted(values, reverse=True)[n - 1] if n <= len(values) else 0
    assert nth_highest(np.array(values, np.uint16), n) == expected


@pytest.mark.parametrize("high", [5, ROOM + 1])
def test_rows_are_taken_by_their_sums(high: int) -> None:
    sums = np.random.default_rng(1).integers(0, 9, 4 * GROUP).astype(np.uint16)
    best = highest_sums(sums)
    assert best.tolist() == sums.reshape(GROUP, -1).max(axis=0).tolist()
    rows = np.empty(len(sums) + 1, np.int32)
    size = take_rows(sums, best, 3, high, rows)
    assert sorted(rows[:size].tolist()) == np.flatnonzero((sums >= 3) & (sums < high)).tolist()


def test_the_highest_are_kept() -> None:
    sums = np.array([5, 9, 7, 7, 1, 7], np.uint16)
    rows = np.array([5, 4, 3, 2, 1, 0], np.int32)
    assert rows[: keep_highest(rows, 6, 3, sums)].tolist() == [5, 3, 1]  # of the three sevens the first two
    assert keep_highest(rows, 2, 3, sums) == 2


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_no_bound_is_below_its_score(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Whatever the weights, sums stay within 16 bits and are at least what the rows score."""
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    rows, dim, density = data.draw(st.sampled_from([(100, 40, 0.9), (300, 60, 0.5), (2500, 30, 0.1), (5000, 30, 0.02)]))
    kinds: list[Weights] = ["uint8", "float32"]
    kind = data.draw(st.sampled_from(kinds))
    spread = data.draw(st.sampled_from([0.0, 0.5, 5.0]))  # all equal, alike, over many orders of magnitude
    mask = random.random((rows, dim)) < density
    weights = np.exp(spread * random.standard_normal(mask.sum())).astype(np.float32)
    indptr = np.concatenate([[0], np.cumsum(mask.sum(axis=1))])
    folder = tmp_path_factory.mktemp("bounds")
    WeightedPart.build(Sparse(indptr, np.nonzero(mask)[1].astype(np.int32), weights, dim), kind, folder)
    part = WeightedPart.open(folder)
    asked = random.choice(dim, data.draw(st.integers(1, dim)), replace=False)
    query = np.zeros(dim, np.float32)
    query[asked] = np.exp(spread * random.standard_normal(len(asked)))
    lists = np.flatnonzero(query[part.list_terms])
    columns = np.flatnonzero(query[part.column_terms])
    if not len(lists) + len(columns):
        return
    list_gains = query[part.list_terms[lists]].astype(np.float64) * part.arrays.list_most[lists]
    gains = query[part.column_terms[columns]].astype(np.float64) * part.arrays.column_most[columns]
    sums = np.empty(-(-rows // 64) * 64, np.uint16)
    unit = add_bounds(lists, list_gains, columns, gains, part.arrays, sums)
    decoded = np.concatenate([part.row(row)[1] for row in range(rows)])
    scores = sparse_dot_all(query, part.arrays.indptr, part.arrays.terms.astype(np.int32), decoded)
    assert (sums[:rows] >= scores * unit * (1 - 1e-6)).all()
    # A sum that wrapped around would be far below its score; none is far above it either, where weights are alike.
    if spread == 0:
        assert (sums[:rows] <= scores * unit * 1.1 + 4 * len(asked) + 1).all()
