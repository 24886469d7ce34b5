"""Whatever I/O call kills a process or fails, nothing acknowledged is lost, nothing half appears and the next write works."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from .conftest import MEMORY
from .operations import OPERATIONS
from .shim import FAILURES, FAULTS, KILLS, compile_shim

IN_A_FOLDER = re.compile(r"/segments/[^/]+/")


class FaultDriver:
    """The process that forks operations with faults, seen from the test."""

    def __init__(self, library: Path, folder: Path) -> None:
        path = os.pathsep.join(entry for entry in sys.path if entry)
        self._logs: dict[tuple[str, str, bool], list[str]] = {}
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.fault_driver", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            # A pool of OpenMP threads does not survive a fork: the child would wait for it forever.
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "LD_PRELOAD": str(library)},
        )

    def order(self, **order: Any) -> dict[str, Any]:
        """What came of an operation with a fault."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        said: dict[str, Any] = json.loads(self._process.stdout.readline())
        return said

    def calls(self, operation: str, fault: str, reader: bool = False) -> list[str]:
        """The calls that count for a fault, in the order of an operation without faults."""
        key = operation, fault, reader
        if key not in self._logs:
            self._logs[key] = self.order(operation=operation, fault=fault, reader=reader)["log"]
        return self._logs[key]

    def fail(self, operation: str, fault: str, number: int, reader: bool = False, die: bool = False) -> dict[str, Any]:
        """What came of an operation with a fault at a call; raises if anything is not as it must be.

        Meanwhile a `reader` may have a snapshot open, and the process may `die` after an error instead of trying again.
        """
        said = self.order(operation=operation, fault=fault, number=number, reader=reader, die=die)
        call = self.calls(operation, fault, reader)[number - 1]
        assert "problem" not in said, f"{operation}, {fault} at {number}, {call}: {said.pop('problem')}\n{said}"
        return said

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultDriver]:
    from tempfile import TemporaryDirectory

    library = compile_shim(tmp_path_factory.mktemp("shim")) if sys.platform == "linux" else None
    if library is None:
        pytest.skip("faults need Linux and a C compiler to build tests/crash/shim.c")
    with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        driver = FaultDriver(library, Path(folder))
        yield driver
        driver.close()


def draw(random: Random, calls: list[str]) -> int:
    """The number of a call; as often one of the few that concern the catalog or whole folders as any."""
    outside = [number for number, call in enumerate(calls, start=1) if not IN_A_FOLDER.search(call)]
    return random.choice(outside) if random.random() < 0.5 else random.randint(1, len(calls))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_operations_with_faults(driver: FaultDriver, operation: str) -> None:
    random = Random(operation)
    for fault in [*KILLS, *random.sample(sorted(FAILURES), 4)]:
        said = driver.fail(operation, fault, draw(random, driver.calls(operation, fault)))
        assert said["happened"] or FAULTS[fault].kills


@pytest.mark.long
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(("faults", "count"), [(sorted(KILLS), 1000), (sorted(FAILURES), 500)])
def test_many_faults(driver: FaultDriver, operation: str, faults: list[str], count: int) -> None:
    random = Random(f"{operation} {count}")
    for number in range(-(-count // len(OPERATIONS))):
        fault, reader = faults[number % len(faults)], random.random() < 0.3
        number = draw(random, driver.calls(operation, fault, reader))
        driver.fail(operation, fault, number, reader, die=random.random() < 0.3)
