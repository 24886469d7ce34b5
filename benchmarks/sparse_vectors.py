"""Encodes learned sparse vectors for the sparse benchmark with the bundled model; interrupted runs are resumed.

    python -m benchmarks.sparse_vectors --corpus debian-en.jsonl.xz --to runs/sparse/debian-en --characters 240

Writes `docs-00000.npz` … and `queries.npz` with the arrays indptr, terms, weights, dim. Texts and queries are those of
`benchmarks.tasks`: for JSON lines without judgements, documents in random order and their titles as queries.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.record import add_data
from benchmarks.tasks import read_task
from trilens.encode.models import resolve_model
from trilens.encode.onnx import OnnxEncoder
from trilens.represent import Sparse
from trilens.store.config import DEFAULT_MODEL

SHARD = 2048


def save(sparse: Sparse, file: Path) -> None:
    """Write a file atomically, so that an existing file is complete."""
    part = file.with_suffix(".part.npz")
    np.savez(part, indptr=sparse.indptr, terms=sparse.terms, weights=sparse.weights, dim=sparse.dim)
    part.replace(file)


def require_same(file: Path, made_of: dict[str, Any]) -> None:
    """Refuse to resume a folder of vectors from another model or other texts."""
    if file.exists() and json.loads(file.read_text(encoding="utf-8")) != made_of:
        sys.exit(
            f"error: {file.parent} has vectors of another model or other texts, see its {file.name}; "
            "delete the folder, or pass another one with --to"
        )
    file.write_text(json.dumps(made_of), encoding="utf-8")


def main() -> None:
    """Encode the missing shards."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data(parser, "--corpus", "debian-en.jsonl.xz", "a BEIR folder, or JSON lines with title and text")
    parser.add_argument("--to", type=Path, required=True, help="folder of the vectors")
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--characters", type=int, help="truncate documents to this many characters, which is faster")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    task = read_task(options.corpus)
    encoder = OnnxEncoder(resolve_model(DEFAULT_MODEL), threads=options.threads, heads=["sparse"])
    options.to.mkdir(parents=True, exist_ok=True)
    require_same(
        options.to / "made-of.json", {"model": encoder.fingerprint, "data": task.data, "characters": options.characters}
    )
    if not (options.to / "queries.npz").exists():
        queries = encoder.encode_queries(task.queries[: options.queries]).sparse
        assert queries is not None
        save(queries, options.to / "queries.npz")
    for number in range(-(-len(task.docs) // SHARD)):
        file = options.to / f"docs-{number:05}.npz"
        if not file.exists():
            texts = [text[: options.characters] for text in task.docs[number * SHARD : (number + 1) * SHARD]]
            docs = encoder.encode_docs(texts).sparse
            assert docs is not None
            save(docs, file)
            print(f"encoded {min(len(task.docs), (number + 1) * SHARD):,} of {len(task.docs):,}", file=sys.stderr)


if __name__ == "__main__":
    main()
