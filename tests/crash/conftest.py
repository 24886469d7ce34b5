import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from .fault_process import FaultDriver
from .shim import compile_shim

MEMORY = Path("/dev/shm")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A temporary folder, in memory where possible: thousands of fsyncs take minutes on a busy disk."""
    with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as path:
        yield Path(path)


@pytest.fixture(scope="session")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultDriver]:
    """A process under the shim."""
    library = compile_shim(tmp_path_factory.mktemp("shim")) if sys.platform == "linux" else None
    if library is None:
        pytest.skip("faults need Linux and a C compiler to build tests/crash/shim.c")
    with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as path:
        driver = FaultDriver(library, Path(path))
        yield driver
        driver.close()
