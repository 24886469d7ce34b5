"""Rows of weighted terms: validation, arithmetic, 8-bit quantisation, and the inner product with a query.

A code stands for `scale · code` with one scale per row, so that the score of a row depends only on the row and the query. A
dense query is a weight per term of the vocabulary.
"""

from typing import NamedTuple

import numpy as np

from trilens.kernels.array_types import AnyArray, Float32s, Int32s, Int64s, UInt8s
from trilens.kernels.compile import kernel
from trilens.kernels.prefetch import prefetch

STEPS = np.float32(255)
TINY = np.finfo(np.float32).tiny  # the smallest scale, so that no code stands for 0
FINE, BAD_WEIGHT, BAD_TERM, BAD_ORDER = 0, 1, 2, 3
LINE = 64  # bytes of a cache line


class CodedRows(NamedTuple):
    """Row r has the terms and codes `indptr[r]:indptr[r + 1]`; codes are uint8, or float32 with scales of 1."""

    indptr: Int64s
    terms: Int32s
    codes: AnyArray
    scales: Float32s


@kernel
def sparse_dot_all(query: Float32s, indptr: Int64s, terms: Int32s, weights: Float32s) -> Float32s:
    """The inner products of a dense query with all rows."""
    scores = np.zeros(len(indptr) - 1, np.float32)
    for row in range(len(scores)):
        total = 0.0
        for position in range(indptr[row], indptr[row + 1]):
            total += np.float64(query[terms[position]]) * weights[position]
        scores[row] = total
    return scores


@kernel
def find_fault(indptr: Int64s, terms: Int32s, weights: Float32s, dim: int) -> tuple[int, int]:
    """The kind and position of the first invalid entry; FINE if there is none."""
    for row in range(len(indptr) - 1):
        before = -1
        for position in range(indptr[row], indptr[row + 1]):
            if not (weights[position] >= 0 and weights[position] < np.inf):
                return BAD_WEIGHT, position
            if terms[position] < 0 or terms[position] >= dim:
                return BAD_TERM, position
            if terms[position] <= before:
                return BAD_ORDER, position
            before = terms[position]
    return FINE, 0


@kernel
def count_positive(indptr: Int64s, weights: Float32s) -> Int64s:
    """Offsets of the rows without their terms of weight 0."""
    kept = np.zeros(len(indptr), np.int64)
    for row in range(len(indptr) - 1):
        kept[row + 1] = kept[row]
        for position in range(indptr[row], indptr[row + 1]):
            kept[row + 1] += weights[position] > 0
    return kept


@kernel
def raise_own(
    indptr: Int64s, terms: Int32s, weights: Float32s, own_starts: Int64s, own_terms: Int32s, factor: float
) -> Float32s:
    """The weights, with those of the own terms of each row multiplied by `factor`.

    Row r has the own terms `own_starts[r]:own_starts[r + 1]` of `own_terms`, ascending.
    """
    raised = weights.copy()
    for row in range(len(indptr) - 1):
        own, own_end = own_starts[row], own_starts[row + 1]
        for position in range(indptr[row], indptr[row + 1]):
            while own < own_end and own_terms[own] < terms[position]:
                own += 1
            if own < own_end and own_terms[own] == terms[position]:
                raised[position] *= factor
    return raised


@kernel
def add_rows(
    indptr: Int64s, terms: Int32s, weights: Float32s, other_ptr: Int64s, other_terms: Int32s, other_weights: Float32s
) -> tuple[Int64s, Int32s, Float32s]:
    """The row-wise sums of two sparse matrices: offsets, terms (ascending in each row) and weights."""
    total = len(terms) + len(other_terms)
    to_ptr, to_terms, to_weights = np.zeros(len(indptr), np.int64), np.empty(total, np.int32), np.empty(total, np.float32)
    to = 0
    for row in range(len(indptr) - 1):
        first, end, other, other_end = indptr[row], indptr[row + 1], other_ptr[row], other_ptr[row + 1]
        while first < end or other < other_end:
            in_first = first < end and (other == other_end or terms[first] <= other_terms[other])
            in_other = other < other_end and (first == end or other_terms[other] <= terms[first])
            to_terms[to] = terms[first] if in_first else other_terms[other]
            weight = weights[first] if in_first else np.float32(0)
            to_weights[to] = weight + (other_weights[other] if in_other else np.float32(0))
            first, other, to = first + in_first, other + in_other, to + 1
        to_ptr[row + 1] = to
    return to_ptr, to_terms[:to].copy(), to_weights[:to].copy()


@kernel
def encode_rows(
    indptr: Int64s, terms: Int32s, weights: Float32s, to_terms: Int32s, to_codes: UInt8s, to_scales: Float32s
) -> None:
    """Write the terms of positive weight with 8-bit codes, and the scale of each row."""
    to = 0
    for row in range(len(indptr) - 1):
        highest = np.float32(0)
        for position in range(indptr[row], indptr[row + 1]):
            highest = max(highest, weights[position])
        scale = max(highest / STEPS, TINY)
        to_scales[row] = scale
        for position in range(indptr[row], indptr[row + 1]):
            if weights[position] > 0:
                to_terms[to] = terms[position]
                to_codes[to] = min(max(int(np.rint(weights[position] / scale)), 1), 255)
                to += 1


@kernel
def copy_rows(
    indptr: Int64s, terms: Int32s, weights: Float32s, to_terms: Int32s, to_weights: Float32s, to_scales: Float32s
) -> None:
    """Write the terms of positive weight with unchanged weights, and scales of 1."""
    to = 0
    to_scales[:] = 1
    for position in range(indptr[-1]):
        if weights[position] > 0:
            to_terms[to], to_weights[to] = terms[position], weights[position]
            to += 1


@kernel
def score_row(row: int, query: Float32s, indptr: Int64s, terms: Int32s, codes: AnyArray, scales: Float32s) -> float:
    """The inner product of a dense query with one row, summed in the order of the terms."""
    total = 0.0
    scale, size = scales[row], len(query)
    for position in range(indptr[row], indptr[row + 1]):
        term = np.uint32(terms[position])
        if term < size:  # a term out of range is damage
            total += np.float64(query[term]) * np.float64(np.float32(scale * np.float32(codes[position])))
    return float(np.float32(total))


@kernel
def fetch_row(row: int, indptr: Int64s, terms: Int32s, codes: AnyArray) -> None:
    """Prefetch a row: rows that are scored are scattered over large arrays."""
    for position in range(indptr[row], indptr[row + 1], LINE // terms.itemsize):
        prefetch(terms, position)
    for position in range(indptr[row], indptr[row + 1], LINE // codes.itemsize):
        prefetch(codes, position)


@kernel
def score_rows(
    query_ptr: Int64s,
    query_terms: Int32s,
    query_weights: Float32s,
    rows: Int64s,
    first_row: int,
    indptr: Int64s,
    terms: Int32s,
    codes: AnyArray,
    scales: Float32s,
    query: Float32s,
    scores: Float32s,
) -> None:
    """Write the scores (queries, n) of those `rows` (queries, n) that belong to this segment, which starts at first_row.

    `query` is a buffer for a dense query, zero on entry and on return. Arguments are plain arrays because named tuples take
    longer to dispatch.
    """
    for q in range(len(rows)):
        for position in range(query_ptr[q], query_ptr[q + 1]):
            query[query_terms[position]] = query_weights[position]
        for i in range(rows.shape[1]):
            row = rows[q, i] - first_row
            if rows[q, i] >= 0 and row >= 0 and row < len(scales):
                scores[q, i] = score_row(row, query, indptr, terms, codes, scales)
        for position in range(query_ptr[q], query_ptr[q + 1]):
            query[query_terms[position]] = 0
