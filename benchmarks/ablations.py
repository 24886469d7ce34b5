"""Ablations on a judged collection: nDCG@10 with one setting changed at a time.

    ./scripts/bench ablations --folder /data/cranfield

Documents and queries are encoded once, without passages (truncated at the model's maximum length), keeping the 2,048 highest
vocabulary weights; every variant is derived from that encoding. All searches are exact unless the number of probes is varied.

VDR          number of terms kept per document and query, besides the tokens of the text
VDR terms    document terms: only tokens of the text, only expansion terms, or both; queries are unchanged
VDR weighing the plain inner product, and each part of the term weighting left out: length, own words, IDF, repeats
M3           each head alone and BGE-M3's combinations (raw scores, `multi` averaged over the query tokens)
multi bits   bits per dimension of the residuals, and uncompressed vectors
PLAID, XTR   centroids probed per query token; for XTR also the imputed similarity (k')

Ablations of training (contrastive mask, self-distillation and others) are training runs: `./scripts/bench recipes`.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import ir_measures
import numpy as np
from ir_measures import nDCG
from numpy.typing import NDArray

from benchmarks.record import add_data, file_hash, record
from benchmarks.tasks import whole
from trilens.cli.progress import progress_bar
from trilens.datasets.beir import Beir
from trilens.encode.encoder import Encoded
from trilens.encode.folder import TermWeighting
from trilens.encode.models import resolve_model
from trilens.encode.onnx import OnnxEncoder
from trilens.encode.terms import SparseMode
from trilens.index.multi_params import MultiParams
from trilens.index.term_weighting import PLAIN, weight_docs, weight_queries
from trilens.kernels.sparse import sparse_dot_all
from trilens.lenses.bm25 import idf
from trilens.lenses.multi import MultiConfig, MultiLens, MultiSearcher
from trilens.read.readers import read
from trilens.represent import Multi, Sparse
from trilens.store.config import DEFAULT_MODEL

SPLIT, DEPTH = "test", 100
TOPS, USUAL_TOP = (256, 512, 768, 1024, 2048), 768
BITS = (1, 2, 4)
PROBES = (1, 2, 4, 8, 16, 32, 64)
NTHS = (10, 20, 50, 100)  # k' of XTR: the imputed similarity is that of the k'-th retrieved token
XTR_PROBES = 32
# BGE-M3's weights; the weight of a single head does not matter.
COMBINED = {
    "dense": {"dense": 1.0},
    "lexical": {"lexical": 1.0},
    "multi": {"multi": 1.0},
    "dense + 0.3 lexical": {"dense": 1.0, "lexical": 0.3},
    "dense + 0.3 lexical + multi": {"dense": 1.0, "lexical": 0.3, "multi": 1.0},
}

Scores = NDArray[np.float32]
Variants = Iterator[tuple[str, str, Scores]]
"""(part, variant, scores of shape (queries, documents)); -inf marks documents that were not retrieved"""


@dataclass(frozen=True, slots=True)
class Texts:
    """An encoded judged collection and its term weighting."""

    docs: Encoded
    queries: Encoded
    weighting: TermWeighting


def vdr(texts: Texts) -> Variants:
    """Number and kind of terms, and the parts of the term weighting."""
    docs, queries = _weights(texts.docs), _weights(texts.queries)
    cuts = {top: (cut(queries, top, _bag(texts.queries)), cut(docs, top, _bag(texts.docs))) for top in TOPS}
    for top, (cut_queries, cut_docs) in cuts.items():
        yield "VDR", f"top {top}", compared(texts, cut_queries, cut_docs, texts.weighting)
    own = is_own(docs, _bag(texts.docs))
    alone = texts.weighting.model_copy(update={"bag_added": 0.0})  # the added bag consists of own terms
    for name, keep in (("own", own), ("not their own", ~own), ("all", np.ones_like(own))):
        yield "VDR terms of documents", name, compared(texts, queries, kept(docs, keep), alone)
    usual = cuts[USUAL_TOP]
    yield "VDR weighing", "the inner product", compared(texts, *usual, PLAIN)
    changes: dict[str, dict[str, Any]] = {
        "length": {"sparse_length": 0.0},
        "own words": {"own_query": 1.0, "bag_added": 0.0},
        "repeats": {"repeats": 0.0},
        "rarity": {"idf": False},
    }
    for name, change in changes.items():
        yield "VDR weighing", f"without {name}", compared(texts, *usual, texts.weighting.model_copy(update=change))


def compared(texts: Texts, queries: Sparse, docs: Sparse, weighting: TermWeighting) -> Scores:
    """Scores as in the sparse lens, but without 8-bit quantisation."""
    weighted = weight_queries(queries, _bag(texts.queries), weighting)
    rows = weight_docs(replace(texts.docs, sparse=docs), "sparse", weighting)
    if weighting.idf:
        term_idf = idf(np.bincount(rows.terms[rows.weights > 0], minlength=rows.dim), len(rows)).astype(np.float32)
        weighted = Sparse(weighted.indptr, weighted.terms, weighted.weights * term_idf[weighted.terms], weighted.dim)
    return dots(weighted, rows)


def m3(texts: Texts) -> Variants:
    """Heads alone and combined."""
    assert texts.docs.dense and texts.queries.dense and texts.docs.lexical and texts.queries.lexical
    assert texts.docs.multi and texts.queries.multi
    lengths = texts.queries.multi.sizes()
    lengths[lengths == 0] = 1  # avoids division by zero for queries without tokens
    by_head = {
        "dense": texts.queries.dense.vectors @ texts.docs.dense.vectors.T,
        "lexical": dots(texts.queries.lexical, texts.docs.lexical),
        "multi": maxsim(texts.queries.multi, texts.docs.multi) / lengths[:, None],
    }
    for name, weights in COMBINED.items():
        yield "M3", name, sum_of(weights, by_head)


def multi(texts: Texts) -> Variants:
    """Bits of the residual codes, and number of probed centroids."""
    assert texts.docs.multi and texts.queries.multi
    yield "multi bits", "32 (not coded)", maxsim(texts.queries.multi, texts.docs.multi)
    for bits in BITS:
        with coded(texts.docs, bits) as searcher:
            yield "multi bits", str(bits), search(searcher, texts, MultiParams(method="exact"))
    with coded(texts.docs, 4) as searcher:
        for probes in PROBES:
            yield "PLAID", f"{probes} probes", search(searcher, texts, MultiParams(method="plaid", probes=probes))
        for probes in PROBES:
            yield "XTR", f"{probes} probes, estimated", search(searcher, texts, MultiParams(method="xtr", probes=probes))
        for nth in NTHS:
            imputed = MultiParams(method="xtr", probes=XTR_PROBES, nth=nth)
            yield "XTR", f"{XTR_PROBES} probes, k' = {nth}", search(searcher, texts, imputed)


def sum_of(weights: Mapping[str, float], by_head: Mapping[str, Scores]) -> Scores:
    """Weighted sum of the scores of several heads."""
    total: Scores = np.sum([np.float32(weight) * by_head[head] for head, weight in weights.items()], axis=0)
    return total


@contextmanager
def coded(docs: Encoded, bits: int) -> Iterator[MultiSearcher]:
    """Index the documents with this many bits per dimension."""
    lens = MultiLens(cast(Any, None), MultiConfig(bits=bits))  # no encoder: the vectors are given
    with tempfile.TemporaryDirectory() as folder:
        page, part = Path(folder) / "page", Path(folder) / "part"
        lens.share(docs, [], page)
        lens.build(docs, part, [lens.open_shared(page)])
        yield lens.searcher([lens.open(part)], [None], [lens.open_shared(page)])


def search(searcher: MultiSearcher, texts: Texts, params: MultiParams) -> Scores:
    """Scores of one search of the multi lens."""
    top = searcher.search(texts.queries, DEPTH, params=params)
    assert texts.docs.multi
    scores = np.full((len(top.rows), len(texts.docs.multi)), -np.inf, np.float32)
    for query, (rows, row_scores) in enumerate(zip(top.rows, top.scores, strict=True)):
        scores[query, rows[rows >= 0]] = row_scores[rows >= 0]
    return scores


def dots(queries: Sparse, docs: Sparse) -> Scores:
    """Inner products (queries, documents)."""
    scores = np.empty((len(queries), len(docs)), np.float32)
    for query in range(len(queries)):
        span = slice(queries.indptr[query], queries.indptr[query + 1])
        dense = np.zeros(queries.dim, np.float32)
        dense[queries.terms[span]] = queries.weights[span]
        scores[query] = sparse_dot_all(dense, docs.indptr, docs.terms, docs.weights)
    return scores


def maxsim(queries: Multi, docs: Multi) -> Scores:
    """MaxSim of every query with every document; -inf for documents without tokens."""
    lengths = np.diff(docs.offsets)
    nonempty = lengths > 0
    scores = np.full((len(queries), len(docs)), -np.inf, np.float32)
    for query in range(len(queries)):
        products = queries.vectors[queries.offsets[query] : queries.offsets[query + 1]] @ docs.vectors.T
        scores[query, nonempty] = np.maximum.reduceat(products, docs.offsets[:-1][nonempty], axis=1).sum(axis=0)
    return scores


def cut(rows: Sparse, top: int, bag: Sparse) -> Sparse:
    """Keep the `top` highest weights of each text and those of its own tokens."""
    keep = is_own(rows, bag)
    for start, end in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        keep[start + np.argsort(-rows.weights[start:end], kind="stable")[:top]] = True
    return kept(rows, keep)


def kept(rows: Sparse, keep: NDArray[np.bool_]) -> Sparse:
    """Keep the selected weights."""
    indptr = np.concatenate([[0], np.cumsum(keep)])[rows.indptr]
    return Sparse(indptr, rows.terms[keep], rows.weights[keep], rows.dim)


def is_own(rows: Sparse, bag: Sparse) -> NDArray[np.bool_]:
    """Mask of the terms that occur in the text itself."""
    keys = np.repeat(np.arange(len(rows)), np.diff(rows.indptr)) * rows.dim + rows.terms
    own_keys = np.repeat(np.arange(len(bag)), np.diff(bag.indptr)) * bag.dim + bag.terms
    mask: NDArray[np.bool_] = np.isin(keys, own_keys)
    return mask


def _weights(encoded: Encoded) -> Sparse:
    assert encoded.sparse
    return encoded.sparse


def _bag(encoded: Encoded) -> Sparse:
    assert encoded.bag
    return encoded.bag


def quality(scores: Scores, query_ids: list[str], doc_ids: list[str], qrels: Mapping[str, Mapping[str, int]]) -> float:
    """nDCG@10; ties keep corpus order."""
    run: dict[str, dict[str, float]] = {}
    for query, row in zip(query_ids, scores, strict=True):
        best = [doc for doc in np.argsort(-row, kind="stable")[:DEPTH] if np.isfinite(row[doc])]
        run[query] = {doc_ids[doc]: float(DEPTH - rank) for rank, doc in enumerate(best)}
    return float(ir_measures.calc_aggregate([nDCG @ 10], qrels, run)[nDCG @ 10])


PARTS = {"vdr": vdr, "m3": m3, "multi": multi}


def main() -> None:
    """Encode once, then measure every variant."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data(parser, "--folder", "cranfield", "a judged collection in the BEIR layout")
    parser.add_argument("--model", default=DEFAULT_MODEL, help="bundled model or model folder, with all heads")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    dataset = Beir(options.folder)
    encoder = OnnxEncoder(resolve_model(options.model), mode=SparseMode(max(TOPS)))
    documents = list(read([dataset.corpus_path]))
    queries, qrels = dataset.queries(SPLIT), dataset.qrels(SPLIT)
    with progress_bar(f"encoding {dataset.name}", len(documents), "docs") as advance:
        docs = encoder.encode_docs([whole(document) for document in documents], advance)
    texts = Texts(docs, encoder.encode_queries(list(queries.values())), encoder.folder.config.term_weighting)
    facts = {
        **{"dataset": dataset.name, "split": SPLIT, "model": encoder.fingerprint, "data": file_hash(dataset.corpus_path)},
        **{"documents": len(documents), "queries": len(queries), "threads": len(os.sched_getaffinity(0))},
    }
    for name in options.parts:
        for part, variant, scores in PARTS[name](texts):
            value = quality(scores, list(queries), [document.doc_id for document in documents], qrels)
            record("ablations", **facts, part=part, variant=variant, **{"nDCG@10": round(value, 4)}, seed=None, repeats=1)
    print(f"{docs.truncated} of {len(documents)} documents were truncated at the model's maximum length", file=sys.stderr)


if __name__ == "__main__":
    main()
