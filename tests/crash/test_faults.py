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
        self._logs: dict[tuple[str, str], list[str]] = {}
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

    def calls(self, operation: str, fault: str) -> list[str]:
        """The calls that count for a fault, in the order of an operation without faults."""
        if (operation, fault) not in self._logs:
            self._logs[operation, fault] = self.order(operation=operation, fault=fault)["log"]
        return self._logs[operation, fault]

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


def require_sound(driver: FaultDriver, operation: str, fault: str, random: Random, **order: Any) -> str:
    """Run an operation with a fault at a random call; returns the outcome."""
    calls = driver.calls(operation, fault)
    number = draw(random, calls)
    said = driver.order(operation=operation, fault=fault, number=number, **order)
    assert "problem" not in said, f"{operation}, {fault} at {number}, {calls[number - 1]}: {said.pop('problem')}\n{said}"
    outcome: str = said["outcome"]
    return outcome


@pytest.mark.parametrize("operation", OPERATIONS)
def test_operations_with_faults(driver: FaultDriver, operation: str) -> None:
    random = Random(operation)
    for fault in [*KILLS, *random.sample(sorted(FAILURES), 4)]:
        outcome = require_sound(driver, operation, fault, random)
        assert (outcome == "killed") == FAULTS[fault].kills


@pytest.mark.long
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("faults", [KILLS, FAILURES])
def test_many_faults(driver: FaultDriver, operation: str, faults: list[str]) -> None:
    random = Random(f"{operation} {len(faults)}")
    for number in range(1000 // len(OPERATIONS)):
        fault = sorted(faults)[number % len(faults)]
        require_sound(driver, operation, fault, random, reader=random.random() < 0.3, die=random.random() < 0.3)
