"""Named arrays in a folder: the on-disk form of all representations and segments."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from trilens.errors import CollectionDamaged
from trilens.kernels.array_types import AnyArray


def save_arrays(folder: Path, **arrays: AnyArray) -> None:
    """Write each array as `<name>.npy`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array, allow_pickle=False)


def create_array(folder: Path, name: str, dtype: Any, shape: tuple[int, ...]) -> AnyArray:
    """Create `<name>.npy` and memory-map it for writing, so that arrays larger than memory can be filled in chunks."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.npy"
    if 0 in shape:  # an empty file cannot be mapped
        empty = np.empty(shape, dtype)
        np.save(path, empty, allow_pickle=False)
        return empty
    array = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
    if hasattr(os, "posix_fallocate"):
        # Allocate the blocks: a full disk raises here, while a write to a hole of a mapped file would kill the process.
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    return array


@contextmanager
def scratch_array(folder: Path, name: str, dtype: Any, length: int) -> Iterator[AnyArray]:
    """A temporary array on disk, deleted on exit; for data that may exceed memory."""
    yield create_array(folder, name, dtype, (length,))
    (folder / f"{name}.npy").unlink()


def open_array(folder: Path, name: str) -> AnyArray:
    """Memory-map `<name>.npy` read-only."""
    path = folder / f"{name}.npy"
    try:
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except FileNotFoundError as error:
        raise CollectionDamaged(f"{path} is missing; run `trilens check` and restore the file or index again") from error
    except Exception as error:  # numpy evaluates the header as Python code, which can raise almost any exception
        raise CollectionDamaged(
            f"{path} is truncated or not an array file ({error}); run `trilens check` and restore it or index again"
        ) from error
