"""Two source trees of trilens against each other: the same collection, one thread, one query per call, k = 10.

    ./scripts/bench trees --other ../trilens-before --data /data/cranfield

The other tree builds the collection once, into `--cache`; this tree searches a copy that it upgrades. Each tree runs in a
process of its own, which is started anew `--launches` times, because the memory layout of a process alone changes times by a
few percent. Every round measures the processor time of all searches in both trees, and the tree that goes first alternates,
so that a change of the machine's load affects both; short measurements are repeated, and the fastest pass over the queries
counts. The ratio is the median of the ratios of all rounds. `searcher` is the search of a lens for encoded queries; `search`
is `Collection.search`, with encoding, fusion and the texts of the hits.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.contest import THREAD_VARIABLES
from benchmarks.record import ROOT, add_data, commit_of, record, spread, started
from benchmarks.tasks import SEED, K, Task, read_task
from trilens import Collection

LENSES = ("bm25", "dense", "sparse", "multi")
MEASUREMENTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    *(("searcher", (lens,)) for lens in LENSES),
    *(("search", (lens,)) for lens in LENSES),
    ("search", LENSES),
)

Times = dict[tuple[str, tuple[str, ...]], list[float]]
Results = dict[tuple[str, tuple[str, ...]], list[list[Any]]]


class Tree:
    """The process of a source tree; it adds to the times of its measurements, and replaces the results."""

    def __init__(self, process: "subprocess.Popen[str]", times: Times, results: Results) -> None:
        self._process = process
        self.times = times
        self.results = results

    def measure(self, kind: str, lenses: tuple[str, ...], warm_up: bool) -> None:
        """Time passes over the queries."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"kind": kind, "lenses": lenses}) + "\n")
        self._process.stdin.flush()
        response = self.response()
        self.results[kind, lenses] = response["results"]
        if not warm_up:
            self.times[kind, lenses].append(response["ms"])

    def response(self) -> dict[str, Any]:
        """The next line of the process."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("a tree failed: see its error above")
        response: dict[str, Any] = json.loads(line)
        return response


@contextmanager
def running(tree: Path, collection: Path, queries: Path, times: Times, results: Results) -> Iterator[Tree]:
    """Run the sources of a tree with one thread."""
    limits = {f"{library}_NUM_THREADS": "1" for library in THREAD_VARIABLES}
    environment = {**os.environ, **limits, "PYTHONPATH": str(tree / "src")}
    command = [sys.executable, "-m", "benchmarks.peers.tree", str(collection), str(queries)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, env=environment, text=True, stdin=pipe, stdout=pipe) as process:
        contender = Tree(process, times, results)
        source = Path(contender.response()["source"])
        if tree / "src" not in source.parents:
            raise SystemExit(f"{source} was imported; expected trilens of {tree / 'src'}")
        yield contender
        assert process.stdin is not None
        process.stdin.close()


def indexed(task: Task, cache: Path, other: Path) -> Path:
    """The collection of a task, built by the other tree unless it is cached."""
    path, corpus = cache / f"{task.name}-{task.data}-{commit_of(other)}.trilens", cache / f"{task.name}.jsonl"
    cache.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps({"id": doc_id, "text": text}) for doc_id, text in zip(task.doc_ids, task.docs, strict=True))
    corpus.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(other / "src")}
    for arguments in (["index", str(corpus), "--to", str(path), "--lens", ",".join(LENSES)], ["optimize", str(path)]):
        subprocess.run([sys.executable, "-m", "trilens", *arguments], cwd=cache, env=environment, check=True)
    return path


def upgraded(collection: Path) -> Path:
    """A copy of a collection in the format of this tree."""
    copy = collection.with_suffix(".upgraded.trilens")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(collection, copy)
    Collection.upgrade(copy)
    return copy


def compare(this: Tree, other: Tree, rounds: int) -> None:
    """Time all measurements in both trees, in alternating order; the first round is a warm-up."""
    for number in range(rounds + 1):
        for kind, lenses in MEASUREMENTS:
            for tree in (this, other) if number % 2 else (other, this):
                tree.measure(kind, lenses, warm_up=number == 0)


def agreement(first: Sequence[Sequence[Any]], second: Sequence[Sequence[Any]]) -> float:
    """Share of the queries with equal results."""
    return round(sum(a == b for a, b in zip(first, second, strict=True)) / len(first), 4)


def main() -> None:
    """Build the collection, measure both trees and record a row for each measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--other", type=Path, required=True, help="another checkout of trilens")
    add_data(parser, "--data", "cranfield", "a BEIR folder, or JSON lines with title and text")
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5, help="timed passes over the queries in each tree and launch")
    parser.add_argument("--launches", type=int, default=5, help="times that both processes are started")
    parser.add_argument("--cache", type=Path, default=Path("runs/trees"), help="folder of the collection")
    options = parser.parse_args()
    task, other = read_task(options.data), options.other.resolve()
    cache = options.cache.resolve()
    collection, query_file = indexed(task, cache, other), cache / f"{task.name}-queries.json"
    copy = upgraded(collection)
    queries = task.queries[: options.queries]
    query_file.write_text(json.dumps(queries), encoding="utf-8")
    times: dict[Path, Times] = {tree: {measurement: [] for measurement in MEASUREMENTS} for tree in (ROOT, other)}
    results: dict[Path, Results] = {ROOT: {}, other: {}}
    for _ in range(options.launches):
        with ExitStack() as stack:
            paths = ((ROOT, copy), (other, collection))
            trees = (running(tree, path, query_file, times[tree], results[tree]) for tree, path in paths)
            new, old = (stack.enter_context(tree) for tree in trees)
            compare(new, old, options.rounds)
    facts = {
        "run": started(),
        "corpus": task.name,
        "documents": len(task.docs),
        "queries": len(queries),
    }
    repeats = options.launches * options.rounds
    facts |= {"k": K, "threads": 1, "seed": SEED, "data": task.data, "repeats": repeats, "other": commit_of(other)}
    for kind, lenses in MEASUREMENTS:
        own_times, other_times = times[ROOT][kind, lenses], times[other][kind, lenses]
        record(
            "trees",
            **facts,
            kind=kind,
            lenses=lenses,
            **spread("ms", own_times, 4),
            **spread("other_ms", other_times, 4),
            ratio=round(median(ms / other_ms for ms, other_ms in zip(own_times, other_times, strict=True)), 3),
            equal_results=agreement(results[ROOT][kind, lenses], results[other][kind, lenses]),
        )


if __name__ == "__main__":
    main()
