"""The sparse lens against scipy, splade-index and Seismic: the same vectors, one thread, one query per call, k = 10.

    python -m benchmarks.sparse --vectors runs/sparse/debian-en --shape vdr --peers VENV/bin/python
    python -m benchmarks.sparse --vectors runs/sparse/debian-en --shape splade --peers VENV/bin/python

Needs `pip install trilens[bench]`; the peers live in an environment of their own, made as benchmarks/peers/sparse.py says; its
Python is given with `--peers`. Vectors are `docs*.npz` and `queries*.npz` with indptr, terms, weights and dim, as
`benchmarks.sparse_vectors` writes them. `--shape vdr` takes them as they are; `splade` takes the 120 heaviest terms of each
document and the 30 heaviest of each query. Recall is the share of the ten best by exact scores of the weights as they are
(equal scores are equally good). Every system builds in one process and answers all its settings in another. Peers' indexes are
kept in `--cache`, with the seconds they took; trilens is built anew each time.
"""

# mypy: disable-error-code="import-not-found"

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.peers.protocol import K, Params
from benchmarks.peers.sparse import CONTENDERS, SHAPES, Rows, read_vectors
from benchmarks.record import RESULTS, file_hash, record, rows
from benchmarks.tables import frontier
from trilens.kernels.sparse import sparse_dot_all

ROOT = Path(__file__).parent.parent
TIE = 1e-6  # of a score: sums of equal documents in another order differ by less
THREAD_VARIABLES = ("OMP", "MKL", "OPENBLAS", "RAYON", "NUMBA")

EXACT: list[Params] = [{"method": "exact"}, {}]
FULL = [(5, 20), (5, 30), (10, 30), (10, 50), (20, 50), (20, 100), (40, 50), (40, 100), (80, 50), (80, 100), (80, 200)]
FULL += [(150, 50), (150, 100), (150, 200), (250, 50), (250, 100), (400, 50)]
SHORT = [(3, 10), (5, 10), (5, 20), (5, 30), (8, 20), (8, 40), (12, 20), (16, 20), (20, 20), (25, 15)]
GRIDS: dict[tuple[str, str], list[Params]] = {
    ("trilens", "vdr"): [{"terms": terms, "candidates": candidates} for terms, candidates in FULL] + EXACT,
    ("trilens", "splade"): [{"terms": terms, "candidates": candidates} for terms, candidates in SHORT] + EXACT,
    ("seismic", "vdr"): [
        {"query_cut": cut, "heap_factor": factor}
        for cut, factor in product((3, 5, 10, 20, 50, 100, 200), (0.6, 0.7, 0.8, 0.9, 1.0))
    ],
    ("seismic", "splade"): [
        {"query_cut": cut, "heap_factor": factor} for cut, factor in product((3, 5, 10, 20, 30), (0.6, 0.7, 0.8, 0.9, 1.0))
    ],
}
# Postings per list, and energy of summaries. Lists of 1,000 out of vectors of 768 terms take Seismic more than 20 minutes.
CLUSTERED = {"vdr": [(500, 0.4)], "splade": [(500, 0.4), (1000, 0.4), (3500, 0.4), (1000, 0.2)]}
BUILDS: dict[tuple[str, str], list[Params]] = {
    ("seismic", shape): [
        {"n_postings": postings, "centroid_fraction": 0.1, "summary_energy": energy} for postings, energy in chosen
    ]
    for shape, chosen in CLUSTERED.items()
}


@dataclass(frozen=True, slots=True)
class Race:
    """One run over the first documents and queries of a folder of vectors."""

    folder: Path
    shape: str
    documents: int
    queries: int
    repeats: int
    cache: Path
    peers: Path | None
    started: str


def exact_scores(race: Race, docs: Rows, queries: Rows) -> NDArray[np.float32]:
    """Of every query with every document (queries, documents), kept in the cache."""
    path = race.cache / f"scores-{race.shape}-{race.documents}-{race.queries}-{fingerprint(race)}.npy"
    if not path.exists():
        scores = np.empty((len(queries), len(docs)), np.float32)
        for number in range(len(queries)):
            query = queries.one(number)
            dense = np.zeros(queries.dim, np.float32)
            dense[query.terms] = query.weights
            scores[number] = sparse_dot_all(dense, docs.indptr, docs.terms, docs.weights)
        np.save(path, scores)
    found: NDArray[np.float32] = np.load(path)
    return found


def fingerprint(race: Race) -> str:
    """Tells which vectors were used."""
    return file_hash(sorted(race.folder.glob("queries*.npz"))[0])


def recall(scores: NDArray[np.float32], found: Sequence[Sequence[int]]) -> float:
    """The share of the ten best that was found; what scores as much as the tenth is as good."""
    worst = np.sort(scores, axis=1)[:, -K] * (1 - TIE)
    hits = [int((scores[query, list(set(ids[:K]))] >= worst[query]).sum()) for query, ids in enumerate(found)]
    return float(np.mean(hits)) / K


def ask(race: Race, system: str, action: str, index: Path, *more: str) -> Iterator[dict[str, Any]]:
    """What a contender prints, line by line."""
    python = sys.executable if system == "trilens" else str(race.peers)
    command = [python, "-m", "benchmarks.peers.sparse", system, action, "--vectors", str(race.folder), "--shape", race.shape]
    for name in ("documents", "queries", "repeats"):
        command += [f"--{name}", str(getattr(race, name))]
    command += ["--index", str(index), *more]
    limits = {f"{library}_NUM_THREADS": "1" for library in THREAD_VARIABLES}
    with subprocess.Popen(command, cwd=ROOT, env={**os.environ, **limits}, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield from (json.loads(line) for line in process.stdout if line.startswith("{"))
    if process.returncode:
        sys.exit(f"{system} failed to {action} (exit code {process.returncode}); see above. Rows so far are recorded")


def built(race: Race, system: str, params: Params, index: Path) -> dict[str, Any]:
    """Build unless it is in the cache; what is known of the build. trilens changes, so it is always built."""
    stamp = index.with_name(f"{index.name}.json")
    if system != "trilens" and stamp.exists():
        facts: dict[str, Any] = json.loads(stamp.read_text(encoding="utf-8"))
        return facts
    shutil.rmtree(index, ignore_errors=True)
    (facts,) = ask(race, system, "build", index, "--build", json.dumps(params))
    stamp.write_text(json.dumps(facts), encoding="utf-8")
    return facts


def compete(race: Race, system: str, scores: NDArray[np.float32]) -> None:
    """Build in every way, search with every setting, and record a row for each."""
    for params in BUILDS.get((system, race.shape), [{}]):
        values = "-".join(str(value) for value in params.values())
        name = "-".join(filter(None, [system, race.shape, str(race.documents), fingerprint(race), values]))
        index = race.cache / name
        facts = built(race, system, params, index)
        size = sum(file.stat().st_size for file in index.rglob("*") if file.is_file())
        settings = GRIDS.get((system, race.shape), [{}])
        for answer in ask(race, system, "search", index, "--settings", json.dumps(settings)):
            record(
                "sparse",
                run=race.started,
                system=system,
                version=facts["version"],
                **{"vectors": race.folder.name, "data": fingerprint(race), "shape": race.shape},
                **{"documents": race.documents, "queries": race.queries, "k": K, "threads": 1},
                **{"build": params, "parameters": answer["parameters"]},
                recall_at_10=round(recall(scores, answer["found"]), 4),
                ms_median=round(float(np.median(answer["ms"])), 4),
                ms_p95=round(float(np.percentile(answer["ms"], 95)), 4),
                passes=answer["passes"],
                index_bytes=size,
                bytes_per_posting=round(size / facts["postings"], 2),
                **{name: facts[name] for name in ("build_seconds", "build_peak_mb")},
                peak_mb=answer["peak_mb"],
            )


def plot(race: Race) -> Path:
    """Recall against time in this run: for each system a line through its best settings; the others are faint."""
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    colours = matplotlib.rcParams["axes.prop_cycle"].by_key()["color"]
    for system, colour in zip(CONTENDERS, colours, strict=False):
        found = [row for row in rows("sparse") if row["run"] == race.started and row["system"] == system]
        if found:
            axes.plot(*points(frontier(found)), color=colour, marker=".", label=system)
            axes.plot(*points(found), color=colour, marker=".", linestyle="", alpha=0.25)
    title = f"{race.folder.name}, {race.shape}-shaped, {race.documents:,} documents, one thread"
    axes.set(xscale="log", xlabel="milliseconds per query (median)", ylabel="recall@10 of exact scores", title=title)
    axes.grid(which="both", alpha=0.3)
    axes.legend()
    path = RESULTS / f"sparse-{race.shape}-{race.documents}.png"
    figure.savefig(path, dpi=120)
    return path


def points(found: Sequence[dict[str, Any]]) -> tuple[list[float], list[float]]:
    """Times and recalls."""
    return [row["ms_median"] for row in found], [row["recall_at_10"] for row in found]


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vectors", type=Path, required=True, help="folder with docs*.npz and queries*.npz")
    parser.add_argument("--shape", choices=SHAPES, default="vdr")
    parser.add_argument("--documents", type=int, help="how many; all if not given")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--peers", type=Path, help="the Python of the environment with scipy, splade-index and pyseismic-lsr")
    parser.add_argument("--systems", nargs="+", choices=CONTENDERS, help="default: all, or trilens alone without --peers")
    parser.add_argument("--repeats", type=int, default=3, help="passes over the queries, if they take no more than a minute")
    parser.add_argument("--cache", type=Path, default=Path("runs/sparse/indexes"), help="where indexes and scores are kept")
    options = parser.parse_args()
    options.systems = options.systems or (list(CONTENDERS) if options.peers else ["trilens"])
    if options.peers is None and options.systems != ["trilens"]:
        parser.error("--systems names a peer; give the Python of its environment with --peers")
    return options


def main() -> None:
    """Find the truth, and let every system compete."""
    options = arguments()
    folder, cache = options.vectors.resolve(), options.cache.resolve()
    cache.mkdir(parents=True, exist_ok=True)
    docs = read_vectors(folder, "docs", options.shape, options.documents)
    queries = read_vectors(folder, "queries", options.shape, options.queries)
    peers = options.peers and options.peers.absolute()  # not resolved: a link is what makes it an environment's
    started = datetime.now(UTC).isoformat(timespec="seconds")
    race = Race(folder, options.shape, len(docs), len(queries), options.repeats, cache, peers, started)
    scores = exact_scores(race, docs, queries)
    for system in options.systems:
        compete(race, system, scores)
    print(plot(race), file=sys.stderr)


if __name__ == "__main__":
    main()
