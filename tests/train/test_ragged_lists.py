import numpy as np

from trilens.train.ragged_lists import RaggedLists


def test_lists_of_different_lengths() -> None:
    lists = RaggedLists.of([[1, 2], [], [3]])
    assert [lists[index].tolist() for index in range(len(lists))] == [[1, 2], [], [3]]
    assert lists.lengths.tolist() == [2, 0, 1]
    assert lists.values.dtype == np.int32
    taken = lists.take(np.array([2, 0, 2]))
    assert [taken[index].tolist() for index in range(3)] == [[3], [1, 2], [3]]
    assert len(RaggedLists.of([])) == 0


def test_float_lists() -> None:
    lists = RaggedLists.of([[0.5], [-1]], "f")
    assert lists.values.dtype == np.float32
    assert lists.values.tolist() == [0.5, -1]
