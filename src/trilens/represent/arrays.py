"""Named arrays in a folder: how every representation and every segment is kept on disk."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trilens.errors import CollectionDamaged

Array = NDArray[Any]


def save_arrays(folder: Path, **arrays: Array) -> None:
    """Write each array as `<name>.npy`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array, allow_pickle=False)


def create_array(folder: Path, name: str, dtype: Any, shape: tuple[int, ...]) -> Array:
    """A new `<name>.npy`, mapped for writing, so that arrays larger than memory can be filled piece by piece."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.npy"
    if 0 in shape:  # an empty file cannot be mapped
        empty = np.empty(shape, dtype)
        np.save(path, empty, allow_pickle=False)
        return empty
    array = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
    if hasattr(os, "posix_fallocate"):
        # Claim the space: on a full disk this raises, while writing into a hole of a mapped file would kill the process.
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    return array


@contextmanager
def scratch_array(folder: Path, name: str, dtype: Any, length: int) -> Iterator[Array]:
    """An array on disk that is gone afterwards: for work on more than memory should hold."""
    yield create_array(folder, name, dtype, (length,))
    (folder / f"{name}.npy").unlink()


def open_array(folder: Path, name: str) -> Array:
    """`<name>.npy`, memory-mapped and read-only."""
    path = folder / f"{name}.npy"
    try:
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except FileNotFoundError as error:
        raise CollectionDamaged(f"{path} is missing; run `trilens check` and restore the file or index again") from error
    except Exception as error:  # numpy parses the header with Python's own parser, which fails in many ways
        raise CollectionDamaged(
            f"{path} is truncated or not an array file ({error}); run `trilens check` and restore it or index again"
        ) from error
