"""Term weighting of a collection: own-term boost, term frequency saturation and length normalisation, as the model asks for."""

import numpy as np
from numpy.typing import NDArray

from trilens.encode.encoder import Encoded
from trilens.encode.folder import TermWeighting
from trilens.kernels.array_types import Float64s
from trilens.kernels.sparse import add_rows, raise_own
from trilens.represent import Sparse, saturated

PLAIN = TermWeighting()


def weight_docs(docs: Encoded, field: str, weighting: TermWeighting) -> Sparse:
    """The document vectors as they are indexed."""
    rows: Sparse | None = getattr(docs, field)
    assert rows is not None
    if field == "lexical":
        return _length_normalised(rows, weighting.lexical_length)
    if field == "bag":
        return _length_normalised(saturated_bags(rows, weighting), weighting.bag_length)
    rows = _length_normalised(rows, weighting.sparse_length)
    if weighting.bag_added == 0:
        return rows
    bag = weight_docs(docs, "bag", weighting)
    added = bag.weights * np.float32(weighting.bag_added)
    return Sparse(*add_rows(rows.indptr, rows.terms, rows.weights, bag.indptr, bag.terms, added), rows.dim)


def weight_queries(queries: Sparse, bag: Sparse | None, weighting: TermWeighting) -> Sparse:
    """The query vectors over the vocabulary with the weights of their own terms, those in `bag`, multiplied."""
    if bag is None or weighting.own_query == 1:
        return queries
    weights = raise_own(queries.indptr, queries.terms, queries.weights, bag.indptr, bag.terms, weighting.own_query)
    return Sparse(queries.indptr, queries.terms, weights, queries.dim)


def saturated_bags(bags: Sparse, weighting: TermWeighting) -> Sparse:
    """Bags of tokens with saturated term frequencies."""
    return Sparse(bags.indptr, bags.terms, saturated(bags.weights, weighting.repeats), bags.dim)


def add_bags(queries: Sparse, bags: Sparse, share: float) -> Sparse:
    """The query vectors plus their bags, multiplied by `share`."""
    added = bags.weights * np.float32(share)
    return Sparse(*add_rows(queries.indptr, queries.terms, queries.weights, bags.indptr, bags.terms, added), queries.dim)


def bag_scales(lengths: NDArray[np.integer], weighting: TermWeighting) -> Float64s:
    """The weight of each term of a bag with this many terms, where term frequencies do not count."""
    return np.asarray(np.maximum(lengths, 1) ** (-weighting.bag_length / 2), np.float64)


def _length_normalised(rows: Sparse, power: float) -> Sparse:
    """Rows divided by a power of their Euclidean length."""
    if power == 0:
        return rows
    row_of = np.repeat(np.arange(len(rows)), np.diff(rows.indptr))
    squares = np.bincount(row_of, np.square(rows.weights, dtype=np.float64), minlength=len(rows))
    scales = np.where(squares > 0, squares, 1) ** (-power / 2)
    return Sparse(rows.indptr, rows.terms, (rows.weights * scales[row_of]).astype(np.float32), rows.dim)
