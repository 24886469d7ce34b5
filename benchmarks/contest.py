"""Races between contenders, which run in separate processes with limited threads and are compared with exact results.

A contender is a module of `benchmarks.peers` that prints JSON lines. trilens runs in this Python, a peer in its environment.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.environments import PeerMissing, python_of
from benchmarks.record import ROOT, record_missing
from benchmarks.tasks import K

THREAD_VARIABLES = ("OMP", "MKL", "OPENBLAS", "RAYON", "NUMBA")

Facts = dict[str, Any]


def python_for(system: str) -> Path:
    """Python executable of a contender."""
    return Path(sys.executable) if system == "trilens" else python_of(system)


@contextmanager
def taking_part(chapter: str, system: str) -> Iterator[None]:
    """If a peer cannot be measured, record the reason and continue with the others; a failure of trilens is fatal."""
    try:
        yield
    except PeerMissing as error:
        if system.startswith("trilens"):
            sys.exit(f"{system} {error}. Earlier rows are recorded")
        print(f"{system} {error}", file=sys.stderr)
        record_missing(chapter, system, str(error))


def ask(python: Path, module: str, arguments: Sequence[str], threads: int, **variables: str) -> Iterator[Facts]:
    """Run a contender and yield the JSON lines that it prints."""
    command = [str(python), "-m", f"benchmarks.peers.{module}", *arguments]
    limits = {f"{library}_NUM_THREADS": str(threads) for library in THREAD_VARIABLES}
    environment = {**os.environ, **limits, **variables}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield from (json.loads(line) for line in process.stdout if line.startswith("{"))
    if process.returncode:
        raise PeerMissing(f"failed with exit code {process.returncode}: {Path(command[0]).name} {' '.join(command[1:5])}")


def built(system: str, index: Path, build: Callable[[], Iterator[Facts]]) -> Facts:
    """Build an index unless it is cached, and return its build facts. trilens is always rebuilt, since its code changes."""
    stamp = index.with_name(f"{index.name}.json")
    if system != "trilens" and stamp.exists():
        facts: Facts = json.loads(stamp.read_text(encoding="utf-8"))
        return facts
    shutil.rmtree(index, ignore_errors=True)
    (facts,) = build()
    stamp.write_text(json.dumps(facts), encoding="utf-8")
    return facts


def recall(scores: NDArray[np.float32], rankings: Sequence[Sequence[int]], tie: NDArray[np.float32] | float) -> float:
    """Recall@K: mean fraction of the top K whose exact score reaches the K-th best; `tie` is the tolerance for equal scores."""
    thresholds = np.partition(scores, -K, axis=1)[:, -K] - tie
    hits = [int((scores[query, list(set(rows[:K]))] >= thresholds[query]).sum()) for query, rows in enumerate(rankings)]
    return round(float(np.mean(hits)) / K, 4)
