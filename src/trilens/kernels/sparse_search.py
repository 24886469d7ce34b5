"""Top-k by inner product over lists and columns: bound all rows cheaply, then score the most promising ones exactly.

The query terms give an upper bound on the score of each row (kernels/sparse_bounds.py). Rows are then scored from their own
terms, highest bounds first, until no bound exceeds the k-th score. The result is exact, and a score does not depend on how
its row was found. An approximate search reads only the heaviest query terms and scores a fixed number of rows.
"""

from typing import NamedTuple

import numpy as np

from trilens.kernels.array_types import Float32s, Int32s, Int64s, Mask, UInt16s
from trilens.kernels.columns import BLOCK
from trilens.kernels.compile import kernel
from trilens.kernels.prefetch import prefetch
from trilens.kernels.row_filter import RowFilter
from trilens.kernels.sparse import fetch_row, score_row
from trilens.kernels.sparse_bounds import MOST_TERMS, ROOM, SparseArrays, add_bounds, find_terms, heaviest, work_of
from trilens.kernels.topk import offer

GROUP = 32  # rows that share one highest bound
FEW = 32  # up to this n, the n highest values are kept sorted during one scan
AHEAD = 3  # rows that are prefetched while one is scored
SLACK = 1 - 1e-6  # rounding errors of float sums must not exclude a row


class SearchBudget(NamedTuple):
    """How many query terms an approximate search reads, and how many rows it scores; no terms: exact search."""

    terms: int
    candidates: int


class BoundBuffers(NamedTuple):
    """Buffers that all queries of a batch share: the bound of each row, and a list of rows."""

    sums: UInt16s
    rows: Int32s


@kernel
def highest_sums(sums: UInt16s) -> UInt16s:
    """The highest sum of each group of GROUP rows; group g has the rows g, g + groups, g + 2 groups …"""
    groups = len(sums) // GROUP
    best = sums[:groups].copy()
    for i in range(1, GROUP):
        others = sums[i * groups : (i + 1) * groups]
        for group in range(groups):
            best[group] = max(best[group], others[group])
    return best


@kernel
def nth_highest(values: UInt16s, n: int) -> int:
    """The n-th highest value; 0 if there are fewer."""
    if n > len(values):
        return 0
    if n > FEW:
        return int(np.partition(values, len(values) - n)[len(values) - n])
    best = np.zeros(n, np.uint16)  # ascending
    for value in values:
        if value > best[0]:
            rank = 1
            while rank < n and best[rank] < value:
                best[rank - 1] = best[rank]
                rank += 1
            best[rank - 1] = value
    return int(best[0])


@kernel
def take_rows(sums: UInt16s, best: UInt16s, low: int, high: int, rows: Int32s) -> int:
    """Put the rows with low <= sum < high into `rows`; returns their number. `best` are the highest sums of the groups."""
    size = 0
    for group in range(len(best)):
        if best[group] >= low:
            for row in range(group, len(sums), len(best)):
                rows[size] = row
                size += (sums[row] >= low) & (sums[row] < high)
    return size


@kernel
def keep_highest(rows: Int32s, size: int, n: int, sums: UInt16s) -> int:
    """Keep the n rows with the highest sums, the first of equal ones; returns the number of rows kept."""
    if size <= n:
        return size
    values = np.empty(size, np.uint16)
    for i in range(size):
        values[i] = sums[rows[i]]
    limit = nth_highest(values, n)
    equal = n
    for i in range(size):
        equal -= values[i] > limit
    kept = 0
    for i in range(size):
        if values[i] > limit or (values[i] == limit and equal > 0):
            equal -= values[i] == limit
            rows[kept] = rows[i]
            kept += 1
    return kept


@kernel
def offer_taken(
    rows: Int32s,
    sums: UInt16s,
    unit: float,
    query: Float32s,
    segment: SparseArrays,
    first_row: int,
    heap_scores: Float32s,
    heap_rows: Int64s,
) -> None:
    """Score those rows whose bound reaches the lowest score of the heap, and offer them."""
    indptr, terms, codes, scales = segment.indptr, segment.terms, segment.codes, segment.scales
    for i in range(-2 * AHEAD, len(rows)):  # prefetch the offsets of a row, then its terms, then score it
        if i + 2 * AHEAD < len(rows):
            prefetch(indptr, rows[i + 2 * AHEAD])
            prefetch(scales, rows[i + 2 * AHEAD])
        if 0 <= i + AHEAD < len(rows):
            fetch_row(rows[i + AHEAD], indptr, terms, codes)
        if i < 0:
            continue
        # The negation also accepts a heap that is not full (-inf), and a unit of 0, with which sums are no bounds.
        if not sums[rows[i]] < heap_scores[0] * unit * SLACK:
            score = score_row(rows[i], query, indptr, terms, codes, scales)
            if score > 0 and score < np.inf:
                offer(heap_scores, heap_rows, score, first_row + rows[i])


@kernel
def offer_allowed(
    row_filter: RowFilter,
    query: Float32s,
    segment: SparseArrays,
    first_row: int,
    heap_scores: Float32s,
    heap_rows: Int64s,
) -> None:
    """Score and offer all allowed rows."""
    indptr, terms, codes, scales = segment.indptr, segment.terms, segment.codes, segment.scales
    allowed, filtered = row_filter.allowed, row_filter.active
    for row in range(len(scales)):
        if not filtered or allowed[row]:
            score = score_row(row, query, indptr, terms, codes, scales)
            if score > 0 and score < np.inf:
                offer(heap_scores, heap_rows, score, first_row + row)


@kernel
def search_one(
    terms: Int32s,
    weights: Float32s,
    budget: SearchBudget,
    places: Int32s,
    segment: SparseArrays,
    row_filter: RowFilter,
    count: int,
    first_row: int,
    query: Float32s,
    buffers: BoundBuffers,
    heap_scores: Float32s,
    heap_rows: Int64s,
) -> bool:
    """Offer rows to the heap of one query; False if an approximate search found too few. `count` rows are allowed."""
    sums, rows, approximate = buffers.sums, buffers.rows, budget.terms > 0
    lists = find_terms(terms, weights, heaviest(weights, budget.terms), places, segment)
    work = work_of(lists, len(sums), segment)
    if work == 0:
        return not approximate
    many = len(lists.lists) + len(lists.columns) > MOST_TERMS
    if many or count * (len(segment.terms) // len(segment.scales)) < work:
        offer_allowed(row_filter, query, segment, first_row, heap_scores, heap_rows)
        return True
    unit = add_bounds(lists, segment, sums)
    sums[len(segment.scales) :] = 0  # only damaged lists and columns give these a bound
    if row_filter.active:
        allowed = row_filter.allowed
        for row in range(len(allowed)):
            sums[row] *= allowed[row]
    best = highest_sums(sums)
    wanted = budget.candidates if approximate else len(heap_scores)
    low = max(1, nth_highest(best if 2 * wanted < len(best) else sums, wanted))
    size = take_rows(sums, best, low, ROOM + 1, rows)
    if approximate:
        size = keep_highest(rows, size, wanted, sums)
        if size < min(wanted, len(heap_scores)):
            return False
        offer_taken(rows[:size], sums, 0.0, query, segment, first_row, heap_scores, heap_rows)
        return True
    offer_taken(rows[:size], sums, unit, query, segment, first_row, heap_scores, heap_rows)
    limit = max(1, int(max(heap_scores[0], np.float32(0)) * unit * SLACK))
    if limit < low:
        size = take_rows(sums, best, limit, low, rows)
        offer_taken(rows[:size], sums, unit, query, segment, first_row, heap_scores, heap_rows)
    return True


@kernel
def search(
    query_ptr: Int64s,
    query_terms: Int32s,
    query_weights: Float32s,
    read: int,
    candidates: int,
    places: Int32s,
    segment: SparseArrays,
    allowed: Mask,
    filtered: bool,
    first_row: int,
    query: Float32s,
    heap_scores: Float32s,
    heap_rows: Int64s,
) -> None:
    """Offer the rows of one segment to the heaps of a batch of queries.

    Query q has the terms and weights query_ptr[q]:query_ptr[q + 1]. `read` and `candidates` are those of `SearchBudget`.
    `places` gives the place of each term of the vocabulary. `allowed` is per row, and used only if `filtered`. Rows are
    offered as first_row + row. `query` is a buffer for a dense query, zero on entry and on return.

    Apart from the segment, arguments are plain: named tuples take longer to dispatch.
    """
    count = len(segment.indptr) - 1
    row_filter, size = RowFilter(allowed, filtered), (count + BLOCK - 1) // BLOCK * BLOCK
    buffers = BoundBuffers(np.empty(size, np.uint16), np.empty(size + 1, np.int32))
    if filtered:
        count = allowed.sum()
    for q in range(len(query_ptr) - 1):
        terms, weights = query_terms[query_ptr[q] : query_ptr[q + 1]], query_weights[query_ptr[q] : query_ptr[q + 1]]
        if len(terms) == 0 or count == 0:
            continue
        for i in range(len(terms)):
            query[terms[i]] = weights[i]
        for terms_read in (read if read < len(terms) else 0, 0):  # an exact search if the approximate one finds too few
            budget = SearchBudget(terms_read, candidates)
            scores, rows = heap_scores[q], heap_rows[q]
            if search_one(terms, weights, budget, places, segment, row_filter, count, first_row, query, buffers, scores, rows):
                break
        for i in range(len(terms)):
            query[terms[i]] = 0
