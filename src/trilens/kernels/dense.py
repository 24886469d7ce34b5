"""Inner products of dense vectors whose scores depend only on the two vectors."""

import numpy as np

from trilens.kernels.array_types import Float32s, Float64s, Int64s
from trilens.kernels.compile import fast_kernel, kernel
from trilens.kernels.topk import offer


@kernel
def inner_product(first: Float32s, second: Float32s) -> float:
    """The inner product in a fixed order of summation, so that equal vectors get equal scores; BLAS does not guarantee that."""
    total = 0.0
    for i in range(len(first)):
        total += np.float64(first[i]) * second[i]
    return total


@fast_kernel
def rough_product(first: Float32s, second: Float32s) -> np.float32:
    """The inner product in the fastest order of summation; its error is at most dims * 2**-23 * |first| * |second|."""
    total = np.float32(0)
    for i in range(len(first)):
        total += first[i] * second[i]
    return total


@kernel
def rough_products(queries: Float32s, vectors: Float32s, products: Float32s) -> None:
    """Write the inner products of all queries with all vectors: (queries, vectors)."""
    for query in range(len(queries)):
        for i in range(len(vectors)):
            products[query, i] = rough_product(queries[query], vectors[i])


@kernel
def score_vectors(queries: Float32s, vectors: Float32s, rows: Int64s, first_row: int, scores: Float32s) -> None:
    """Write the inner products of each query with those of its `rows` (queries, n) that are in `vectors`."""
    for query in range(len(rows)):
        for i in range(rows.shape[1]):
            row = rows[query, i] - first_row
            if 0 <= row < len(vectors):
                scores[query, i] = np.float32(inner_product(queries[query], vectors[row]))


@kernel
def kth_highest(values: Float64s, candidates: Int64s, k: int) -> float:
    """The k-th highest of the values whose candidate is not -1; -inf if there are at most k values."""
    if len(values) <= k:
        return -np.inf
    valid = np.where(candidates >= 0, values, -np.inf)
    return float(np.partition(valid, len(valid) - k)[len(valid) - k])


@kernel
def offer_vectors(
    rough: Float32s, queries: Float32s, vectors: Float32s, candidates: Int64s, first_row: int, scores: Float32s, rows: Int64s
) -> None:
    """Offer the rows first_row + candidates[i] of the vectors whose rough scores (queries, n) can enter the heap.

    A candidate of -1 is skipped. The error of a rough score is at most dims * 2**-23 * |query| * |vector|.
    """
    lengths = np.empty(len(vectors), np.float32)
    for i in range(len(vectors)):
        lengths[i] = 1.001 * np.sqrt(rough_product(vectors[i], vectors[i]))  # not below the length, despite rounding
    for query in range(len(queries)):
        margin = queries.shape[1] * 2.0**-23 * np.sqrt(inner_product(queries[query], queries[query]))
        threshold = -np.inf
        if scores[query, 0] == -np.inf:  # the heap is not full: the k-th highest lower bound of these rows is the threshold
            threshold = kth_highest(rough[query] - margin * lengths, candidates, scores.shape[1])
        for i in range(len(vectors)):
            highest = rough[query, i] + margin * lengths[i]
            if candidates[i] >= 0 and highest >= threshold and highest >= scores[query, 0]:
                score = float(np.float32(inner_product(queries[query], vectors[i])))
                offer(scores[query], rows[query], score, first_row + candidates[i])
