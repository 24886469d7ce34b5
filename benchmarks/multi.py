"""The multi lens against fast-plaid and xtr-warp-rs: the same token vectors, 4 bits, k = 10, one query per call.

    python -m benchmarks.multi --corpus squad-retrieval --documents 5000 --peers VENV/bin/python --threads 1
    python -m benchmarks.multi --corpus debian-en.jsonl.xz --grow

Needs `pip install trilens[bench]`; the peers live in an environment of their own (`pip install fast-plaid xtr-warp-rs`), whose
Python is given with `--peers`. A BEIR folder gives judged questions of its test split, and the documents judged for them come
first; of JSON lines without judgements the titles of random documents are the queries. The bundled model encodes each text
once, into `--cache`: a larger run continues a smaller one. Peers' indexes are kept there too, with the seconds they took;
trilens is built anew each time. Recall is the share of the ten best by exact MaxSim of the vectors as they are in the cache
(float16; equal scores are equally good). Every system builds in one process and answers all its settings in another.
"""

# mypy: disable-error-code="import-not-found"

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.peers.protocol import BITS, SHARD, Floats, K, Params, Vectors, read_vectors, shard_files
from benchmarks.record import RESULTS, file_hash, record
from benchmarks.tables import frontier, multi_runs
from trilens.encode.encoder import Encoded
from trilens.encode.models import resolve_model
from trilens.encode.onnx import OnnxEncoder
from trilens.index.multi_params import MultiParams, default_params
from trilens.text.beir import Beir
from trilens.text.document import Document
from trilens.text.readers import read

ROOT = Path(__file__).parent.parent
SEED, MODEL, SPLIT = 1, "all-MiniLM-L6-v2", "test"
QUERIES_AT_ONCE = 64
TIE = 1e-5  # of scores of about 10: float32 sums of equal documents differ by less
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
THREAD_VARIABLES = ("OMP", "MKL", "OPENBLAS", "RAYON", "NUMBA")

MODULES = {"trilens": "ours", "fast-plaid": "plaid", "xtr-warp-rs": "warp"}
PLAID = [(2, 2, 12, 0.02), (2, 4, 16, 0.05), (4, 4, 20, 0.05), (4, 8, 24, 0.05), (4, 8, 32, 0.05), (8, 8, 48, 0.05)]
PLAID += [(8, 16, 48, 0.05), (8, 16, 64, 0.05), (8, 16, 64, 0.1), (8, 16, 80, 0.1), (16, 16, 64, 0.1), (16, 16, 80, 0.1)]
PLAID += [(16, 16, 100, 0.1), (16, 32, 100, 0.1), (16, 32, 150, 0.1), (16, 32, 200, 0.1)]
PLAID += [(32, 64, 200, 0.1), (32, 64, 400, 0.1), (32, 64, 400, 0.2), (64, 128, 800, 0.2)]
XTR = [(16, 8, 0, 0, 2000), (16, 16, 0, 0, 5000), (16, 32, 0, 0, 10_000), (16, 32, 20, 0, 10_000), (32, 32, 0, 1000, 10_000)]
GRIDS: dict[str, list[Params]] = {
    "trilens": [
        *(asdict(MultiParams("plaid", reach, probes, rows, margin)) for reach, probes, rows, margin in PLAID),
        *(asdict(MultiParams("xtr", reach, probes, rows, nth=nth, tokens=tokens)) for reach, probes, rows, nth, tokens in XTR),
        asdict(MultiParams("exact")),
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
class Task:
    """Texts in the order in which they are taken; `grades[i]` are the judgements of query i by document."""

    name: str
    data: str
    doc_ids: list[str]
    docs: list[str]
    queries: list[str]
    grades: list[dict[str, int]] | None


@dataclass(frozen=True, slots=True)
class Race:
    """One run over the first documents and queries of a task, whose vectors are in `folder`."""

    task: Task
    folder: Path
    model: str
    documents: int
    queries: int
    threads: int
    repeats: int
    peers: Path | None
    started: str
    centroids: int | None = None


def read_task(path: Path) -> Task:
    """A BEIR folder, or a file of documents."""
    return read_judged(Beir(path)) if path.is_dir() else read_unjudged(path)


def read_judged(dataset: Beir) -> Task:
    """Questions in random order; first the documents judged for the first questions, last those that are not judged."""
    chance = random.Random(SEED)
    qrels, queries = dataset.qrels(SPLIT), dataset.queries(SPLIT)
    asked = chance.sample(sorted(queries), len(queries))
    texts = {document.doc_id: whole(document) for document in read([dataset.corpus_path], on_bad=lambda error: None)}
    judged = dict.fromkeys(doc_id for query_id in asked for doc_id in qrels[query_id] if doc_id in texts)
    others = [doc_id for doc_id in texts if doc_id not in judged]
    order = [*judged, *chance.sample(others, len(others))]
    grades = [qrels[query_id] for query_id in asked]
    data = file_hash(dataset.corpus_path)
    return Task(dataset.name, data, order, [texts[i] for i in order], [queries[i] for i in asked], grades)


def read_unjudged(path: Path) -> Task:
    """Documents in random order; the queries are their titles, or first sentences."""
    documents = list(read([path], on_bad=lambda error: None))
    documents = random.Random(SEED).sample(documents, len(documents))
    doc_ids, texts = [document.doc_id for document in documents], [whole(document) for document in documents]
    queries = [document.title.strip() or SENTENCE_END.split(document.text.strip())[0] for document in documents]
    return Task(path.name.partition(".")[0], file_hash(path), doc_ids, texts, queries, None)


def whole(document: Document) -> str:
    """Title and text."""
    return f"{document.title}\n{document.text}".strip()


def encode_all(task: Task, cache: Path, documents: int, queries: int) -> tuple[Path, str]:
    """Encode what is not in the cache yet. Its folder is that of the texts in their order and of the model."""
    encoder = OnnxEncoder(resolve_model(MODEL), heads=("multi",))
    digest = hashlib.blake2b("\n".join([encoder.fingerprint, task.data, *task.doc_ids, *task.queries]).encode(), digest_size=6)
    folder = cache / f"{task.name}-{digest.hexdigest()}"
    folder.mkdir(parents=True, exist_ok=True)
    encode_shards(folder, "queries", task.queries, queries, encoder.encode_queries)
    encode_shards(folder, "docs", task.docs, documents, encoder.encode_docs)
    return folder, encoder.fingerprint


def encode_shards(folder: Path, kind: str, texts: list[str], count: int, encode: Callable[[Sequence[str]], Encoded]) -> None:
    """Whole shards, the last one too, so that they serve larger runs; one counts once its lengths are there."""
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
    """A file that is there is complete."""
    part = path.with_suffix(".part.npy")
    np.save(part, array)
    part.replace(path)


def exact_scores(folder: Path, documents: int, queries: int) -> Floats:
    """MaxSim of every query with every document (queries, documents), kept by shards."""
    asked = read_vectors(folder, "queries", queries)
    scores = []
    for number in range(-(-documents // SHARD)):
        path = folder / f"scores-{number:05}-{queries}.npy"
        if not path.exists():
            vectors, lengths = shard_files(folder, "docs", number)
            save_whole(path, maxsim(asked, np.load(lengths), np.load(vectors).astype(np.float32)))
        scores.append(np.load(path))
    return np.concatenate(scores, axis=1)[:, :documents]


def maxsim(queries: Vectors, lengths: NDArray[np.int64], vectors: Floats) -> Floats:
    """Exact scores of documents that have so many tokens each; -inf where there is none."""
    held = lengths > 0
    starts = (np.cumsum(lengths) - lengths)[held]
    scores = np.full((len(queries), len(lengths)), -np.inf, np.float32)
    edges = [*range(0, len(queries), QUERIES_AT_ONCE), len(queries)]
    for first, last in pairwise(edges):
        tokens = queries.offsets[first : last + 1]
        best = np.maximum.reduceat(queries.vectors[tokens[0] : tokens[-1]] @ vectors.T, starts, axis=1)
        scores[first:last, held] = np.add.reduceat(best, tokens[:-1] - tokens[0], axis=0)
    return scores


def recall(scores: Floats, found: Sequence[Sequence[int]]) -> float:
    """The mean share of the K places that hold a document which is as good as the exact K-th."""
    worst = np.partition(scores, -K, axis=1)[:, -K] - TIE
    hits = [int((scores[query, list(set(ids[:K]))] >= worst[query]).sum()) for query, ids in enumerate(found)]
    return float(np.mean(hits)) / K


def ndcg(task: Task, found: Sequence[Sequence[int]]) -> float | None:
    """nDCG@10 with the grades as gains; None without judgements."""
    if task.grades is None:
        return None
    discounts = 1 / np.log2(np.arange(K) + 2)
    values = []
    for grades, ids in zip(task.grades, found, strict=False):
        ideal = sorted((max(0, grade) for grade in grades.values()), reverse=True)[:K]
        gains = [max(0, grades.get(task.doc_ids[at], 0)) for at in ids[:K]]
        best = float(discounts[: len(ideal)] @ ideal)
        values.append(float(discounts[: len(gains)] @ gains) / best if best else 0.0)
    return float(np.mean(values))


def ask(race: Race, system: str, action: str, *more: str) -> Iterator[dict[str, Any]]:
    """What a contender prints, line by line."""
    python = sys.executable if system == "trilens" else str(race.peers)
    command = [python, "-m", f"benchmarks.peers.{MODULES[system]}", action, "--vectors", str(race.folder)]
    for name in ("documents", "queries", "threads", "repeats"):
        command += [f"--{name}", str(getattr(race, name))]
    command += ["--index", str(index_folder(race, system)), *more]
    if race.centroids:
        command += ["--centroids", str(race.centroids)]
    limits = {f"{library}_NUM_THREADS": str(race.threads) for library in THREAD_VARIABLES}
    with subprocess.Popen(command, cwd=ROOT, env={**os.environ, **limits}, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield from (json.loads(line) for line in process.stdout if line.startswith("{"))
    if process.returncode:
        sys.exit(f"{system} failed to {action} (exit code {process.returncode}); see above. Rows so far are recorded")


def index_folder(race: Race, system: str) -> Path:
    """Where a system's index of so many documents is kept."""
    return race.folder / f"{system}-{race.documents}"


def built(race: Race, system: str) -> dict[str, Any]:
    """Build unless it is in the cache; what is known of the build. trilens changes, so it is always built."""
    index = index_folder(race, system)
    stamp = index.with_name(f"{index.name}.json")
    if system != "trilens" and stamp.exists():
        facts: dict[str, Any] = json.loads(stamp.read_text(encoding="utf-8"))
        return facts
    shutil.rmtree(index, ignore_errors=True)
    (facts,) = ask(race, system, "build")
    stamp.write_text(json.dumps(facts), encoding="utf-8")
    return facts


def own_choice(system: str, documents: int) -> Params:
    """The parameters that a system takes for so many documents where nothing is said; {} if they are not told."""
    if system == "trilens":
        return asdict(default_params(MultiParams(), K, documents))
    return {"n_ivf_probe": 8, "n_full_scores": 4096} if system == "fast-plaid" else {}


def all_settings(system: str, documents: int) -> list[Params]:
    """The grid of a system with its own choice, from fast to thorough."""
    grid, default = GRIDS[system], own_choice(system, documents)
    return grid if default in grid else [*grid[:-1], default, grid[-1]]


def compete(race: Race, system: str, scores: Floats, settings: list[Params], grid: str) -> None:
    """Build, search with every setting, and record a row for each."""
    built_facts = built(race, system)
    tokens = int(read_lengths(race.folder, race.documents).sum())
    size = sum(file.stat().st_size for file in index_folder(race, system).rglob("*") if file.is_file())
    exact = ndcg(race.task, np.argsort(-scores, axis=1, kind="stable")[:, :K].tolist())
    facts = {
        "run": race.started,
        **{name: built_facts[name] for name in ("system", "version")},
        **{"corpus": race.task.name, "documents": race.documents, "tokens": tokens, "queries": race.queries, "k": K},
        **{"dimensions": dimensions(race.folder), "bits": BITS, "model": race.model},
        **{"threads": race.threads, "seed": SEED, "data": race.task.data, "grid": grid},
    }
    for answer in ask(race, system, "search", "--settings", json.dumps(settings)):
        record(
            "multi",
            **facts,
            parameters=answer["parameters"],
            default=answer["parameters"] == own_choice(system, race.documents),
            recall_at_10=round(recall(scores, answer["found"]), 4),
            **{"nDCG@10": rounded(ndcg(race.task, answer["found"])), "nDCG@10 exact": rounded(exact)},
            ms_median=round(float(np.median(answer["ms"])), 3),
            ms_p95=round(float(np.percentile(answer["ms"], 95)), 3),
            passes=answer["passes"],
            **{name: built_facts[name] for name in ("build_seconds", "build_threads", "build_peak_mb")},
            bytes_per_token=round(size / tokens, 2),
            peak_mb=answer["peak_mb"],
        )


def read_lengths(folder: Path, documents: int) -> NDArray[np.int64]:
    """How many tokens the first documents have."""
    shards = [np.load(shard_files(folder, "docs", number)[1]) for number in range(-(-documents // SHARD))]
    return np.concatenate(shards)[:documents]


def dimensions(folder: Path) -> int:
    """Of the vectors."""
    return int(np.load(shard_files(folder, "docs", 0)[0], mmap_mode="r").shape[1])


def rounded(value: float | None) -> float | None:
    """Four digits."""
    return None if value is None else round(value, 4)


def plot(corpus: str, sizes: Sequence[int], grid: str) -> Path:
    """Recall against time out of the last recorded runs: for each system, size and number of threads a line through its best
    settings; the others are faint."""
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    colours = dict(zip(MODULES, matplotlib.rcParams["axes.prop_cycle"].by_key()["color"], strict=False))
    for (name, documents, threads, system, kind), rows in sorted(multi_runs().items()):
        if name == corpus and documents in sizes and kind == grid:
            label = f"{system}, {documents:,} documents, {threads} thread{'s' * (threads > 1)}"
            colour, line = colours[system], "-" if threads == 1 else "--"
            axes.plot(*points(frontier(rows)), color=colour, marker=".", linestyle=line, label=label)
            axes.plot(*points(rows), color=colour, marker=".", linestyle="", alpha=0.25)
    axes.set(xscale="log", xlabel="milliseconds per query (median)", ylabel="recall@10 of exact MaxSim", title=corpus)
    axes.grid(which="both", alpha=0.3)
    axes.legend()
    path = RESULTS / f"multi-{max(sizes)}.png"
    figure.savefig(path, dpi=120)
    return path


def points(rows: Sequence[dict[str, Any]]) -> tuple[list[float], list[float]]:
    """Times and recalls."""
    return [row["ms_median"] for row in rows], [row["recall_at_10"] for row in rows]


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True, help="a BEIR folder, or JSON lines with title and text")
    parser.add_argument("--documents", type=int, help="how many; all if not given")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--peers", type=Path, help="the Python of the environment with fast-plaid and xtr-warp-rs")
    parser.add_argument("--systems", nargs="+", choices=MODULES, help="default: all, or trilens alone without --peers")
    parser.add_argument("--threads", type=int, default=1, help="of every system; encoding takes all cores")
    parser.add_argument("--repeats", type=int, default=3, help="passes over the queries, if they take no more than a minute")
    parser.add_argument("--grow", action="store_true", help="trilens alone, default parameters: N/8, N/4, N/2, N documents")
    parser.add_argument("--centroids", type=int, help="of trilens alone, instead of as many as it takes by itself")
    parser.add_argument("--cache", type=Path, default=Path("runs/multi"), help="where vectors and indexes are kept")
    options = parser.parse_args()
    options.systems = options.systems or (list(MODULES) if options.peers and not options.grow else ["trilens"])
    if options.peers is None and options.systems != ["trilens"]:
        parser.error("--systems names a peer; give the Python of its environment with --peers")
    if (options.grow or options.centroids) and options.systems != ["trilens"]:
        parser.error("--grow and --centroids measure trilens alone; leave out --peers and --systems")
    return options


def main() -> None:
    """Encode, find the truth, and let every system compete."""
    options = arguments()
    task = read_task(options.corpus)
    most = min(options.documents or len(task.docs), len(task.docs))
    queries = min(options.queries, len(task.queries))
    folder, model = encode_all(task, options.cache.resolve(), most, queries)
    scores = exact_scores(folder, most, queries)
    started = datetime.now(UTC).isoformat(timespec="seconds")
    sizes, grid = ([most // 8, most // 4, most // 2, most], "default") if options.grow else ([most], "all")
    if options.centroids:
        grid = f"{options.centroids} centroids"
    peers = options.peers and options.peers.absolute()  # not resolved: a link is what makes it an environment's
    for size in sizes:
        race = Race(task, folder, model, size, queries, options.threads, options.repeats, peers, started, options.centroids)
        for system in options.systems:
            settings = [own_choice(system, size)] if options.grow else all_settings(system, size)
            compete(race, system, scores[:, :size], settings, grid)
    print(plot(task.name, sizes, grid), file=sys.stderr)


if __name__ == "__main__":
    main()
