from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trilens.errors import CollectionDamaged
from trilens.represent.arrays import create_array, open_array, save_arrays, scratch_array


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.int32).reshape(2, 3),
        np.empty((0, 4), np.float32),
        np.empty(0, np.bool_),
        np.array(7.5),
    ],
)
def test_a_saved_array_is_opened(tmp_path: Path, array: np.ndarray[Any, Any]) -> None:
    save_arrays(tmp_path / "new" / "folder", first=array, second=np.zeros(1))
    opened = open_array(tmp_path / "new" / "folder", "first")
    assert (opened.dtype, opened.shape, opened.tolist()) == (array.dtype, array.shape, array.tolist())


def test_an_opened_array_cannot_be_written(tmp_path: Path) -> None:
    save_arrays(tmp_path, array=np.zeros(3))
    with pytest.raises(ValueError, match="read-only"):
        open_array(tmp_path, "array")[0] = 1


@pytest.mark.parametrize("shape", [(3, 2), (0, 2)])
def test_an_array_can_be_filled_in_its_file(tmp_path: Path, shape: tuple[int, int]) -> None:
    array = create_array(tmp_path / "folder", "array", np.int16, shape)
    array[:] = np.arange(array.size).reshape(shape)
    del array
    assert open_array(tmp_path / "folder", "array").tolist() == np.arange(np.prod(shape)).reshape(shape).tolist()


@pytest.mark.parametrize("length", [0, 5])
def test_a_scratch_array_is_deleted_on_exit(tmp_path: Path, length: int) -> None:
    with scratch_array(tmp_path, "scratch", np.int64, length) as array:
        array[:] = 1
        assert len(array) == length
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CollectionDamaged, match=r"vectors\.npy is missing"):
        open_array(tmp_path, "vectors")


@pytest.mark.parametrize("kept_bytes", [0, 1, 5, 20, 100, 130, 927])
def test_a_truncated_file_is_named(tmp_path: Path, kept_bytes: int) -> None:
    save_arrays(tmp_path, array=np.arange(100))
    whole = (tmp_path / "array.npy").read_bytes()
    assert len(whole) == 928
    (tmp_path / "array.npy").write_bytes(whole[:kept_bytes])
    with pytest.raises(CollectionDamaged, match=r"array\.npy is truncated or not an array file"):
        open_array(tmp_path, "array")


@pytest.mark.parametrize("content", [b"some text that is not an array", b"\x00" * 200, b"\x93NUMPY\x01\x00\x04\x00abcd"])
def test_a_file_that_is_not_an_array_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "array.npy").write_bytes(content)
    with pytest.raises(CollectionDamaged, match=r"array\.npy is truncated or not an array file"):
        open_array(tmp_path, "array")


@pytest.mark.filterwarnings("ignore:Reading `.npy`")
@pytest.mark.parametrize(("at", "damage"), [(0, b"PK\x03\x04"), (8, b"\x01"), (21, b","), (26, b"B")])
def test_a_damaged_header_is_named(tmp_path: Path, at: int, damage: bytes) -> None:
    save_arrays(tmp_path, array=np.arange(100))
    whole = (tmp_path / "array.npy").read_bytes()
    (tmp_path / "array.npy").write_bytes(whole[:at] + damage + whole[at + len(damage) :])
    with pytest.raises(CollectionDamaged, match=r"array\.npy is truncated or not an array file"):
        open_array(tmp_path, "array")


@pytest.mark.parametrize("shape", [b"(10, 9223372036854775807)", b"(99999999999999999999,)", b"(()" + b"(" * 60, b"(2**99,)"])
def test_a_header_is_neither_evaluated_nor_believed(tmp_path: Path, shape: bytes) -> None:
    header = b"{'descr': '<i8', 'fortran_order': False, 'shape': " + shape + b", }"
    header = header.ljust(117) + b"\n"
    (tmp_path / "array.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\0" * 800)
    with pytest.raises(CollectionDamaged, match=r"array\.npy is truncated or not an array file"):
        open_array(tmp_path, "array")


def test_columns_first_is_an_order_too(tmp_path: Path) -> None:
    save_arrays(tmp_path, array=np.asfortranarray(np.arange(6).reshape(2, 3)))
    assert open_array(tmp_path, "array").tolist() == [[0, 1, 2], [3, 4, 5]]
