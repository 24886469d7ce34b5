"""What all contenders do alike: read the same vectors, build, answer one query at a time, and print JSON lines.

    python -m benchmarks.peers.<module> build|search --vectors FOLDER --documents N --queries N --index FOLDER …

Run from the root of the repository by the Python of the environment that the contender is installed in; needs numpy and the
contender only. The caller limits the threads of libraries by their variables. Peaks are those of this process: a build's
holds the vectors in float32, a search's holds no vectors of documents.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

K, BITS = 10, 4
SHARD = 256  # texts in a file
WARM_UP = 10
ENOUGH_SECONDS = 60

Floats = NDArray[np.float32]
Params = dict[str, Any]


class Searching(Protocol):
    """An index that is ready to be searched."""

    def search(self, query: Any, params: Params) -> Any:
        """The best K documents; without params as the system itself chooses them."""

    def ids(self, answer: Any) -> list[int]:
        """The positions of the found documents, best first."""


class Contender(Searching, Protocol):
    """One system. Only `build` and `search` are timed."""

    name: str
    version: str

    def warm_up(self, dim: int) -> None:
        """What only the first build on a machine costs: compiling."""

    def build(self, docs: "Vectors", index: Path, threads: int, centroids: int | None) -> None:
        """Write an index of BITS bits per dimension, with as many centroids as the system takes if none are said."""

    def open(self, index: Path, threads: int) -> None:
        """Get ready to search an index."""

    def prepare(self, query: Floats) -> Any:
        """The query (tokens, dimensions) in the form that `search` takes."""


@dataclass(frozen=True, eq=False, slots=True)
class Vectors:
    """Text i has the rows `offsets[i]:offsets[i + 1]` of `vectors` (tokens, dimensions)."""

    offsets: NDArray[np.int64]
    vectors: Floats

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def texts(self) -> list[Floats]:
        """The vectors of each text."""
        return np.split(self.vectors, self.offsets[1:-1])


def shard_files(folder: Path, kind: str, number: int) -> tuple[Path, Path]:
    """The vectors of SHARD texts (float16), and how many each text has."""
    return folder / f"{kind}-{number:05}.npy", folder / f"{kind}-{number:05}.lengths.npy"


def read_vectors(folder: Path, kind: str, count: int) -> Vectors:
    """The first `count` texts of a kind (`docs`, `queries`)."""
    files = [shard_files(folder, kind, number) for number in range(-(-count // SHARD))]
    lengths = np.concatenate([np.load(shard[1]) for shard in files])[:count]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    dim = np.load(files[0][0], mmap_mode="r").shape[1]
    vectors = np.empty((offsets[-1], dim), np.float32)
    for number, (path, _) in enumerate(files):
        start, end = offsets[number * SHARD], offsets[min(count, (number + 1) * SHARD)]
        vectors[start:end] = np.load(path, mmap_mode="r")[: end - start]
    return Vectors(offsets, vectors)


def measure(contender: Searching, queries: Sequence[Any], params: Params, repeats: int) -> dict[str, Any]:
    """What one setting finds, and for each query the median time of as many passes as there is time for."""
    for query in queries[:WARM_UP]:
        contender.search(query, params)
    passes: list[list[float]] = []
    found: list[list[int]] = []
    start = perf_counter()
    while not passes or (len(passes) < repeats and perf_counter() - start < ENOUGH_SECONDS):
        times, found = [], []
        for query in queries:
            before = perf_counter()
            answer = contender.search(query, params)
            times.append(1000 * (perf_counter() - before))
            found.append(contender.ids(answer))
        passes.append(times)
    return {"parameters": params, "ms": np.median(passes, axis=0).round(4).tolist(), "passes": len(passes), "found": found}


def peak_mb() -> float:
    """The most memory this process has held. (What getrusage says includes the parent's before exec.)"""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def run(contender: Contender) -> None:
    """Build or search as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("build", "search"))
    parser.add_argument("--vectors", type=Path, required=True, help="folder of the shards")
    parser.add_argument("--documents", type=int, required=True)
    parser.add_argument("--queries", type=int, required=True)
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--centroids", type=int)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--settings", type=json.loads, default=[{}], help="a JSON list of objects of parameters")
    options = parser.parse_args()
    if options.action == "build":
        docs = read_vectors(options.vectors, "docs", options.documents)
        contender.warm_up(docs.vectors.shape[1])
        start = perf_counter()
        contender.build(docs, options.index, options.threads, options.centroids)
        facts = {"system": contender.name, "version": contender.version, "build_threads": options.threads}
        say({**facts, "build_seconds": round(perf_counter() - start, 2), "build_peak_mb": round(peak_mb())})
        return
    contender.open(options.index, options.threads)
    queries = [contender.prepare(query) for query in read_vectors(options.vectors, "queries", options.queries).texts()]
    for params in options.settings:
        say({**measure(contender, queries, params, options.repeats), "peak_mb": round(peak_mb())})


def say(facts: dict[str, Any]) -> None:
    """One line for the caller."""
    print(json.dumps(facts), flush=True)
