"""Vectors over the vocabulary for the benchmark of the sparse lenses, made by the bundled model; an interrupted run continues.

    python -m benchmarks.sparse_vectors --corpus debian-en.jsonl.xz --to runs/sparse/debian-en --characters 240

Writes `docs-00000.npz` … and `queries.npz` with the arrays indptr, terms, weights, dim. The texts and queries are those of
`benchmarks.multi`: for JSON lines without judgements, documents in random order and the titles of the first as queries.
"""

import argparse
import os
import sys
from pathlib import Path

import numpy as np

from benchmarks.multi import read_task
from trilens.encode.models import resolve_model
from trilens.encode.onnx import OnnxEncoder
from trilens.represent import Sparse
from trilens.store.config import DEFAULT_MODEL

SHARD = 2048


def save(sparse: Sparse, file: Path) -> None:
    """A file that is there is complete."""
    part = file.with_suffix(".part.npz")
    np.savez(part, indptr=sparse.indptr, terms=sparse.terms, weights=sparse.weights, dim=sparse.dim)
    part.replace(file)


def main() -> None:
    """Encode what is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True, help="a BEIR folder, or JSON lines with title and text")
    parser.add_argument("--to", type=Path, required=True, help="folder of the vectors")
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--characters", type=int, help="take the beginnings of documents only, which is faster")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    task = read_task(options.corpus)
    encoder = OnnxEncoder(resolve_model(DEFAULT_MODEL), threads=options.threads, heads=["sparse"])
    options.to.mkdir(parents=True, exist_ok=True)
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
