from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trilens.errors import CollectionDamaged
from trilens.represent.arrays import save_arrays
from trilens.represent.stored import StoredArrays


def stored(folder: Path, array: Any) -> StoredArrays:
    save_arrays(folder, array=np.asarray(array))
    return StoredArrays(folder)


def test_sound_arrays_are_returned(tmp_path: Path) -> None:
    assert stored(tmp_path, np.zeros((2, 3), np.uint8)).open("array", (np.int8, np.uint8), (None, 3)).shape == (2, 3)
    assert stored(tmp_path, np.int64(7)).number("array", np.int64, 0, 7) == 7
    assert stored(tmp_path, [0, 2, 2, 5]).pointers("array", 5, 3).tolist() == [0, 2, 2, 5]
    assert stored(tmp_path, np.array([3, 0, 3], np.int32)).integers("array", 0, 3).tolist() == [3, 0, 3]
    assert stored(tmp_path, np.array([0, 4], np.int32)).ids("array", 5).tolist() == [0, 4]
    assert stored(tmp_path, np.ones(2, np.float32)).floats("array", (2,)).tolist() == [1, 1]
    assert stored(tmp_path, np.zeros(0, np.int32)).ids("array", 0).tolist() == []


@pytest.mark.parametrize(
    ("array", "opened", "says"),
    [
        (np.zeros(3, np.uint8), lambda arrays: arrays.open("array", np.uint8, (4,)), r"shape \(3,\); expected \(4,\)"),
        (np.zeros(3, np.uint8), lambda arrays: arrays.open("array", np.uint8, (None, None)), r"expected \(any, any\)"),
        (np.zeros(3, np.uint8), lambda arrays: arrays.open("array", np.int8, (3,)), "has uint8; expected int8"),
        (np.int64(-1), lambda arrays: arrays.number("array", np.int64, 0, 7), "has -1; expected 0 to 7"),
        (np.float64("nan"), lambda arrays: arrays.number("array", np.float64, 0, 7), "has nan"),
        ([0, 3, 2, 5], lambda arrays: arrays.pointers("array", 5), "expected ascending ones from 0 to 5"),
        ([1, 5], lambda arrays: arrays.pointers("array", 5), "from 0 to 5"),
        ([0, 6], lambda arrays: arrays.pointers("array", 5), "from 0 to 5"),
        (np.zeros(0, np.int64), lambda arrays: arrays.pointers("array", 0), "from 0 to 0"),
        ([0, 5], lambda arrays: arrays.pointers("array", 5, 2), r"shape \(2,\); expected \(3,\)"),
        (np.array([0, -1], np.int32), lambda arrays: arrays.integers("array", 0, 3), "expected 0 to 3"),
        (np.array([0, 4], np.int32), lambda arrays: arrays.integers("array", 0, 3), "expected 0 to 3"),
        (np.array([1, 1], np.int32), lambda arrays: arrays.ids("array", 3), "repeated or unordered"),
        (np.array([1, np.inf], np.float32), lambda arrays: arrays.floats("array", (None,)), "NaN or infinite"),
    ],
)
def test_others_are_refused_by_name(tmp_path: Path, array: Any, opened: Callable[[StoredArrays], Any], says: str) -> None:
    with pytest.raises(CollectionDamaged, match=says) as caught:
        opened(stored(tmp_path, array))
    assert str(tmp_path / "array.npy") in str(caught.value)
    assert "\n" not in str(caught.value)
