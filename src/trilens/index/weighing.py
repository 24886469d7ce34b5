"""What weighted terms count for in a collection: own words more than added ones, repeated ones more, long documents less, rare
terms more."""

import numpy as np
from numpy.typing import NDArray

from trilens.encode.encoder import Encoded
from trilens.encode.folder import Weighing
from trilens.kernels.sparse import add_rows, raise_own
from trilens.represent import Sparse, saturated

PLAIN = Weighing()


def weigh_docs(docs: Encoded, field: str, weighing: Weighing) -> Sparse:
    """The vectors of documents as they are stored."""
    rows: Sparse | None = getattr(docs, field)
    assert rows is not None
    if field == "lexical":
        return _shortened(rows, weighing.lexical_length)
    if field == "bag":
        return _shortened(counted(rows, weighing), weighing.bag_length)
    rows = _shortened(rows, weighing.sparse_length)
    if weighing.bag_added == 0:
        return rows
    bag = weigh_docs(docs, "bag", weighing)
    added = bag.weights * np.float32(weighing.bag_added)
    return Sparse(*add_rows(rows.indptr, rows.terms, rows.weights, bag.indptr, bag.terms, added), rows.dim)


def weigh_queries(queries: Sparse, bag: Sparse | None, weighing: Weighing) -> Sparse:
    """The vectors of queries over the vocabulary with their own words raised; `bag` says which these are."""
    if bag is None or weighing.own_query == 1:
        return queries
    weights = raise_own(queries.indptr, queries.terms, queries.weights, bag.indptr, bag.terms, weighing.own_query)
    return Sparse(queries.indptr, queries.terms, weights, queries.dim)


def counted(bags: Sparse, weighing: Weighing) -> Sparse:
    """Bags of tokens, each token by what it counts for as often as it stands there."""
    return Sparse(bags.indptr, bags.terms, saturated(bags.weights, weighing.repeats), bags.dim)


def bag_scales(lengths: NDArray[np.integer], weighing: Weighing) -> NDArray[np.float64]:
    """What each term of a bag of so many terms counts for where repeats do not count."""
    return np.asarray(np.maximum(lengths, 1) ** (-weighing.bag_length / 2), np.float64)


def rarity(frequencies: NDArray[np.integer] | NDArray[np.float64], rows: int) -> NDArray[np.float64]:
    """BM25's inverse document frequency of terms that so many of the rows hold."""
    return np.asarray(np.log1p((rows - frequencies + 0.5) / (frequencies + 0.5)), np.float64)


def _shortened(rows: Sparse, power: float) -> Sparse:
    """Each row divided by its length to a power."""
    if power == 0:
        return rows
    row_of = np.repeat(np.arange(len(rows)), np.diff(rows.indptr))
    squares = np.bincount(row_of, np.square(rows.weights, dtype=np.float64), minlength=len(rows))
    scales = np.where(squares > 0, squares, 1) ** (-power / 2)
    return Sparse(rows.indptr, rows.terms, (rows.weights * scales[row_of]).astype(np.float32), rows.dim)
