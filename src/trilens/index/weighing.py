"""What weighted terms count for in a collection: own words more than added ones, long documents less, rare terms more."""

import numpy as np
from numpy.typing import NDArray

from trilens.encode.encoder import Encoded
from trilens.encode.folder import Weighing
from trilens.kernels.sparse import weigh_rows
from trilens.represent import Sparse

PLAIN = Weighing()
NO_BAG = np.zeros(1, np.int64), np.empty(0, np.int32)


def weigh_docs(docs: Encoded, field: str, weighing: Weighing) -> Sparse:
    """The vectors of documents as they are stored. Bags have no weights to change: see `bag_scales`."""
    rows: Sparse | None = getattr(docs, field)
    assert rows is not None
    if field == "sparse":
        return _weighed(rows, docs.bag, weighing.own_doc, weighing.sparse_length)
    return _weighed(rows, None, 1, weighing.lexical_length) if field == "lexical" else rows


def weigh_queries(queries: Sparse, bag: Sparse | None, weighing: Weighing) -> Sparse:
    """The vectors of queries over the vocabulary with their own words raised; `bag` says which these are."""
    return _weighed(queries, bag, weighing.own_query, 0)


def bag_scales(lengths: NDArray[np.integer], weighing: Weighing) -> NDArray[np.float64]:
    """What each term of a bag of so many terms counts for."""
    return np.asarray(np.maximum(lengths, 1) ** (-weighing.bag_length / 2), np.float64)


def rarity(frequencies: NDArray[np.integer] | NDArray[np.float64], rows: int) -> NDArray[np.float64]:
    """BM25's inverse document frequency of terms that so many of the rows hold."""
    return np.asarray(np.log1p((rows - frequencies + 0.5) / (frequencies + 0.5)), np.float64)


def _weighed(rows: Sparse, bag: Sparse | None, own: float, power: float) -> Sparse:
    if own == 1 and power == 0:
        return rows
    starts, terms = NO_BAG if bag is None else (bag.indptr, bag.terms)
    weights = weigh_rows(rows.indptr, rows.terms, rows.weights, starts, terms, own, power)
    return Sparse(rows.indptr, rows.terms, weights, rows.dim)
