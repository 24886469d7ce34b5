"""The sparse lens against scipy, splade-index and Seismic: the same vectors, one thread, one query per call, k = 10.

    ./scripts/bench sparse --shape vdr --vectors runs/sparse/debian-en

Vectors are `docs*.npz` and `queries*.npz` with indptr, terms, weights and dim, as written by `benchmarks.sparse_vectors`.
`--shape vdr` uses them unchanged; `splade` keeps the 120 highest weights of each document and the 30 highest of each query.
Recall is the fraction of the ten best by exact scores of the float weights (ties count as equal). Every system builds in one
process and runs all its search settings in another. The indexes of peers are cached in `--cache` with their build times;
trilens is rebuilt each time.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.contest import ask, built, python_for, recall, taking_part
from benchmarks.peers.protocol import K, Params
from benchmarks.peers.sparse import CONTENDERS, SHAPES, Rows, read_vectors
from benchmarks.record import file_hash, folder_bytes, record, started
from benchmarks.tasks import SEED
from trilens.kernels.sparse import sparse_dot_all

TIE = 1e-6  # relative; sums in another order differ by less

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
# Postings per list and summary energy. With 768 terms per vector, Seismic needs more than 20 minutes for lists of 1,000.
CLUSTERED = {"vdr": [(500, 0.4)], "splade": [(500, 0.4), (1000, 0.4), (3500, 0.4), (1000, 0.2)]}
BUILDS: dict[tuple[str, str], list[Params]] = {
    ("seismic", shape): [
        {"n_postings": postings, "centroid_fraction": 0.1, "summary_energy": energy} for postings, energy in sizes
    ]
    for shape, sizes in CLUSTERED.items()
}


@dataclass(frozen=True, slots=True)
class Race:
    """A race over the first documents and queries of a folder of vectors."""

    folder: Path
    shape: str
    documents: int
    queries: int
    repeats: int
    cache: Path
    started: str


def exact_scores(race: Race, docs: Rows, queries: Rows) -> NDArray[np.float32]:
    """Exact scores of every query with every document, (queries, documents), cached."""
    path = race.cache / f"scores-{race.shape}-{race.documents}-{race.queries}-{fingerprint(race)}.npy"
    if not path.exists():
        scores = np.empty((len(queries), len(docs)), np.float32)
        for row in range(len(queries)):
            query = queries.one(row)
            dense = np.zeros(queries.dim, np.float32)
            dense[query.terms] = query.weights
            scores[row] = sparse_dot_all(dense, docs.indptr, docs.terms, docs.weights)
        np.save(path, scores)
    cached: NDArray[np.float32] = np.load(path)
    return cached


def fingerprint(race: Race) -> str:
    """Hash that identifies the vectors."""
    return file_hash(sorted(race.folder.glob("queries*.npz"))[0])


def run(race: Race, system: str, action: str, index: Path, *more: str) -> Iterator[dict[str, Any]]:
    """Run a contender and yield its JSON lines."""
    arguments = [system, action, "--vectors", str(race.folder), "--shape", race.shape, "--index", str(index), *more]
    for name in ("documents", "queries", "repeats"):
        arguments += [f"--{name}", str(getattr(race, name))]
    return ask(python_for(system), "sparse", arguments, threads=1)


def compete(race: Race, system: str, scores: NDArray[np.float32]) -> None:
    """Build with all parameters, search with all settings, and record a row for each."""
    tie = TIE * np.partition(scores, -K, axis=1)[:, -K]
    for params in BUILDS.get((system, race.shape), [{}]):
        values = "-".join(str(value) for value in params.values())
        name = "-".join(filter(None, [system, race.shape, str(race.documents), fingerprint(race), values]))
        index = race.cache / name
        facts = built(system, index, partial(run, race, system, "build", index, "--build", json.dumps(params)))
        size = folder_bytes(index)
        settings = GRIDS.get((system, race.shape), [{}])
        for answer in run(race, system, "search", index, "--settings", json.dumps(settings)):
            record(
                "sparse",
                run=race.started,
                system=system,
                version=facts["version"],
                **{"vectors": race.folder.name, "data": fingerprint(race), "shape": race.shape},
                **{"documents": race.documents, "queries": race.queries, "k": K, "threads": 1, "seed": SEED},
                **{"build": params, "parameters": answer["parameters"]},
                recall_at_10=recall(scores, answer["found"], tie),
                ms_median=round(float(np.median(answer["ms"])), 4),
                ms_p95=round(float(np.percentile(answer["ms"], 95)), 4),
                repeats=answer["passes"],
                index_bytes=size,
                bytes_per_posting=round(size / facts["postings"], 2),
                **{name: facts[name] for name in ("build_seconds", "build_peak_mb")},
                peak_mb=answer["peak_mb"],
            )


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--vectors", type=Path, default=Path("runs/sparse/debian-en"), help="folder with docs*.npz and queries*.npz"
    )
    parser.add_argument("--shape", choices=SHAPES, default="vdr")
    parser.add_argument("--documents", type=int, help="number of documents; default: all")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--systems", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--repeats", type=int, default=3, help="passes over the queries, within one minute")
    parser.add_argument("--cache", type=Path, default=Path("runs/sparse/indexes"), help="folder of indexes and scores")
    return parser.parse_args()


def main() -> None:
    """Compute the exact scores and measure every system."""
    options = arguments()
    folder, cache = options.vectors.resolve(), options.cache.resolve()
    cache.mkdir(parents=True, exist_ok=True)
    docs = read_vectors(folder, "docs", options.shape, options.documents)
    queries = read_vectors(folder, "queries", options.shape, options.queries)
    race = Race(folder, options.shape, len(docs), len(queries), options.repeats, cache, started())
    scores = exact_scores(race, docs, queries)
    for system in options.systems:
        with taking_part("sparse", system):
            compete(race, system, scores)


if __name__ == "__main__":
    main()
