"""Machine code that different processes, or different versions of the kernels, have cached is never mixed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import trilens
from trilens.kernels.compile import kernel

SORTS = """
import sys
import numpy
from trilens.kernels.compile import kernel

@kernel
def highest(values):
    values.sort()
    return values[-1]

@kernel
def order(values):
    return values.argsort()

for name in sys.argv[1:]:
    kernel = globals()[name]
    print(name, kernel(numpy.array([30, 10, 20])), sum(kernel.stats.cache_hits.values()))
"""
CALLEE = """
from trilens.kernels.compile import kernel

@kernel
def number():
    return 1
"""
CALLER = """
from trilens.kernels.callee import number
from trilens.kernels.compile import kernel

@kernel
def call():
    return number()
"""
CALL = """
from trilens.kernels.caller import call
print(call(), sum(call.stats.cache_hits.values()))
"""


def run(folder: Path, sources: Path, *arguments: str) -> list[str]:
    """The lines that a Python process prints whose cache is in the folder."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": str(sources), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_code_of_two_processes_meets_in_a_third(tmp_path: Path) -> None:
    """numba gives the inner functions of `sort` and of `argsort`, the first that a process compiles, equal numbers."""
    (tmp_path / "sorts.py").write_text(SORTS)
    program, sources = str(tmp_path / "sorts.py"), Path(trilens.__file__).parents[1]
    assert run(tmp_path, sources, program, "highest") == ["highest 30 0"]
    assert run(tmp_path, sources, program, "order") == ["order [1 2 0] 0"]
    assert run(tmp_path, sources, program, "highest", "order") == ["highest 30 1", "order [1 2 0] 1"]


def test_a_kernel_is_compiled_again_when_one_that_it_calls_has_changed(tmp_path: Path) -> None:
    kernels = tmp_path / "trilens" / "kernels"
    shutil.copytree(Path(trilens.__file__).parent / "kernels", kernels, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "trilens" / "__init__.py").touch()
    (kernels / "caller.py").write_text(CALLER)
    (kernels / "callee.py").write_text(CALLEE)
    assert run(tmp_path / "cache", tmp_path, "-c", CALL) == ["1 0"]
    assert run(tmp_path / "cache", tmp_path, "-c", CALL) == ["1 1"]
    (kernels / "callee.py").write_text(CALLEE.replace("return 1", "return 2"))
    assert run(tmp_path / "cache", tmp_path, "-c", CALL) == ["2 0"]
    assert len(list((tmp_path / "cache").rglob("caller.call-*.nbc"))) == 1  # the other is removed


def test_processes_that_save_at_once_do_not_exchange_their_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))

    def nothing() -> None: ...

    def files() -> Any:
        return kernel(nothing)._cache._cache_file  # type: ignore[attr-defined]

    ours, theirs = files(), files()
    save = ours._save_data

    def save_later(name: str, data: Any) -> None:
        theirs.save("integers", "code for integers")
        save(name, data)

    monkeypatch.setattr(theirs, "_load_index", dict)  # read before ours was written
    monkeypatch.setattr(ours, "_save_data", save_later)
    ours.save("floats", "code for floats")
    assert files().load("integers") == "code for integers"
    assert files().load("floats") in ("code for floats", None)  # None: not found, to be compiled again
