"""Top-k by inner product over lists and columns: bound every row cheaply, and score the few that can matter.

The query's terms add up, in whole numbers of 16 bits, at least what each row scores: columns 64 rows at a time, lists one by
one. Then the rows are scored term by term from the rows themselves, the most promising first, until no bound is left above
the k-th score. So the answer is exact, and a score never depends on how its row was found. An approximate search reads only the
heaviest terms of the query, and scores a fixed number of rows.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trilens.kernels.columns import BLOCK_BYTES, LEVELS, TOGETHER, add_columns
from trilens.kernels.compile import kernel
from trilens.kernels.sparse import fetch_row, score_row
from trilens.kernels.sparse_lists import SHARES, WINDOW
from trilens.kernels.topk import offer

GROUP = 32  # rows of which the highest bound is kept
FEW = 32  # values that are kept in order while all are looked at
AHEAD = 2  # rows that are being fetched while one is scored
MOST_TERMS = 4096  # of a query: more would leave too few steps for each in 16 bits
ROOM = 65535
ROUNDING, TERM_ROUNDING = 1.04, 4  # what rounding up adds to a sum at most: a share of it, and steps per term
SLACK = 1 - 1e-6  # sums of floats are rounded too: never let that hide a winner
NOWHERE, FIRST_COLUMN = -1, -2  # places of terms: lists count from 0 upwards, columns from -2 downwards
COLUMN_ROWS = 32  # adding this many rows of a column costs as much as adding one posting of a list

Ints = NDArray[np.int64]
Terms = NDArray[np.int32]
Floats = NDArray[np.float32]
Gains = NDArray[np.float64]
Bytes = NDArray[np.uint8]
Sums = NDArray[np.uint16]
Rows = NDArray[np.int32]
Codes = NDArray[Any]
Mask = NDArray[np.bool_]


class Arrays(NamedTuple):
    """What one segment holds: rows (kernels/sparse.py), lists and columns (kernels/sparse_lists.py)."""

    indptr: Ints
    terms: Terms
    codes: Codes
    scales: Floats
    list_terms: Terms
    list_most: Floats
    list_ptr: Ints
    list_rows: NDArray[np.uint16]
    list_shares: Bytes
    column_terms: Terms
    column_most: Floats
    column_tops: Bytes
    columns: Bytes


@kernel
def heaviest(weights: Floats, n: int) -> Mask:
    """Which n weights are the highest, of equal ones the first; all, where n is 0."""
    if n == 0 or n >= len(weights):
        return np.ones(len(weights), np.bool_)
    limit = np.partition(weights, len(weights) - n)[len(weights) - n]
    chosen: Mask = weights > limit
    equal = n - chosen.sum()
    for i in range(len(weights)):
        if weights[i] == limit and equal > 0:
            chosen[i] = True
            equal -= 1
    return chosen


@kernel
def find_terms(
    terms: Terms,
    weights: Floats,
    chosen: Mask,
    places: Terms,
    part: Arrays,
    lists: Ints,
    list_gains: Gains,
    columns: Ints,
    gains: Gains,
) -> tuple[int, int]:
    """The lists and columns of the chosen terms, and the most that each can give; returns how many of each there are."""
    list_most, column_most = part.list_most, part.column_most
    found_lists, found_columns = 0, 0
    for i in range(len(terms)):
        place = places[terms[i]]
        if place == NOWHERE or not chosen[i] or weights[i] == 0:
            continue
        if place >= 0:
            lists[found_lists], list_gains[found_lists] = place, np.float64(weights[i]) * list_most[place]
            found_lists += 1
        else:
            column = FIRST_COLUMN - place
            columns[found_columns], gains[found_columns] = column, np.float64(weights[i]) * column_most[column]
            found_columns += 1
    return found_lists, found_columns


@kernel
def fill_tables(columns: Ints, gains: Gains, tops: Bytes, tables: Bytes, shifts: Ints) -> None:
    """What each level of each column gives, rounded up, for TOGETHER columns in steps that keep their sum in a byte."""
    tables[:] = 0
    for first in range(0, len(columns), TOGETHER):
        shift, total = -1, 256.0
        while total > 255:
            shift, total = shift + 1, 0.0
            for i in range(first, min(first + TOGETHER, len(columns))):
                total += np.ceil(gains[i] / (1 << shift))
        shifts[first // TOGETHER] = shift
        for i in range(first, min(first + TOGETHER, len(columns))):
            unit = gains[i] / SHARES / (1 << shift)
            for level in range(1, LEVELS):
                tables[i * LEVELS + level] = np.uint8(np.ceil(unit * tops[columns[i], level]))


@kernel
def add_columns_of(window: int, found: Ints, tables: Bytes, shifts: Ints, columns: Bytes, width: int, sums: Sums) -> None:
    """Add to the sums of one window what the columns give its rows; each column is `width` bytes wide."""
    first_byte = window * WINDOW // 2
    blocks = min(WINDOW // 2, width - first_byte) // BLOCK_BYTES
    starts = np.empty(TOGETHER, np.int64)
    for first in range(0, len(found), TOGETHER):
        for c in range(TOGETHER):  # where there are fewer, the last one again, with a table of zeros
            starts[c] = found[min(first + c, len(found) - 1)] * width + first_byte
        table = tables[first * LEVELS : (first + TOGETHER) * LEVELS]
        add_columns(sums, window * WINDOW, columns, starts, table, shifts[first // TOGETHER], blocks)


@kernel
def add_list(rows: NDArray[np.uint16], shares: Bytes, gain: float, table: Sums, sums: Sums) -> None:
    """Add to the sums of one window what a list gives its rows; the highest share gives `gain`."""
    unit = np.float32(gain / SHARES)
    for share in range(SHARES + 1):  # a little over 1, so that a rounded product is not rounded down to too little
        table[share] = np.uint16(unit * np.float32(share) + np.float32(1.01))
    for at in range(len(rows)):
        sums[rows[at]] += table[shares[at]]


@kernel
def add_lists_of(window: int, found: Ints, gains: Gains, part: Arrays, sums: Sums) -> None:
    """Add to the sums of one window what the lists give its rows."""
    list_ptr, rows, shares = part.list_ptr, part.list_rows, part.list_shares
    count, here = len(part.list_terms), sums[window * WINDOW :]
    table = np.empty(SHARES + 1, np.uint16)
    for i in range(len(found)):
        first, last = list_ptr[window * count + found[i]], list_ptr[window * count + found[i] + 1]
        if last > first:
            add_list(rows[first:last], shares[first:last], gains[i], table, here)


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
    for i in range(len(rows)):
        if i == 0:
            for ahead in range(min(AHEAD, len(rows))):
                fetch_row(rows[ahead], indptr, terms, codes)
        if i + AHEAD < len(rows):
            fetch_row(rows[i + AHEAD], indptr, terms, codes)
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
    work = found_columns * (len(sums) // COLUMN_ROWS)
    windows = (len(sums) + WINDOW - 1) // WINDOW
    list_ptr, count_lists = part.list_ptr, len(part.list_terms)
    for i in range(found_lists):
        for window in range(windows):
            cell = window * count_lists + lists[i]
            work += list_ptr[cell + 1] - list_ptr[cell]
    if work == 0:
        return read == 0
    if found_lists + found_columns > MOST_TERMS or count * (len(part.terms) // (len(part.indptr) - 1)) < work:
        offer_allowed(allowed, filtered, query, part, first_row, scores, heap)
        return True
    unit = (ROOM / ROUNDING - TERM_ROUNDING * (n + TOGETHER)) / (list_gains.sum() + gains.sum())
    list_gains *= unit
    gains *= unit
    groups = (found_columns + TOGETHER - 1) // TOGETHER
    tables, shifts = np.empty(groups * TOGETHER * LEVELS, np.uint8), np.empty(groups, np.int64)
    fill_tables(columns, gains, part.column_tops, tables, shifts)
    sums[:] = 0
    width = len(part.columns) // max(1, len(part.column_terms))
    for window in range(windows):
        add_columns_of(window, columns, tables, shifts, part.columns, width, sums)
        add_lists_of(window, lists, list_gains, part, sums)
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
    approximate search reads before it scores `candidates` rows; 0 for an exact one. `allowed` is per row, and counts only if
    `filtered`. Rows are offered as first_row + row. `query`, a weight per term of the vocabulary, is zero before and after.
    `places` tells where each term of the vocabulary is.
    """
    count = len(part.indptr) - 1
    sums = np.empty((count + 2 * BLOCK_BYTES - 1) // (2 * BLOCK_BYTES) * (2 * BLOCK_BYTES), np.uint16)
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
