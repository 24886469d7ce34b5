"""Compilation of kernels with numba, typed so that type checkers see the plain function."""

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.event import Listener, install_listener

from trilens.kernels.code_cache import KernelCache

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile on first call, cache the machine code on disk, and release the GIL while running."""
    return _compiled(function)


def inline_kernel(function: Function) -> Function:
    """A kernel that is inlined into the kernels that call it."""
    return _compiled(function, inline="always")


def fast_kernel(function: Function) -> Function:
    """A kernel whose float sums may be reassociated, so that the compiler can vectorise them."""
    return _compiled(function, fastmath={"reassoc", "contract", "nsz"})


@contextmanager
def watch_compilation(changed: Callable[[bool], None]) -> Iterator[None]:
    """Call `changed` with True when a kernel that is not in the cache starts to compile, and with False when it is done.

    A kernel that another one calls compiles as a part of it.
    """
    with install_listener("numba:compile", _Compilations(changed)):
        yield


class _Compilations(Listener):  # type: ignore[misc]
    """Passes on the outermost of nested events. numba compiles under a lock, so there is one at a time."""

    def __init__(self, changed: Callable[[bool], None]) -> None:
        self._changed, self._depth = changed, 0

    def on_start(self, event: Any) -> None:
        self._depth += 1
        if self._depth == 1:
            self._changed(True)

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._changed(False)


def _compiled(function: Function, **options: Any) -> Function:
    options |= {"nogil": True, "error_model": "numpy"}
    compiled = numba.njit(**options)(function)
    with suppress(RuntimeError):  # no folder for the cache is safe
        compiled._cache = _cache_of(function)
    return cast(Function, compiled)


def _cache_of(function: Function) -> KernelCache:
    try:
        return KernelCache(function)
    except RuntimeError:  # numba may write neither beside the source nor in the user's home
        folder = private_folder()
        if folder is None:
            raise
        numba.config.CACHE_DIR = str(folder)
        return KernelCache(function)


@cache
def private_folder() -> Path | None:
    """A folder for temporary files that only this user can change; None if there is none.

    numba runs what it finds in its cache, so nobody else must be able to put a file or a folder there.
    """
    try:
        above = Path(tempfile.gettempdir())
        path = above / f"trilens-numba-{os.getuid()}"
        path.mkdir(mode=0o700, exist_ok=True)
        found, around = path.lstat(), above.stat()
    except (AttributeError, OSError):  # no user ids on Windows, where homes are writable
        return None
    replaceable = around.st_mode & 0o022 and not around.st_mode & stat.S_ISVTX
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
    return path if ours and not replaceable else None
