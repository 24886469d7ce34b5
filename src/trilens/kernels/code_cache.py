"""The cache of machine code on disk: numba's, made safe for several processes and for upgrades."""

import secrets
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import llvmlite
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import FunctionCache, IndexDataCacheFile

# numba numbers the functions that a process compiles from 1, and makes the names of symbols from name, number and types. If two
# processes have compiled different functions under one name, a third that loads both links them to the first: `argsort` runs
# the inner functions of `sort`. Random numbers differ, in forked processes too.
FunctionIdentity._unique_ids = iter(lambda: secrets.randbits(64), None)


class KernelCache(FunctionCache):  # type: ignore[misc]
    """The cache of one kernel. Its code contains that of the kernels it calls, so a change of any source makes it stale."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp(), _sources()
        self._cache_file = _KernelFiles(self._cache_path, self._impl.filename_base, stamp)


class _KernelFiles(IndexDataCacheFile):  # type: ignore[misc]
    """An index, and a file for each combination of types.

    numba numbers the files, so that two processes may write different code to the same one. Here each name is given once.
    """

    def _data_name(self, number: int) -> str:
        return self._data_name_pattern.format(number=secrets.randbits(64))  # type: ignore[no-any-return]

    def _save_index(self, overloads: dict[Any, str]) -> None:
        if len(overloads) <= 1:  # the index starts anew: what is left belongs to other sources
            for path in Path(self._cache_path).glob(f"{Path(self._index_name).stem}.*.nbc"):
                with suppress(OSError):
                    path.unlink()
        super()._save_index(overloads)


@cache
def _sources() -> str:
    """A hash of all kernels and the version of the compiler; numba's own version is in each index."""
    digest = sha256(llvmlite.__version__.encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(sha256(path.read_bytes()).digest())
    return digest.hexdigest()
