"""Exact search over each representation: the oracle of every faster structure, and the fallback when few rows count."""

import numpy as np
from numpy.typing import NDArray

from trilens.errors import BadInput
from trilens.index.lens import Mask
from trilens.index.topk import Heaps, TopK
from trilens.kernels.dense import offer_vectors, rough_products
from trilens.kernels.maxsim import maxsim_all
from trilens.kernels.sparse import sparse_dot_all
from trilens.kernels.topk import offer_block
from trilens.represent import Dense, Multi, Sparse

BLOCK_ROWS = 8192
FEW_PRODUCTS = 1 << 16  # for so few, BLAS takes longer to wake its threads than to multiply, above all on a busy machine
FEW = 0.1  # below this share of allowed rows, gathering them is cheaper than scoring all


def offer_dense(queries: Dense, docs: Dense, heaps: Heaps, first_row: int = 0, allowed: Mask | None = None) -> None:
    """Offer every allowed row by inner product; memory stays bounded whatever the number of rows."""
    require_same_dim(queries, docs)
    rows = np.arange(len(docs)) if allowed is None else np.flatnonzero(allowed)
    few = len(rows) < FEW * len(docs)
    for start in range(0, len(rows) if few else len(docs), BLOCK_ROWS):
        span = slice(start, min(start + BLOCK_ROWS, len(docs)))
        chosen = rows[span] if few else np.arange(span.start, span.stop)
        vectors = docs.vectors[chosen] if few else docs.vectors[span]
        if allowed is not None:
            chosen = np.where(allowed[chosen], chosen, -1)
        if len(queries) * len(vectors) <= FEW_PRODUCTS:
            rough = np.empty((len(queries), len(vectors)), np.float32)
            rough_products(queries.vectors, vectors, rough)
        else:
            rough = queries.vectors @ vectors.T
        offer_vectors(rough, queries.vectors, vectors, chosen, first_row, heaps.scores, heaps.rows)


def require_same_dim(queries: Dense, docs: Dense) -> None:
    """Vectors of different models cannot be compared."""
    if queries.dim != docs.dim:
        raise BadInput(f"query vectors have {queries.dim} dimensions; expected {docs.dim}, as the documents")


def exact_dense(queries: Dense, docs: Dense, k: int, allowed: Mask | None = None) -> TopK:
    """The k best rows by inner product."""
    heaps = Heaps(len(queries), k)
    offer_dense(queries, docs, heaps, allowed=allowed)
    return heaps.sorted()


def exact_sparse(queries: Sparse, docs: Sparse, k: int, allowed: Mask | None = None) -> TopK:
    """The k best rows by inner product over shared terms. Rows that share no term with the query score 0."""
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
    """The k best rows by XTR's score: MaxSim, in which no similarity is lower than the last that was retrieved.

    Each query token retrieves the so many most similar tokens of all documents (k'). Rows that hold none of them are not found.
    """
    heaps = Heaps(len(queries), k)
    held = np.flatnonzero(np.diff(docs.offsets))
    most = min(retrieved, len(docs.vectors))
    for query in range(len(queries)):
        tokens = queries.vectors[queries.offsets[query] : queries.offsets[query + 1]]
        if not len(tokens) or not most:
            continue
        similar = tokens @ docs.vectors.T
        last = np.partition(similar, -most, axis=1)[:, -most, None]
        best = np.maximum.reduceat(similar, docs.offsets[held], axis=1)
        scores, found = np.zeros(len(docs), np.float32), np.zeros(len(docs), np.bool_)
        scores[held], found[held] = np.maximum(best, last).sum(axis=0), (best >= last).any(axis=0)
        _offer_all(scores, query, heaps, found)
    return heaps.sorted()


def _offer_all(scores: NDArray[np.float32], query: int, heaps: Heaps, allowed: Mask | None) -> None:
    mask = np.empty(0, np.bool_) if allowed is None else allowed
    one = slice(query, query + 1)
    offer_block(scores[None, :], 0, mask, allowed is not None, heaps.scores[one], heaps.rows[one])
