import numpy as np

from trilens.train.lists import Lists


def test_lists_of_different_lengths() -> None:
    lists = Lists.of([[1, 2], [], [3]])
    assert [lists[at].tolist() for at in range(len(lists))] == [[1, 2], [], [3]]
    assert lists.lengths.tolist() == [2, 0, 1]
    assert lists.values.dtype == np.int32
    taken = lists.take(np.array([2, 0, 2]))
    assert [taken[at].tolist() for at in range(3)] == [[3], [1, 2], [3]]
    assert len(Lists.of([])) == 0


def test_scores_are_kept_as_such() -> None:
    lists = Lists.of([[0.5], [-1]], "f")
    assert lists.values.dtype == np.float32
    assert lists.values.tolist() == [0.5, -1]
