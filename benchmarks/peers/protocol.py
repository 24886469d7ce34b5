"""Protocol of contenders: read the shared vectors, build an index, answer one query at a time, print JSON lines.

    python -m benchmarks.peers.<module> [SYSTEM] build|search --vectors FOLDER --documents N --queries N --index FOLDER …

The benchmarks run contenders from the root of the repository, with the Python of the environment that the contender is
installed in; it needs only numpy and the contender. The caller limits the threads of libraries by environment variables. Peak
memory is that of this process: a build holds the vectors in float32, a search holds no document vectors.
"""

import argparse
import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

K, BITS = 10, 4
SHARD = 256  # texts per file
WARM_UP = 10  # queries
ENOUGH_SECONDS = 60

Floats = NDArray[np.float32]
Params = dict[str, Any]
Docs = TypeVar("Docs")
Query = TypeVar("Query")


class Contender(ABC, Generic[Docs, Query]):
    """A system to benchmark; only `build` and `search` are timed. `Docs` and `Query` are the vectors it is given."""

    version: str

    def __init__(self, threads: int) -> None:
        """Import the system, which must not count as building."""
        self.threads = threads

    def warm_up(self, docs: Docs) -> None:
        """Do what only the first build on a machine costs, such as compiling."""

    @abstractmethod
    def build(self, docs: Docs, index: Path, params: Params) -> None:
        """Write an index."""

    @abstractmethod
    def open(self, index: Path) -> None:
        """Load an index for searching."""

    @abstractmethod
    def prepare(self, query: Query) -> Any:
        """Convert a query to the form that `search` takes."""

    @abstractmethod
    def search(self, query: Any, params: Params) -> Any:
        """Search for the top K documents; without params, with the system's defaults."""

    @abstractmethod
    def ids(self, answer: Any) -> list[int]:
        """Positions of the retrieved documents, best first."""


@dataclass(frozen=True, eq=False, slots=True)
class Vectors:
    """Token vectors: text i has rows `offsets[i]:offsets[i + 1]` of `vectors`, (tokens, dimensions)."""

    offsets: NDArray[np.int64]
    vectors: Floats

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def texts(self) -> list[Floats]:
        """The vectors of each text."""
        return np.split(self.vectors, self.offsets[1:-1])


def shard_files(folder: Path, kind: str, number: int) -> tuple[Path, Path]:
    """Files of a shard: the token vectors of SHARD texts (float16), and the number of tokens of each text."""
    return folder / f"{kind}-{number:05}.npy", folder / f"{kind}-{number:05}.lengths.npy"


def read_vectors(folder: Path, kind: str, count: int) -> Vectors:
    """Read the token vectors of the first `count` texts of a kind (`docs`, `queries`)."""
    files = [shard_files(folder, kind, number) for number in range(-(-count // SHARD))]
    lengths = np.concatenate([np.load(shard[1]) for shard in files])[:count]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    dim = np.load(files[0][0], mmap_mode="r").shape[1]
    vectors = np.empty((offsets[-1], dim), np.float32)
    for number, (path, _) in enumerate(files):
        start, end = offsets[number * SHARD], offsets[min(count, (number + 1) * SHARD)]
        vectors[start:end] = np.load(path, mmap_mode="r")[: end - start]
    return Vectors(offsets, vectors)


def contender_parser(description: str | None, systems: Collection[str] = ()) -> argparse.ArgumentParser:
    """Command line of a contender module; `systems` are the choices of modules with several systems."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    if systems:
        parser.add_argument("system", choices=systems)
    parser.add_argument("action", choices=("build", "search"))
    parser.add_argument("--vectors", type=Path, required=True, help="folder of the vectors")
    parser.add_argument("--documents", type=int, required=True)
    parser.add_argument("--queries", type=int, required=True)
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--build", type=json.loads, default={}, help="build parameters, a JSON object")
    parser.add_argument("--settings", type=json.loads, default=[{}], help="search parameters, a JSON list of objects")
    return parser


def build(contender: Contender[Docs, Query], docs: Docs, options: argparse.Namespace, **facts: Any) -> None:
    """Time a build and report it, with `facts` in front."""
    contender.warm_up(docs)
    start = perf_counter()
    contender.build(docs, options.index, options.build)
    seconds = round(perf_counter() - start, 2)
    report({**facts, "version": contender.version, "build_seconds": seconds, "build_peak_mb": round(peak_mb())})


def search(contender: Contender[Docs, Query], queries: Sequence[Query], options: argparse.Namespace) -> None:
    """Answer the queries with every search setting and report each."""
    contender.open(options.index)
    prepared = [contender.prepare(query) for query in queries]
    for params in options.settings:
        report({**measure(contender, prepared, params, options.repeats), "peak_mb": round(peak_mb())})


def measure(contender: Contender[Docs, Query], queries: Sequence[Any], params: Params, repeats: int) -> dict[str, Any]:
    """Results of one setting, and the median latency of each query over several passes, limited by ENOUGH_SECONDS."""
    for query in queries[:WARM_UP]:
        contender.search(query, params)
    passes: list[list[float]] = []
    rankings: list[list[int]] = []
    start = perf_counter()
    while not passes or (len(passes) < repeats and perf_counter() - start < ENOUGH_SECONDS):
        times, rankings = [], []
        for query in queries:
            before = perf_counter()
            answer = contender.search(query, params)
            times.append(1000 * (perf_counter() - before))
            rankings.append(contender.ids(answer))
        passes.append(times)
    ms = np.median(passes, axis=0).round(4).tolist()
    return {"parameters": params, "ms": ms, "passes": len(passes), "found": rankings}


def peak_mb() -> float:
    """Peak resident memory of this process (getrusage would include that of the parent before exec)."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def run_multi(contender: type[Contender[Vectors, Floats]], name: str, description: str | None) -> None:
    """Command line of a contender for token vectors."""
    options = contender_parser(description).parse_args()
    made = contender(options.threads)
    if options.action == "build":
        docs = read_vectors(options.vectors, "docs", options.documents)
        build(made, docs, options, system=name, build_threads=options.threads)
    else:
        search(made, read_vectors(options.vectors, "queries", options.queries).texts(), options)


def report(facts: dict[str, Any]) -> None:
    """Print one JSON line for the caller."""
    print(json.dumps(facts), flush=True)
