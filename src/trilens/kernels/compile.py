"""Compilation of kernels with numba, typed so that type checkers see the plain function."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile on first call, cache the machine code on disk, and release the GIL while running."""
    return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


def inline_kernel(function: Function) -> Function:
    """A kernel that is inlined into the kernels that call it."""
    return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy", inline="always")(function))


def fast_kernel(function: Function) -> Function:
    """A kernel whose float sums may be reassociated, so that the compiler can vectorise them."""
    rules = {"reassoc", "contract", "nsz"}
    return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=rules)(function))
