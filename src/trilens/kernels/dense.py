"""Rows by inner product, with scores that depend on nothing but the two vectors."""

import numpy as np
from numpy.typing import NDArray

from trilens.kernels.compile import fast_kernel, kernel
from trilens.kernels.topk import Floats, Rows, offer


@kernel
def inner_product(first: Floats, second: Floats) -> float:
    """In one fixed order, so that equal vectors get equal scores: BLAS adds up the edges of a matrix differently."""
    total = 0.0
    for i in range(len(first)):
        total += np.float64(first[i]) * second[i]
    return total


@fast_kernel
def rough_product(first: Floats, second: Floats) -> np.float32:
    """In whatever order is fastest; off by at most dims * 2**-23 * |first| * |second|."""
    total = np.float32(0)
    for i in range(len(first)):
        total += first[i] * second[i]
    return total


@kernel
def rough_products(queries: Floats, vectors: Floats, products: Floats) -> None:
    """Write the product of every query with every vector (queries, vectors)."""
    for query in range(len(queries)):
        for i in range(len(vectors)):
            products[query, i] = rough_product(queries[query], vectors[i])


@kernel
def score_vectors(queries: Floats, vectors: Floats, rows: Rows, first_row: int, scores: Floats) -> None:
    """Write the inner products of each query with those of its `rows` (queries, n) that lie in `vectors`."""
    for query in range(len(rows)):
        for i in range(rows.shape[1]):
            row = rows[query, i] - first_row
            if 0 <= row < len(vectors):
                scores[query, i] = np.float32(inner_product(queries[query], vectors[row]))


@kernel
def kth_highest(values: NDArray[np.float64], candidates: Rows, k: int) -> float:
    """The k-th highest of the values whose candidate is not -1; -inf if there are not so many."""
    if len(values) <= k:
        return -np.inf
    counted = np.where(candidates >= 0, values, -np.inf)
    return float(np.partition(counted, len(counted) - k)[len(counted) - k])


@kernel
def offer_vectors(
    rough: Floats, queries: Floats, vectors: Floats, candidates: Rows, first_row: int, scores: Floats, rows: Rows
) -> None:
    """Offer first_row + candidates[i] (-1 where there is none) for vector i, if its rough score (queries, n) may do.

    A rough score is off by at most dims * 2**-23 * |query| * |vector|.
    """
    lengths = np.empty(len(vectors), np.float32)
    for i in range(len(vectors)):
        lengths[i] = 1.001 * np.sqrt(rough_product(vectors[i], vectors[i]))  # at least the length, rounded as it is
    for query in range(len(queries)):
        margin = queries.shape[1] * 2.0**-23 * np.sqrt(inner_product(queries[query], queries[query]))
        threshold = -np.inf
        if scores[query, 0] == -np.inf:  # before there is a k-th score, k rows here that score at least as much tell a bound
            threshold = kth_highest(rough[query] - margin * lengths, candidates, scores.shape[1])
        for i in range(len(vectors)):
            highest = rough[query, i] + margin * lengths[i]
            if candidates[i] >= 0 and highest >= threshold and highest >= scores[query, 0]:
                score = float(np.float32(inner_product(queries[query], vectors[i])))
                offer(scores[query], rows[query], score, first_row + candidates[i])
