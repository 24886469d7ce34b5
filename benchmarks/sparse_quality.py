"""Quality cost of 8-bit weights: nDCG@10 of the sparse lenses against float32 weights.

    python -m benchmarks.sparse_quality /data/scifact /data/nfcorpus

Takes BEIR folders. Documents and queries are encoded once, without passages; both rankings come from exact search.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Literal, cast

import ir_measures
from ir_measures import nDCG

from benchmarks.record import file_hash, record
from benchmarks.tasks import whole
from trilens.datasets.beir import Beir
from trilens.encode.encoder import Encoded
from trilens.encode.models import resolve_model
from trilens.encode.onnx import OnnxEncoder
from trilens.index.topk import TopK
from trilens.lenses.lexical import LexicalLens
from trilens.lenses.sparse import SparseLens
from trilens.lenses.term_settings import SparseConfig
from trilens.read.readers import read
from trilens.store.config import DEFAULT_MODEL

HEADS: tuple[Literal["sparse", "lexical"], ...] = ("sparse", "lexical")
LENSES = {"sparse": SparseLens, "lexical": LexicalLens}
DEPTH = 100


def search(head: Literal["sparse", "lexical"], weights: Literal["uint8", "float32"], docs: Encoded, queries: Encoded) -> TopK:
    """Exact top rows of each query."""
    lens = LENSES[head](cast(Any, None), SparseConfig(weights=weights))  # no model: the vectors are given
    with tempfile.TemporaryDirectory() as folder:
        lens.build(docs, Path(folder))
        return lens.searcher([lens.open(Path(folder))], [None]).search(queries, DEPTH, exact=True)


def quality(top: TopK, query_ids: list[str], doc_ids: list[str], qrels: dict[str, dict[str, int]]) -> float:
    """nDCG@10 of the retrieved rows."""
    run = {
        query: {doc_ids[row]: float(score) for row, score in zip(rows, scores, strict=True) if row >= 0}
        for query, rows, scores in zip(query_ids, top.rows, top.scores, strict=True)
    }
    return float(ir_measures.calc_aggregate([nDCG @ 10], qrels, run)[nDCG @ 10])


def main() -> None:
    """Encode, search and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", help="BEIR folders")
    parser.add_argument("--split", default="test")
    options = parser.parse_args()
    encoder = OnnxEncoder(resolve_model(DEFAULT_MODEL), heads=HEADS)
    for folder in options.folders:
        dataset = Beir(folder)
        documents = list(read([dataset.corpus_path], on_skip=lambda error: None))
        queries = dataset.queries(options.split)
        print(f"encoding {len(documents):,} documents of {folder.name}", file=sys.stderr)
        docs = encoder.encode_docs([whole(document) for document in documents])
        query_vectors = encoder.encode_queries(list(queries.values()))
        ids, qrels = [document.doc_id for document in documents], dataset.qrels(options.split)
        for head in HEADS:
            values = {
                weights: quality(search(head, weights, docs, query_vectors), list(queries), ids, qrels)
                for weights in ("uint8", "float32")
            }
            record(
                "sparse-quality",
                dataset=folder.name,
                split=options.split,
                data=file_hash(dataset.corpus_path),
                threads=len(os.sched_getaffinity(0)),
                seed=None,
                repeats=1,
                model=encoder.fingerprint,
                head=head,
                documents=len(documents),
                **{f"nDCG@10 {weights}": round(value, 4) for weights, value in values.items()},
                loss=round(values["float32"] - values["uint8"], 4),
            )


if __name__ == "__main__":
    main()
