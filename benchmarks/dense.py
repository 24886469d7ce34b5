"""The dense lens against faiss: the same vectors, one thread, one query per call, k = 10.

    ./scripts/bench dense --corpus debian-en.jsonl.xz

The bundled model encodes each text once, into `--cache`. trilens searches exactly or, from 50,000 rows on, retrieves candidates
from an IVF index with 8-bit codes and re-scores them with the full vectors; faiss uses a flat index (the ground truth), the
same kind of IVF index, and HNSW. Recall is the fraction of the ten best by exact inner product (ties count as equal).
"""

import argparse
import hashlib
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contest import ask, built, python_for, recall, taking_part
from benchmarks.peers.dense import CONTENDERS
from benchmarks.peers.protocol import Floats, Params
from benchmarks.record import add_data, folder_bytes, record, started
from benchmarks.tasks import SEED, K, Task, read_task
from trilens.cli.progress import progress_bar
from trilens.encode.models import resolve_model
from trilens.encode.onnx import OnnxEncoder
from trilens.store.config import DEFAULT_MODEL

TIE = 1e-6
SHARES = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4)  # of the inverted lists; 1/8 is the default of trilens


def settings(documents: int) -> dict[str, list[tuple[Params, list[Params]]]]:
    """System → build parameters, each with its search parameters."""
    lists = 1 << round(np.log2(4 * np.sqrt(documents)))  # the default of trilens
    probes = [max(1, int(lists * share)) for share in SHARES]
    return {
        "trilens": [({}, [{"exact": True}, *({"probes": share} for share in SHARES)])],
        "faiss": [
            ({"factory": "Flat"}, [{}]),
            ({"factory": f"IVF{lists},SQ8"}, [{"nprobe": count} for count in probes]),
            ({"factory": "HNSW32"}, [{"efSearch": width} for width in (16, 32, 64, 128, 256)]),
        ],
    }


def encode(task: Task, cache: Path, documents: int, queries: int) -> tuple[Path, str]:
    """Encode the first texts, unless cached; return the folder of the vectors and the model fingerprint."""
    encoder = OnnxEncoder(resolve_model(DEFAULT_MODEL), heads=("dense",))
    texts = [encoder.fingerprint, *task.docs[:documents], *task.queries[:queries]]
    digest = hashlib.blake2b("\0".join(texts).encode(), digest_size=6).hexdigest()
    folder = cache / f"{task.name}-{documents}-{digest}"
    if not (folder / "queries.npy").exists():
        folder.mkdir(parents=True, exist_ok=True)
        with progress_bar(f"encoding {task.name}", documents, "docs") as advance:
            docs = encoder.encode_docs(task.docs[:documents], advance).dense
        query_vectors = encoder.encode_queries(task.queries[:queries]).dense
        assert docs and query_vectors
        np.save(folder / "docs.npy", docs.vectors)
        np.save(folder / "queries.npy", query_vectors.vectors)
    return folder, encoder.fingerprint


def run(system: str, action: str, folder: Path, sizes: list[str], index: Path, *more: str) -> Iterator[dict[str, Any]]:
    """Run a contender and yield its JSON lines."""
    arguments = [system, action, "--vectors", str(folder), *sizes, "--index", str(index), *more]
    return ask(python_for(system), "dense", arguments, threads=1)


def compete(system: str, folder: Path, sizes: list[str], scores: Floats, facts: dict[str, Any]) -> None:
    """Build with all parameters, search with all settings, and record a row for each."""
    for params, searches in settings(facts["documents"])[system]:
        index = folder / "-".join([system, *map(str, params.values())]).replace(",", "-")
        known = built(system, index, partial(run, system, "build", folder, sizes, index, "--build", json.dumps(params)))
        for answer in run(system, "search", folder, sizes, index, "--settings", json.dumps(searches)):
            record(
                "dense",
                **facts,
                system=system,
                parameters={**params, **answer["parameters"]},
                recall_at_10=recall(scores, answer["found"], TIE),
                ms_median=round(float(np.median(answer["ms"])), 4),
                ms_p95=round(float(np.percentile(answer["ms"], 95)), 4),
                repeats=answer["passes"],
                index_bytes=folder_bytes(index),
                **known,
                peak_mb=answer["peak_mb"],
            )


def main() -> None:
    """Encode, compute the exact results, and measure every system."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data(parser, "--corpus", "debian-en.jsonl.xz", "a BEIR folder, or JSON lines with title and text")
    parser.add_argument("--documents", type=int, help="number of documents; default: all")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--systems", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--repeats", type=int, default=3, help="passes over the queries, within one minute")
    parser.add_argument("--cache", type=Path, default=Path("runs/dense"), help="folder of vectors and indexes")
    options = parser.parse_args()
    task = read_task(options.corpus)
    documents = min(options.documents or len(task.docs), len(task.docs))
    queries = min(options.queries, len(task.queries))
    folder, model = encode(task, options.cache.resolve(), documents, queries)
    scores = np.load(folder / "queries.npy") @ np.load(folder / "docs.npy").T
    sizes = ["--documents", str(documents), "--queries", str(queries), "--repeats", str(options.repeats)]
    facts = {"run": started(), "corpus": task.name, "documents": documents, "queries": queries, "k": K, "model": model}
    facts |= {"threads": 1, "seed": SEED, "data": task.data}
    for system in options.systems:
        with taking_part("dense", system):
            compete(system, folder, sizes, scores, facts)


if __name__ == "__main__":
    main()
