"""What all races share: contenders run in processes of their own, with so many threads, and are compared with the truth.

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
    """The Python that a contender runs in."""
    return Path(sys.executable) if system == "trilens" else python_of(system)


@contextmanager
def taking_part(chapter: str, system: str) -> Iterator[None]:
    """Whatever keeps a peer from being measured is recorded in its place, and the others go on; trilens must not fail."""
    try:
        yield
    except PeerMissing as error:
        if system.startswith("trilens"):
            sys.exit(f"{system} {error}. Rows so far are recorded")
        print(f"{system} {error}", file=sys.stderr)
        record_missing(chapter, system, str(error))


def ask(python: Path, module: str, arguments: Sequence[str], threads: int, **variables: str) -> Iterator[Facts]:
    """What a contender prints, line by line."""
    command = [str(python), "-m", f"benchmarks.peers.{module}", *arguments]
    limits = {f"{library}_NUM_THREADS": str(threads) for library in THREAD_VARIABLES}
    environment = {**os.environ, **limits, **variables}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield from (json.loads(line) for line in process.stdout if line.startswith("{"))
    if process.returncode:
        raise PeerMissing(f"failed with exit code {process.returncode}: {Path(command[0]).name} {' '.join(command[1:5])}")


def built(system: str, index: Path, build: Callable[[], Iterator[Facts]]) -> Facts:
    """Build unless it is in the cache; what is known of the build. trilens changes, so it is always built."""
    stamp = index.with_name(f"{index.name}.json")
    if system != "trilens" and stamp.exists():
        facts: Facts = json.loads(stamp.read_text(encoding="utf-8"))
        return facts
    shutil.rmtree(index, ignore_errors=True)
    (facts,) = build()
    stamp.write_text(json.dumps(facts), encoding="utf-8")
    return facts


def recall(scores: NDArray[np.float32], found: Sequence[Sequence[int]], tie: NDArray[np.float32] | float) -> float:
    """The mean share of the K places that hold a row as good as the exact K-th; `tie` is how far below is still equal."""
    worst = np.partition(scores, -K, axis=1)[:, -K] - tie
    hits = [int((scores[query, list(set(rows[:K]))] >= worst[query]).sum()) for query, rows in enumerate(found)]
    return round(float(np.mean(hits)) / K, 4)
