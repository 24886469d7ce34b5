"""Rows of weighted terms: what is wrong with them, their 8-bit codes, and the inner product with a query.

A code stands for `scale · code`, where the scale is the row's own: so what a row scores depends on nothing but itself and the
query. A query is given as a weight per term of the vocabulary.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trilens.kernels.compile import kernel
from trilens.kernels.prefetch import prefetch

STEPS = np.float32(255)
TINY = np.finfo(np.float32).tiny  # no scale is smaller, so that every code stands for more than 0
FINE, BAD_WEIGHT, BAD_TERM, BAD_ORDER = 0, 1, 2, 3
LINE = 64  # bytes that come from memory together

Ints = NDArray[np.int64]
Terms = NDArray[np.int32]
Floats = NDArray[np.float32]
Codes = NDArray[Any]


@kernel
def sparse_dot_all(query: Floats, indptr: Ints, terms: Terms, weights: Floats) -> Floats:
    """Inner product of a query with each compressed row."""
    scores = np.zeros(len(indptr) - 1, np.float32)
    for row in range(len(scores)):
        total = 0.0
        for at in range(indptr[row], indptr[row + 1]):
            total += np.float64(query[terms[at]]) * weights[at]
        scores[row] = total
    return scores


@kernel
def find_fault(indptr: Ints, terms: Terms, weights: Floats, dim: int) -> tuple[int, int]:
    """What is wrong with the first bad entry, and where it is; FINE if there is none."""
    for row in range(len(indptr) - 1):
        before = -1
        for at in range(indptr[row], indptr[row + 1]):
            if not (weights[at] >= 0 and weights[at] < np.inf):
                return BAD_WEIGHT, at
            if terms[at] < 0 or terms[at] >= dim:
                return BAD_TERM, at
            if terms[at] <= before:
                return BAD_ORDER, at
            before = terms[at]
    return FINE, 0


@kernel
def count_positive(indptr: Ints, weights: Floats) -> Ints:
    """Offsets of the rows without the terms of weight 0."""
    kept = np.zeros(len(indptr), np.int64)
    for row in range(len(indptr) - 1):
        kept[row + 1] = kept[row]
        for at in range(indptr[row], indptr[row + 1]):
            kept[row + 1] += weights[at] > 0
    return kept


@kernel
def raise_own(indptr: Ints, terms: Terms, weights: Floats, own_starts: Ints, own_terms: Terms, own: float) -> Floats:
    """The weights with those of a row's own terms multiplied by `own`; `own_terms` are rows as `terms` are."""
    raised = weights.copy()
    for row in range(len(indptr) - 1):
        at_own, own_end = own_starts[row], own_starts[row + 1]
        for at in range(indptr[row], indptr[row + 1]):
            while at_own < own_end and own_terms[at_own] < terms[at]:
                at_own += 1
            if at_own < own_end and own_terms[at_own] == terms[at]:
                raised[at] *= own
    return raised


@kernel
def add_rows(
    indptr: Ints, terms: Terms, weights: Floats, other_ptr: Ints, other_terms: Terms, other_weights: Floats
) -> tuple[Ints, Terms, Floats]:
    """The sums of two rows each: all terms that one of them has, ascending."""
    total = len(terms) + len(other_terms)
    sums, to_terms, to_weights = np.zeros(len(indptr), np.int64), np.empty(total, np.int32), np.empty(total, np.float32)
    to = 0
    for row in range(len(indptr) - 1):
        at, end, other, other_end = indptr[row], indptr[row + 1], other_ptr[row], other_ptr[row + 1]
        while at < end or other < other_end:
            here = at < end and (other == other_end or terms[at] <= other_terms[other])
            there = other < other_end and (at == end or other_terms[other] <= terms[at])
            to_terms[to] = terms[at] if here else other_terms[other]
            to_weights[to] = (weights[at] if here else np.float32(0)) + (other_weights[other] if there else np.float32(0))
            at, other, to = at + here, other + there, to + 1
        sums[row + 1] = to
    return sums, to_terms[:to].copy(), to_weights[:to].copy()


@kernel
def encode_rows(
    indptr: Ints, terms: Terms, weights: Floats, to_terms: Terms, to_codes: NDArray[np.uint8], to_scales: Floats
) -> None:
    """Write the terms of positive weight, with codes of 8 bits and the scale of each row."""
    to = 0
    for row in range(len(indptr) - 1):
        most = np.float32(0)
        for at in range(indptr[row], indptr[row + 1]):
            most = max(most, weights[at])
        scale = max(most / STEPS, TINY)
        to_scales[row] = scale
        for at in range(indptr[row], indptr[row + 1]):
            if weights[at] > 0:
                to_terms[to] = terms[at]
                to_codes[to] = min(max(int(np.rint(weights[at] / scale)), 1), 255)
                to += 1


@kernel
def copy_rows(indptr: Ints, terms: Terms, weights: Floats, to_terms: Terms, to_weights: Floats, to_scales: Floats) -> None:
    """Write the terms of positive weight as they are."""
    to = 0
    to_scales[:] = 1
    for at in range(indptr[-1]):
        if weights[at] > 0:
            to_terms[to], to_weights[to] = terms[at], weights[at]
            to += 1


@kernel
def score_row(row: int, query: Floats, indptr: Ints, terms: Terms, codes: Codes, scales: Floats) -> float:
    """Inner product with one row, summed term by term."""
    total = 0.0
    scale = scales[row]
    for at in range(indptr[row], indptr[row + 1]):
        total += np.float64(query[terms[at]]) * np.float64(np.float32(scale * np.float32(codes[at])))
    return float(np.float32(total))


@kernel
def fetch_row(row: int, indptr: Ints, terms: Terms, codes: Codes) -> None:
    """Have a row on its way before it is scored: it lies anywhere in large arrays."""
    for at in range(indptr[row], indptr[row + 1], LINE // terms.itemsize):
        prefetch(terms, at)
    for at in range(indptr[row], indptr[row + 1], LINE // codes.itemsize):
        prefetch(codes, at)


@kernel
def score_rows(
    query_ptr: Ints,
    query_terms: Terms,
    query_weights: Floats,
    rows: Ints,
    first_row: int,
    indptr: Ints,
    terms: Terms,
    codes: Codes,
    scales: Floats,
    query: Floats,
    scores: Floats,
) -> None:
    """The scores (queries, n) of those of the rows (queries, n) that lie here: first_row is the first of them.

    `query`, a weight per term of the vocabulary, is zero on entry and on return.
    """
    for q in range(len(rows)):
        for at in range(query_ptr[q], query_ptr[q + 1]):
            query[query_terms[at]] = query_weights[at]
        for i in range(rows.shape[1]):
            row = rows[q, i] - first_row
            if rows[q, i] >= 0 and row >= 0 and row < len(scales):
                scores[q, i] = score_row(row, query, indptr, terms, codes, scales)
        for at in range(query_ptr[q], query_ptr[q + 1]):
            query[query_terms[at]] = 0
