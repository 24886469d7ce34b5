"""The multi lens against fast-plaid and xtr-warp-rs: the same token vectors, 4 bits, k = 10, one query per call.

    ./scripts/bench multi --corpus squad-retrieval --documents 5000 --threads 1
    ./scripts/bench growth --corpus debian-en.jsonl.xz

A BEIR folder provides judged questions of its test split, and the documents judged for them come first; for JSON lines without
judgements, titles of random documents are the queries. The bundled model encodes each text once, into `--cache`; a larger run
reuses the vectors of a smaller one. The indexes of peers are cached too, with their build times; trilens is rebuilt each time.
Recall is the fraction of the ten best by exact MaxSim of the cached vectors (float16; ties count as equal). Every system builds
in one process and runs all its search settings in another.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.contest import ask, built, python_for, recall, taking_part
from benchmarks.peers.protocol import BITS, SHARD, Floats, K, Params, Vectors, read_vectors, shard_files
from benchmarks.record import add_data, folder_bytes, record, started
from benchmarks.tasks import SEED, Task, ndcg, read_task
from trilens.encode.encoder import Encoded
from trilens.encode.models import resolve_model
from trilens.encode.onnx import OnnxEncoder
from trilens.index.multi_params import MultiParams
from trilens.index.multi_params import default_settings as trilens_settings
from trilens.store.config import DEFAULT_MODEL

QUERIES_AT_ONCE = 64
TIE = 1e-5  # scores are about 10; float32 sums of equal documents differ by less

MODULES = {"trilens": "ours", "fast-plaid": "plaid", "xtr-warp-rs": "warp"}
PLAID = [(2, 2, 12, 0.02), (2, 4, 16, 0.05), (4, 4, 20, 0.05), (4, 8, 24, 0.05), (4, 8, 32, 0.05), (8, 8, 48, 0.05)]
PLAID += [(8, 16, 48, 0.05), (8, 16, 64, 0.05), (8, 16, 64, 0.1), (8, 16, 80, 0.1), (16, 16, 64, 0.1), (16, 16, 80, 0.1)]
PLAID += [(16, 16, 100, 0.1), (16, 32, 100, 0.1), (16, 32, 150, 0.1), (16, 32, 200, 0.1)]
PLAID += [(32, 64, 200, 0.1), (32, 64, 400, 0.1), (32, 64, 400, 0.2), (64, 128, 800, 0.2)]
XTR = [(16, 8, 0, 0, 2000), (16, 16, 0, 0, 5000), (16, 32, 0, 0, 10_000), (16, 32, 20, 0, 10_000), (32, 32, 0, 1000, 10_000)]


def plaid(reach: int, probes: int, rows: int, margin: float) -> Params:
    """Search parameters of PLAID."""
    return MultiParams(method="plaid", reach=reach, probes=probes, candidates=rows, margin=margin).model_dump()


def xtr(reach: int, probes: int, rows: int, nth: int, tokens: int) -> Params:
    """Search parameters of XTR."""
    return MultiParams(method="xtr", reach=reach, probes=probes, candidates=rows, nth=nth, tokens=tokens).model_dump()


GRIDS: dict[str, list[Params]] = {
    "trilens": [
        *(plaid(reach, probes, rows, margin) for reach, probes, rows, margin in PLAID),
        *(xtr(reach, probes, rows, nth, tokens) for reach, probes, rows, nth, tokens in XTR),
        MultiParams(method="exact").model_dump(),
    ],
    "fast-plaid": [
        {"n_ivf_probe": probes, "n_full_scores": rows} for probes, rows in [(1, 64), (1, 256), (2, 256), (4, 1024), (8, 4096)]
    ],
    "xtr-warp-rs": [
        {},
        *(
            {"nprobe": probes, "t_prime": tokens, "bound": max(128, 4 * probes)}
            for probes, tokens in [(1, 2000), (2, 5000), (4, 10_000), (8, 20_000), (16, 50_000), (32, 100_000)]
        ),
    ],
}


@dataclass(frozen=True, slots=True)
class Race:
    """A race over the first documents and queries of a task, whose vectors are in `folder`."""

    task: Task
    folder: Path
    model: str
    documents: int
    queries: int
    threads: int
    repeats: int
    started: str
    centroids: int | None = None


def encode_all(task: Task, cache: Path, documents: int, queries: int) -> tuple[Path, str]:
    """Encode the texts that are not cached; the folder is identified by the texts, their order and the model."""
    encoder = OnnxEncoder(resolve_model(DEFAULT_MODEL), heads=("multi",))
    digest = hashlib.blake2b("\n".join([encoder.fingerprint, task.data, *task.doc_ids, *task.queries]).encode(), digest_size=6)
    folder = cache / f"{task.name}-{digest.hexdigest()}"
    folder.mkdir(parents=True, exist_ok=True)
    encode_shards(folder, "queries", task.queries, queries, encoder.encode_queries)
    encode_shards(folder, "docs", task.docs, documents, encoder.encode_docs)
    return folder, encoder.fingerprint


def encode_shards(folder: Path, kind: str, texts: list[str], count: int, encode: Callable[[Sequence[str]], Encoded]) -> None:
    """Encode whole shards, which larger runs can reuse; a shard is complete if its lengths file exists."""
    for number in range(-(-count // SHARD)):
        vectors, lengths = shard_files(folder, kind, number)
        if lengths.exists():
            continue
        multi = encode(texts[number * SHARD : (number + 1) * SHARD]).multi
        assert multi is not None
        np.save(vectors, multi.vectors.astype(np.float16))
        save_whole(lengths, np.diff(multi.offsets))
        print(f"encoded {kind} {min(len(texts), (number + 1) * SHARD):,} for {count:,}", file=sys.stderr)


def save_whole(path: Path, array: NDArray[Any]) -> None:
    """Write a file atomically, so that an existing file is complete."""
    part = path.with_suffix(".part.npy")
    np.save(part, array)
    part.replace(path)


def exact_scores(folder: Path, documents: int, queries: int) -> Floats:
    """MaxSim of every query with every document, (queries, documents), cached by shard."""
    query_vectors = read_vectors(folder, "queries", queries)
    scores = []
    for number in range(-(-documents // SHARD)):
        path = folder / f"scores-{number:05}-{queries}.npy"
        if not path.exists():
            vectors, lengths = shard_files(folder, "docs", number)
            save_whole(path, maxsim(query_vectors, np.load(lengths), np.load(vectors).astype(np.float32)))
        scores.append(np.load(path))
    return np.concatenate(scores, axis=1)[:, :documents]


def maxsim(queries: Vectors, lengths: NDArray[np.int64], vectors: Floats) -> Floats:
    """MaxSim with documents of these lengths; -inf for documents without tokens."""
    nonempty = lengths > 0
    starts = (np.cumsum(lengths) - lengths)[nonempty]
    scores = np.full((len(queries), len(lengths)), -np.inf, np.float32)
    edges = [*range(0, len(queries), QUERIES_AT_ONCE), len(queries)]
    for first, last in pairwise(edges):
        tokens = queries.offsets[first : last + 1]
        best = np.maximum.reduceat(queries.vectors[tokens[0] : tokens[-1]] @ vectors.T, starts, axis=1)
        scores[first:last, nonempty] = np.add.reduceat(best, tokens[:-1] - tokens[0], axis=0)
    return scores


def run(race: Race, system: str, action: str, *more: str) -> Iterator[dict[str, Any]]:
    """Run a contender and yield its JSON lines."""
    arguments = [action, "--vectors", str(race.folder), "--index", str(index_folder(race, system)), *more]
    for name in ("documents", "queries", "threads", "repeats"):
        arguments += [f"--{name}", str(getattr(race, name))]
    if race.centroids:
        arguments += ["--build", json.dumps({"centroids": race.centroids})]
    return ask(python_for(system), MODULES[system], arguments, race.threads)


def index_folder(race: Race, system: str) -> Path:
    """Folder of a system's index."""
    return race.folder / f"{system}-{race.documents}"


def default_settings(system: str, documents: int) -> Params:
    """Default search parameters of a system for this many documents; {} if unknown."""
    if system == "trilens":
        return asdict(trilens_settings(MultiParams(), K, documents))
    return {"n_ivf_probe": 8, "n_full_scores": 4096} if system == "fast-plaid" else {}


def all_settings(system: str, documents: int) -> list[Params]:
    """Parameter grid of a system including its defaults, from fast to thorough."""
    grid, default = GRIDS[system], default_settings(system, documents)
    return grid if default in grid else [*grid[:-1], default, grid[-1]]


def compete(race: Race, system: str, scores: Floats, settings: list[Params], grid: str) -> None:
    """Build, search with all settings, and record a row for each."""
    built_facts = built(system, index_folder(race, system), lambda: run(race, system, "build"))
    tokens = int(read_lengths(race.folder, race.documents).sum())
    size = folder_bytes(index_folder(race, system))
    exact = ndcg(race.task, np.argsort(-scores, axis=1, kind="stable")[:, :K].tolist())
    facts = {
        "run": race.started,
        **{name: built_facts[name] for name in ("system", "version")},
        **{"corpus": race.task.name, "documents": race.documents, "tokens": tokens, "queries": race.queries, "k": K},
        **{"dimensions": dimensions(race.folder), "bits": BITS, "model": race.model},
        **{"threads": race.threads, "seed": SEED, "data": race.task.data, "grid": grid},
    }
    for answer in run(race, system, "search", "--settings", json.dumps(settings)):
        record(
            "multi",
            **facts,
            parameters=answer["parameters"],
            default=answer["parameters"] == default_settings(system, race.documents),
            recall_at_10=recall(scores, answer["found"], TIE),
            **{"nDCG@10": ndcg(race.task, answer["found"]), "nDCG@10 exact": exact},
            ms_median=round(float(np.median(answer["ms"])), 3),
            ms_p95=round(float(np.percentile(answer["ms"], 95)), 3),
            repeats=answer["passes"],
            **{name: built_facts[name] for name in ("build_seconds", "build_threads", "build_peak_mb")},
            bytes_per_token=round(size / tokens, 2),
            peak_mb=answer["peak_mb"],
        )


def read_lengths(folder: Path, documents: int) -> NDArray[np.int64]:
    """Number of tokens of each document."""
    shards = [np.load(shard_files(folder, "docs", number)[1]) for number in range(-(-documents // SHARD))]
    return np.concatenate(shards)[:documents]


def dimensions(folder: Path) -> int:
    """Number of dimensions of the vectors."""
    return int(np.load(shard_files(folder, "docs", 0)[0], mmap_mode="r").shape[1])


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data(parser, "--corpus", "squad-retrieval", "a BEIR folder, or JSON lines with title and text")
    parser.add_argument("--documents", type=int, help="number of documents; default: all")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--systems", nargs="+", choices=MODULES, help="default: all")
    parser.add_argument("--threads", type=int, default=1, help="threads of every system; encoding uses all cores")
    parser.add_argument("--repeats", type=int, default=3, help="passes over the queries, within one minute")
    parser.add_argument("--grow", action="store_true", help="only trilens, default parameters: N/8, N/4, N/2 and N documents")
    parser.add_argument("--centroids", type=int, help="only trilens, with this many centroids instead of the default")
    parser.add_argument("--cache", type=Path, default=Path("runs/multi"), help="folder of vectors and indexes")
    options = parser.parse_args()
    options.systems = options.systems or (["trilens"] if options.grow or options.centroids else list(MODULES))
    if (options.grow or options.centroids) and options.systems != ["trilens"]:
        parser.error("--grow and --centroids measure only trilens; remove --systems")
    return options


def main() -> None:
    """Encode, compute the exact scores, and measure every system."""
    options = arguments()
    task = read_task(options.corpus)
    documents = min(options.documents or len(task.docs), len(task.docs))
    queries = min(options.queries, len(task.queries))
    folder, model = encode_all(task, options.cache.resolve(), documents, queries)
    scores = exact_scores(folder, documents, queries)
    began = started()
    sizes = [documents // 8, documents // 4, documents // 2, documents] if options.grow else [documents]
    grid = "default" if options.grow else "all"
    if options.centroids:
        grid = f"{options.centroids} centroids"
    for size in sizes:
        race = Race(task, folder, model, size, queries, options.threads, options.repeats, began, options.centroids)
        for system in options.systems:
            settings = [default_settings(system, size)] if options.grow else all_settings(system, size)
            with taking_part("multi", system):
                compete(race, system, scores[:, :size], settings, grid)


if __name__ == "__main__":
    main()
