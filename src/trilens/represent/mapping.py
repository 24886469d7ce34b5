"""Read-only memory maps of whole files that keep no file descriptor open.

A collection maps some dozens of files for each segment. `mmap.mmap` keeps a duplicate of the descriptor of each, and a process
may have only so many (often 1024).
"""

import ctypes
import mmap
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any
from weakref import finalize

import numpy as np

from trilens.kernels.array_types import UInt8s

FAILED = ctypes.c_void_p(-1).value  # MAP_FAILED


class Mapping:
    """A mapped file. It is unmapped when the last array over it is gone."""

    def __init__(self, descriptor: int, size: int) -> None:
        libc = _libc()
        address = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
        if address == FAILED:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (size,), "data": (address, True)}
        finalize(self, libc.munmap, address, size).atexit = False  # other threads may still read when the process ends


def map_file(path: Path) -> UInt8s:
    """The bytes of a file, read-only."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))
    try:
        size = os.fstat(descriptor).st_size
        if size == 0:  # an empty file cannot be mapped
            return np.frombuffer(b"", np.uint8)
        if sys.platform == "win32":
            return np.frombuffer(mmap.mmap(descriptor, size, access=mmap.ACCESS_READ), np.uint8)
        return np.asarray(Mapping(descriptor, size))
    finally:
        os.close(descriptor)


@cache
def _libc() -> Any:
    """The C library that Python is linked with."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_int64]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return libc
