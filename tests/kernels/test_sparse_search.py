"""The steps of a search against numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trilens.kernels.sparse_bounds import ROOM
from trilens.kernels.sparse_search import GROUP, highest_sums, keep_highest, nth_highest, take_rows


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
    assert rows[: keep_highest(rows, 6, 3, sums)].tolist() == [5, 3, 1]  # the first two of the three sevens
    assert keep_highest(rows, 2, 3, sums) == 2
