"""What 8 bits per weight cost: nDCG@10 of the sparse lenses against the weights as the model gives them.

    python -m benchmarks.sparse_quality /data/scifact /data/nfcorpus

Takes BEIR folders. Documents and queries are encoded once, whole, without passages; both rankings come from exact searches.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any, Literal, cast

import ir_measures
from ir_measures import nDCG

from benchmarks.multi import whole
from benchmarks.record import file_hash, record
from trilens.encode.encoder import Encoded
from trilens.encode.models import resolve_model
from trilens.encode.onnx import OnnxEncoder
from trilens.index.sparse import SparseConfig, SparseLens
from trilens.index.topk import TopK
from trilens.store.config import DEFAULT_MODEL
from trilens.text.beir import Beir
from trilens.text.readers import read

HEADS: tuple[Literal["sparse", "lexical"], ...] = ("sparse", "lexical")
DEPTH = 100


def search(head: Literal["sparse", "lexical"], weights: Literal["uint8", "float32"], docs: Encoded, queries: Encoded) -> TopK:
    """The best rows of each query, exactly."""
    lens = SparseLens(head, head, cast(Any, None), SparseConfig(weights=weights))
    with tempfile.TemporaryDirectory() as folder:
        lens.build(docs, Path(folder))
        return lens.searcher([lens.open(Path(folder))], [None]).search(queries, DEPTH, exact=True)


def quality(top: TopK, query_ids: list[str], doc_ids: list[str], qrels: dict[str, dict[str, int]]) -> float:
    """nDCG@10."""
    run = {
        query: {doc_ids[row]: float(score) for row, score in zip(rows, scores, strict=True) if row >= 0}
        for query, rows, scores in zip(query_ids, top.rows, top.scores, strict=True)
    }
    return float(ir_measures.calc_aggregate([nDCG @ 10], qrels, run)[nDCG @ 10])


def main() -> None:
    """Encode, search, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", help="BEIR folders")
    parser.add_argument("--split", default="test")
    options = parser.parse_args()
    encoder = OnnxEncoder(resolve_model(DEFAULT_MODEL), heads=HEADS)
    for folder in options.folders:
        dataset = Beir(folder)
        documents = list(read([dataset.corpus_path], on_bad=lambda error: None))
        queries = dataset.queries(options.split)
        print(f"encoding {len(documents):,} documents of {folder.name}", file=sys.stderr)
        docs = encoder.encode_docs([whole(document) for document in documents])
        asked = encoder.encode_queries(list(queries.values()))
        ids, qrels = [document.doc_id for document in documents], dataset.qrels(options.split)
        for head in HEADS:
            found = {
                weights: quality(search(head, weights, docs, asked), list(queries), ids, qrels)
                for weights in ("uint8", "float32")
            }
            record(
                "sparse-quality",
                dataset=folder.name,
                split=options.split,
                data=file_hash(dataset.corpus_path),
                model=encoder.fingerprint,
                head=head,
                documents=len(documents),
                **{f"nDCG@10 {weights}": round(value, 4) for weights, value in found.items()},
                loss=round(found["float32"] - found["uint8"], 4),
            )


if __name__ == "__main__":
    main()
