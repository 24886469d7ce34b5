"""The process that forks operations with faults, seen from a test."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from .shim import FAULTS


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
        killed, happened = said["outcome"] == "killed", said["outcome"] == "raised" or said.get("happened")
        assert killed if FAULTS[fault].kills else happened, f"{operation}: {fault} at {number}, {call}, did not happen: {said}"
        return said

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
