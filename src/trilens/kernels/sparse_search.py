"""Top-k by inner product over lists and columns: bound every row cheaply, and score the few that can matter.

The query's terms add up what each row can score at most (kernels/sparse_bounds.py). Then rows are scored term by term from the
rows themselves, the most promising first, until no bound is left above the k-th score. So the answer is exact, and a score
never depends on how its row was found. An approximate search reads only the heaviest terms of the query, and scores a fixed
number of rows.
"""

import numpy as np
from numpy.typing import NDArray

from trilens.kernels.columns import BLOCK
from trilens.kernels.compile import kernel
from trilens.kernels.prefetch import prefetch
from trilens.kernels.sparse import fetch_row, score_row
from trilens.kernels.sparse_bounds import MOST_TERMS, ROOM, Arrays, add_bounds, find_terms, heaviest, work_of
from trilens.kernels.topk import offer

GROUP = 32  # rows of which the highest bound is kept
FEW = 32  # values that are kept in order while all are looked at
AHEAD = 3  # rows that are being fetched while one is scored
SLACK = 1 - 1e-6  # sums of floats are rounded: never let that hide a winner

Ints = NDArray[np.int64]
Terms = NDArray[np.int32]
Floats = NDArray[np.float32]
Sums = NDArray[np.uint16]
Rows = NDArray[np.int32]
Mask = NDArray[np.bool_]


@kernel
def highest_sums(sums: Sums) -> Sums:
    """The highest sum of each group: group g has the rows g, g + groups, g + 2 groups …, GROUP of them."""
    groups = len(sums) // GROUP
    best = sums[:groups].copy()
    for i in range(1, GROUP):
        others = sums[i * groups : (i + 1) * groups]
        for group in range(groups):
            best[group] = max(best[group], others[group])
    return best


@kernel
def nth_highest(values: Sums, n: int) -> int:
    """The n-th highest value; 0 if there are fewer."""
    if n > len(values):
        return 0
    if n > FEW:
        return int(np.partition(values, len(values) - n)[len(values) - n])
    best = np.zeros(n, np.uint16)  # ascending
    for value in values:
        if value > best[0]:
            at = 1
            while at < n and best[at] < value:
                best[at - 1] = best[at]
                at += 1
            best[at - 1] = value
    return int(best[0])


@kernel
def take_rows(sums: Sums, best: Sums, low: int, high: int, rows: Rows) -> int:
    """Put the rows whose sum is at least `low` and below `high` into `rows`; returns how many."""
    size = 0
    for group in range(len(best)):
        if best[group] >= low:
            for row in range(group, len(sums), len(best)):
                rows[size] = row
                size += (sums[row] >= low) & (sums[row] < high)
    return size


@kernel
def keep_highest(rows: Rows, size: int, n: int, sums: Sums) -> int:
    """Keep the n rows with the highest sums, of equal ones the first; returns how many are left."""
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
    rows: Rows, sums: Sums, unit: float, query: Floats, part: Arrays, first_row: int, scores: Floats, heap: Ints
) -> None:
    """Score the taken rows whose bound is not below what the heap asks for, and offer them."""
    indptr, terms, codes, scales = part.indptr, part.terms, part.codes, part.scales
    for i in range(-2 * AHEAD, len(rows)):  # first where a row lies is fetched, then the row, then it is scored
        if i + 2 * AHEAD < len(rows):
            prefetch(indptr, rows[i + 2 * AHEAD])
            prefetch(scales, rows[i + 2 * AHEAD])
        if 0 <= i + AHEAD < len(rows):
            fetch_row(rows[i + AHEAD], indptr, terms, codes)
        if i < 0:
            continue
        # Said so that it holds for a heap that is not full (-inf), and for a unit of 0, which means that sums are no bounds.
        if not sums[rows[i]] < scores[0] * unit * SLACK:
            score = score_row(rows[i], query, indptr, terms, codes, scales)
            if score > 0:
                offer(scores, heap, score, first_row + rows[i])


@kernel
def offer_allowed(
    allowed: Mask, filtered: bool, query: Floats, part: Arrays, first_row: int, scores: Floats, heap: Ints
) -> None:
    """Score every allowed row."""
    indptr, terms, codes, scales = part.indptr, part.terms, part.codes, part.scales
    for row in range(len(scales)):
        if not filtered or allowed[row]:
            score = score_row(row, query, indptr, terms, codes, scales)
            if score > 0:
                offer(scores, heap, score, first_row + row)


@kernel
def search_one(
    terms: Terms,
    weights: Floats,
    read: int,
    candidates: int,
    places: Terms,
    part: Arrays,
    allowed: Mask,
    filtered: bool,
    count: int,
    first_row: int,
    query: Floats,
    sums: Sums,
    rows: Rows,
    scores: Floats,
    heap: Ints,
) -> bool:
    """Offer rows to the heap of one query; False if an approximate search met too few of them. See `search`."""
    n = len(terms)
    lists, columns = np.empty(n, np.int64), np.empty(n, np.int64)
    list_gains, gains = np.empty(n, np.float64), np.empty(n, np.float64)
    found_lists, found_columns = find_terms(
        terms, weights, heaviest(weights, read), places, part, lists, list_gains, columns, gains
    )
    lists, list_gains = lists[:found_lists], list_gains[:found_lists]
    columns, gains = columns[:found_columns], gains[:found_columns]
    work = work_of(lists, columns, len(sums), part)
    if work == 0:
        return read == 0
    if found_lists + found_columns > MOST_TERMS or count * (len(part.terms) // len(part.scales)) < work:
        offer_allowed(allowed, filtered, query, part, first_row, scores, heap)
        return True
    unit = add_bounds(lists, list_gains, columns, gains, part, sums)
    if filtered:
        for row in range(len(allowed)):
            sums[row] *= allowed[row]
    best = highest_sums(sums)
    wanted = candidates if read else len(scores)
    low = max(1, nth_highest(best if 2 * wanted < len(best) else sums, wanted))
    size = take_rows(sums, best, low, ROOM + 1, rows)
    if read:
        size = keep_highest(rows, size, wanted, sums)
        if size < min(wanted, len(scores)):
            return False
        offer_taken(rows[:size], sums, 0.0, query, part, first_row, scores, heap)
        return True
    offer_taken(rows[:size], sums, unit, query, part, first_row, scores, heap)
    limit = max(1, int(max(scores[0], np.float32(0)) * unit * SLACK))
    if limit < low:
        size = take_rows(sums, best, limit, low, rows)
        offer_taken(rows[:size], sums, unit, query, part, first_row, scores, heap)
    return True


@kernel
def search(
    query_ptr: Ints,
    query_terms: Terms,
    query_weights: Floats,
    read: int,
    candidates: int,
    places: Terms,
    part: Arrays,
    allowed: Mask,
    filtered: bool,
    first_row: int,
    query: Floats,
    heap_scores: Floats,
    heap_rows: Ints,
) -> None:
    """Offer the rows of one segment to the heaps of a batch of queries.

    Query q has the terms and weights query_ptr[q]:query_ptr[q + 1]. `read` is the number of its terms that an
    approximate search reads before it scores `candidates` rows; 0 for an exact one. `places` tells where each term of the
    vocabulary is. `allowed` is per row, and counts only if `filtered`. Rows are offered as first_row + row. `query`, a weight
    per term of the vocabulary, is zero on entry and on return.
    """
    count = len(part.indptr) - 1
    sums = np.empty((count + BLOCK - 1) // BLOCK * BLOCK, np.uint16)
    rows = np.empty(len(sums) + 1, np.int32)
    if filtered:
        count = allowed.sum()
    for q in range(len(query_ptr) - 1):
        terms, weights = query_terms[query_ptr[q] : query_ptr[q + 1]], query_weights[query_ptr[q] : query_ptr[q + 1]]
        if len(terms) == 0 or count == 0:
            continue
        for i in range(len(terms)):
            query[terms[i]] = weights[i]
        fewer = read if read < len(terms) else 0
        for thorough in (fewer, 0):
            if search_one(
                terms,
                weights,
                thorough,
                candidates,
                places,
                part,
                allowed,
                filtered,
                count,
                first_row,
                query,
                sums,
                rows,
                heap_scores[q],
                heap_rows[q],
            ):
                break
        for i in range(len(terms)):
            query[terms[i]] = 0
