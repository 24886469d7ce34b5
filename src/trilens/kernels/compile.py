"""The one way in which kernels are compiled, so that type checkers keep seeing the plain function."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile on first call, keep the machine code on disk, release the GIL while running."""
    return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


def inline_kernel(function: Function) -> Function:
    """A kernel small enough to be pasted into the kernels that call it."""
    return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy", inline="always")(function))


def fast_kernel(function: Function) -> Function:
    """A kernel whose sums may be added up in another order, so that the processor computes several at once."""
    rules = {"reassoc", "contract", "nsz"}
    return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=rules)(function))
