"""Exhaustive search of each representation: the reference for all faster structures, and the fallback for narrow filters."""

from collections.abc import Callable
from typing import Any

import numpy as np

from trilens.encode.folder import Head
from trilens.errors import BadInput
from trilens.index.topk import Heaps, TopK
from trilens.kernels.array_types import Float32s, Mask
from trilens.kernels.dense import offer_vectors, rough_products
from trilens.kernels.maxsim import maxsim_all
from trilens.kernels.row_filter import RowFilter
from trilens.kernels.sparse import sparse_dot_all
from trilens.kernels.topk import offer_block
from trilens.represent import Dense, Multi, Sparse

BLOCK_ROWS = 8192
FEW_PRODUCTS = 1 << 16  # for fewer, BLAS takes longer to wake its threads than to multiply, above all on a busy machine
FEW = 0.1  # below this share of allowed rows, copying them is cheaper than scoring all rows


def offer_dense(queries: Dense, docs: Dense, heaps: Heaps, first_row: int = 0, allowed: Mask | None = None) -> None:
    """Offer all allowed rows by inner product, in blocks of bounded memory."""
    require_same_dim(queries, docs)
    rows = np.arange(len(docs)) if allowed is None else np.flatnonzero(allowed)
    few = len(rows) < FEW * len(docs)
    for start in range(0, len(rows) if few else len(docs), BLOCK_ROWS):
        span = slice(start, min(start + BLOCK_ROWS, len(docs)))
        candidates = rows[span] if few else np.arange(span.start, span.stop)
        vectors = docs.vectors[candidates] if few else docs.vectors[span]
        if allowed is not None:
            candidates = np.where(allowed[candidates], candidates, -1)
        if len(queries) * len(vectors) <= FEW_PRODUCTS:
            rough = np.empty((len(queries), len(vectors)), np.float32)
            rough_products(queries.vectors, vectors, rough)
        else:
            rough = queries.vectors @ vectors.T
        offer_vectors(rough, queries.vectors, vectors, candidates, first_row, heaps.scores, heaps.rows)


def require_same_dim(queries: Dense, docs: Dense) -> None:
    """Refuse queries whose dimension differs from that of the documents."""
    if queries.dim != docs.dim:
        raise BadInput(f"query vectors have {queries.dim} dimensions; expected {docs.dim}, as the documents")


def exact_dense(queries: Dense, docs: Dense, k: int, allowed: Mask | None = None) -> TopK:
    """The k best rows by inner product."""
    heaps = Heaps(len(queries), k)
    offer_dense(queries, docs, heaps, allowed=allowed)
    return heaps.sorted()


def exact_sparse(queries: Sparse, docs: Sparse, k: int, allowed: Mask | None = None) -> TopK:
    """The k best rows by inner product over shared terms; rows without a shared term score 0."""
    if queries.dim != docs.dim:
        raise BadInput(f"query terms are over {queries.dim} dimensions; expected {docs.dim}, as the documents")
    heaps = Heaps(len(queries), k)
    for query in range(len(queries)):
        span = slice(queries.indptr[query], queries.indptr[query + 1])
        weights = np.zeros(queries.dim, np.float32)
        weights[queries.terms[span]] = queries.weights[span]
        _offer_all(sparse_dot_all(weights, docs.indptr, docs.terms, docs.weights), query, heaps, allowed)
    return heaps.sorted()


def exact_multi(queries: Multi, docs: Multi, k: int, allowed: Mask | None = None) -> TopK:
    """The k best rows by MaxSim: for each query token its most similar document token, summed over the query tokens."""
    if queries.dim != docs.dim:
        raise BadInput(f"query tokens have {queries.dim} dimensions; expected {docs.dim}, as the documents")
    heaps = Heaps(len(queries), k)
    for query in range(len(queries)):
        tokens = queries.vectors[queries.offsets[query] : queries.offsets[query + 1]]
        _offer_all(maxsim_all(tokens, docs.offsets, docs.vectors), query, heaps, allowed)
    return heaps.sorted()


def exact_xtr(queries: Multi, docs: Multi, k: int, retrieved: int) -> TopK:
    """The k best rows by XTR's score: MaxSim in which no similarity is below the last retrieved one.

    Each query token retrieves the `retrieved` (k') most similar tokens of all documents. Rows without a retrieved token do not
    match.
    """
    heaps = Heaps(len(queries), k)
    nonempty = np.flatnonzero(np.diff(docs.offsets))
    count = min(retrieved, len(docs.vectors))
    for query in range(len(queries)):
        tokens = queries.vectors[queries.offsets[query] : queries.offsets[query + 1]]
        if not len(tokens) or not count:
            continue
        similarities = tokens @ docs.vectors.T
        last = np.partition(similarities, -count, axis=1)[:, -count, None]
        best = np.maximum.reduceat(similarities, docs.offsets[nonempty], axis=1)
        scores, matches = np.zeros(len(docs), np.float32), np.zeros(len(docs), np.bool_)
        scores[nonempty], matches[nonempty] = np.maximum(best, last).sum(axis=0), (best >= last).any(axis=0)
        _offer_all(scores, query, heaps, matches)
    return heaps.sorted()


EXACT_BY_HEAD: dict[Head, Callable[[Any, Any, int], TopK]] = {
    "dense": exact_dense,
    "sparse": exact_sparse,
    "lexical": exact_sparse,
    "multi": exact_multi,
}
"""Exact search over what each head of a model computes: (queries, docs, k) → the best rows."""


def _offer_all(scores: Float32s, query: int, heaps: Heaps, allowed: Mask | None) -> None:
    line = slice(query, query + 1)
    offer_block(scores[None, :], 0, *RowFilter.of(allowed), heaps.scores[line], heaps.rows[line])
