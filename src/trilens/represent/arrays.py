"""Named arrays in a folder: the on-disk form of all representations and segments."""

import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from trilens.errors import CollectionDamaged, CollectionError, shortage
from trilens.kernels.array_types import AnyArray
from trilens.represent.mapping import map_file

# The header that numpy writes, of numbers only. numpy itself reads any Python literal there.
FIRST_BYTES, LONGEST_HEADER = 10, 256
HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(?P<length>..)"
    rb"\{'descr': '(?P<dtype>\|[bui]1|<[iu][248]|<f[248])', 'fortran_order': (?P<fortran>True|False), "
    rb"'shape': \((?P<shape>|\d{1,18},|\d{1,18}(?:, \d{1,18})+)\), \} *\n",
    re.DOTALL,
)


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
        content = map_file(path)
    except FileNotFoundError as error:
        raise CollectionDamaged(f"{path} is missing; run `trilens check` and restore the file or index again") from error
    except OSError as error:
        raise shortage(path, error) or CollectionError(f"{path} cannot be read ({error.strerror}); check the disk") from error
    header = HEADER.match(content[:LONGEST_HEADER].tobytes())
    if header is None:
        raise _not_an_array(path, "its header is not one that trilens writes")
    dtype = np.dtype(header["dtype"].decode())
    shape = tuple(int(length) for length in header["shape"].split(b",") if length.strip())
    start = FIRST_BYTES + int.from_bytes(header["length"], "little")
    size = start + math.prod(shape) * dtype.itemsize
    if start != header.end() or size != len(content):
        raise _not_an_array(path, f"it has {len(content)} bytes, its header says {size}")
    return content[start:].view(dtype).reshape(shape, order="F" if header["fortran"] == b"True" else "C")


def _not_an_array(path: Path, reason: str) -> CollectionDamaged:
    return CollectionDamaged(
        f"{path} is truncated or not an array file ({reason}); run `trilens check` and restore it or index again"
    )
