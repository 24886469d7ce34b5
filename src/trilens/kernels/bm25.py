"""BM25 top-k search over windowed posting lists with dynamic pruning.

Block-max pruning (Mallia et al. 2024) with MaxScore (Turtle & Flood 1995) inside each window. The cells of the query terms give
an upper bound on the score of each block of rows. The windows with the highest bounds are searched first, which raises the k-th
score early. The other windows, and the blocks inside them, are skipped if their bound does not reach the k-th score. Terms that
cannot lift a row above the k-th score by themselves are only looked up for rows that other terms brought up. Bounds decide only
which rows are scored. Scores are always summed in the order of the query terms, so that equal documents get equal scores.
"""

from typing import NamedTuple

import numpy as np

from trilens.kernels.array_types import Float32s, Float64s, Int32s, Int64s, Mask, UInt16s, UInt32s, UInt64s
from trilens.kernels.compile import inline_kernel, kernel
from trilens.kernels.postings import (
    BLOCK,
    BLOCKS,
    STEPS,
    WINDOW,
    PostingLists,
    cell_best,
    cell_size,
    cell_start,
    cell_window,
    is_inside,
)
from trilens.kernels.prefetch import prefetch
from trilens.kernels.row_filter import RowFilter
from trilens.kernels.topk import offer

SEEDS = 32  # windows searched first
SCAN = 16  # scanning this many postings costs as much as one binary search
AHEAD = 8  # windows whose postings are prefetched while one is searched


class WeightedTerms(NamedTuple):
    """The terms of one query: their weights, and their order from the lowest to the highest possible contribution.

    `slack` is a factor that makes up for rounding errors of summed bounds.
    """

    weights: Float32s
    order: Int64s
    slack: np.float32


class QueryBounds(NamedTuple):
    """Upper bounds of one query over all windows, filled by `bound_windows`.

    blocks   (windows, BLOCKS) bound on the score of a row in each block
    windows  (windows,) highest bound of the blocks of each window
    cells    (terms, windows) cell of each term in each window, 0 if it has none
    limits   (terms, 256) highest contribution of each term by impact
    highest  (terms,) highest contribution of each term in any window
    """

    blocks: Float32s
    windows: Float32s
    cells: Int64s
    limits: Float32s
    highest: Float32s


class WindowBuffers(NamedTuple):
    """Buffers that `search_window` reuses; `sums` (WINDOW,) is zero between calls. Damaged postings are listed repeatedly."""

    terms: Int64s
    caps: Float32s
    live: Float32s
    sums: Float32s
    touched: Int32s


@inline_kernel
def add_bests(bests: np.uint64, unit: np.float32, bounds: Float32s) -> None:
    """Add `unit` times each of the eight bytes to the bounds of the blocks of a window.

    All sums precede all writes, so that the compiler can vectorise the eight additions.
    """
    sum0 = bounds[0] + unit * np.float32(np.int32(bests & 255))
    sum1 = bounds[1] + unit * np.float32(np.int32((bests >> 8) & 255))
    sum2 = bounds[2] + unit * np.float32(np.int32((bests >> 16) & 255))
    sum3 = bounds[3] + unit * np.float32(np.int32((bests >> 24) & 255))
    sum4 = bounds[4] + unit * np.float32(np.int32((bests >> 32) & 255))
    sum5 = bounds[5] + unit * np.float32(np.int32((bests >> 40) & 255))
    sum6 = bounds[6] + unit * np.float32(np.int32((bests >> 48) & 255))
    sum7 = bounds[7] + unit * np.float32(np.int32((bests >> 56) & 255))
    bounds[0], bounds[1], bounds[2], bounds[3] = sum0, sum1, sum2, sum3
    bounds[4], bounds[5], bounds[6], bounds[7] = sum4, sum5, sum6, sum7


@kernel
def bound_windows(terms: Int64s, weights: Float32s, stretch: float, lists: PostingLists, bounds: QueryBounds) -> None:
    """Fill the bounds of one query; `blocks` and `cells` are zero on entry."""
    cell_ptr, cells, bests = lists.cell_ptr, lists.cells, lists.bests
    rows, postings = WINDOW * len(bounds.windows), len(lists.postings)
    block_bounds, window_bounds, query_cells, limits = bounds.blocks, bounds.windows, bounds.cells, bounds.limits
    highest = bounds.highest
    for t in range(len(terms)):
        # Impacts are exact for the average length at build time; `stretch` keeps them valid bounds for a larger one.
        for impact in range(256):
            best = np.float32(impact) / STEPS
            limits[t, impact] = weights[t] * best * stretch / (1 + best * (stretch - 1))
        highest_impact = 0
        unit = np.float32(weights[t] * stretch / STEPS)
        for position in range(cell_ptr[terms[t]], cell_ptr[terms[t] + 1]):
            if not is_inside(cells[position], rows, postings):
                continue
            window = cell_window(cells[position])
            query_cells[t, window] = cells[position]
            highest_impact = max(highest_impact, cell_best(cells[position]))
            add_bests(bests[position], unit, block_bounds[window])
        highest[t] = limits[t, highest_impact]
    for window in range(len(window_bounds)):
        window_bounds[window] = 0
        for block in range(BLOCKS):
            window_bounds[window] = max(window_bounds[window], block_bounds[window, block])


@inline_kernel
def find_posting(offset: int, cell: int, postings: UInt16s) -> int:
    """The position of the posting with this row offset in a cell; -1 if there is none."""
    low, n = cell_start(cell), cell_size(cell)
    while n > 1:  # binary search without data-dependent branches, which would be mispredicted
        half = n >> 1
        low += half * ((postings[low + half - 1] >> 8) < offset)
        n -= half
    return low if (postings[low] >> 8) == offset else -1


@kernel
def posting_of(term: int, row: int, cell_ptr: Int64s, cells: Int64s, postings: UInt16s) -> int:
    """The position of the posting of a term in a row; -1 if the row does not contain it or the term is unknown (-1)."""
    if term < 0:
        return -1
    window = row // WINDOW
    low, last = cell_ptr[term], cell_ptr[term + 1]
    high = last  # cells ascend by window
    while low < high:
        middle = (low + high) // 2
        if cell_window(cells[middle]) < window:
            low = middle + 1
        else:
            high = middle
    if low < last and cell_window(cells[low]) == window and is_inside(cells[low], row + 1, len(postings)):
        return int(find_posting(row - window * WINDOW, cells[low], postings))
    return -1


@kernel
def count_in_rows(
    terms: Int64s,
    rows: Int64s,
    cell_ptr: Int64s,
    cells: Int64s,
    postings: UInt16s,
    counts: UInt32s,
    row_counts: Float64s,
) -> None:
    """Write the count of each term in each row into `row_counts` (terms, rows); an unknown term is -1."""
    for t in range(len(terms)):
        for r in range(len(rows)):
            position = posting_of(terms[t], rows[r], cell_ptr, cells, postings)
            row_counts[t, r] = counts[position] if position >= 0 else 0


@kernel
def score_rows(
    query_ptr: Int64s,
    terms: Int64s,
    weights: Float32s,
    rows: Int64s,
    first_row: int,
    cell_ptr: Int64s,
    cells: Int64s,
    postings: UInt16s,
    counts: UInt32s,
    norms: Float32s,
    scores: Float32s,
) -> None:
    """Write the scores of those `rows` (queries, n) that belong to this segment; an unknown term is -1."""
    for query in range(len(rows)):
        for i in range(rows.shape[1]):
            row = rows[query, i] - first_row
            if row < 0 or row >= len(norms):
                continue
            total = 0.0
            for t in range(query_ptr[query], query_ptr[query + 1]):
                position = posting_of(terms[t], row, cell_ptr, cells, postings)
                if position >= 0:
                    count = np.float64(counts[position])
                    total += np.float64(weights[t]) * (count / (count + np.float64(norms[row])))
            scores[query, i] = np.float32(total)


@inline_kernel
def keep_possible(
    count: int, rest: np.float32, threshold: np.float32, slack: np.float32, sums: Float32s, touched: Int32s
) -> int:
    """Keep the touched offsets that can still exceed the threshold with `rest` more; zero the sums of the others."""
    kept = 0
    for c in range(count):
        offset = touched[c]
        possible = (sums[offset] + rest) * slack > threshold
        touched[kept] = offset
        kept += possible
        sums[offset] *= possible
    return kept


@kernel
def search_window(
    window: int,
    query: WeightedTerms,
    bounds: QueryBounds,
    lists: PostingLists,
    norms: Float32s,
    row_filter: RowFilter,
    first_row: int,
    buffers: WindowBuffers,
    heap_scores: Float32s,
    heap_rows: Int64s,
) -> None:
    """Offer all rows of one window that can enter the heap."""
    weights, slack = query.weights, query.slack
    query_cells, limits, block_bounds = bounds.cells, bounds.limits, bounds.blocks[window]
    postings, counts = lists.postings, lists.counts
    allowed, filtered = row_filter.allowed, row_filter.active
    here, caps, live, sums, touched = buffers.terms, buffers.caps, buffers.live, buffers.sums, buffers.touched
    for block in range(BLOCKS):
        live[block] = block_bounds[block] * slack > heap_scores[0]
    # `here` lists the terms of this window, weakest first; `caps` has the highest contribution of each.
    n = 0
    weak, below = 0, np.float32(0)
    for t in query.order:
        if query_cells[t, window] != 0:
            here[n] = t
            caps[n] = limits[t, cell_best(query_cells[t, window])]
            if weak == n and (below + caps[n]) * slack <= heap_scores[0]:
                below += caps[n]
                weak += 1
            n += 1
    window_row = window * WINDOW
    count = 0
    for i in range(weak, n):
        t = here[i]
        cell = query_cells[t, window]
        for position in range(cell_start(cell), cell_start(cell) + cell_size(cell)):
            offset, impact = postings[position] >> 8, postings[position] & 255
            possible = live[offset // BLOCK]
            touched[count] = offset
            count += (possible > 0) & (sums[offset] == 0)
            sums[offset] += limits[t, impact] * possible
    count = keep_possible(count, below, heap_scores[0], slack, sums, touched)
    for i in range(weak - 1, -1, -1):
        if count == 0:
            return
        t = here[i]
        cell = query_cells[t, window]
        if cell_size(cell) < SCAN * count:
            for position in range(cell_start(cell), cell_start(cell) + cell_size(cell)):
                offset, impact = postings[position] >> 8, postings[position] & 255
                sums[offset] += limits[t, impact] * (sums[offset] > 0)
        else:
            for c in range(count):
                position = find_posting(touched[c], cell, postings)
                if position >= 0:
                    sums[touched[c]] += limits[t, postings[position] & 255]
        below = max(below - caps[i], np.float32(0))
        count = keep_possible(count, below, heap_scores[0], slack, sums, touched)
    for c in range(count):
        offset = touched[c]
        possible = sums[offset]
        sums[offset] = 0
        inside = window_row + offset < len(norms)  # not so for a damaged posting in the last window
        if not inside or possible * slack <= heap_scores[0] or (filtered and not allowed[window_row + offset]):
            continue
        total = 0.0
        norm = np.float64(norms[window_row + offset])
        for t in range(len(weights)):
            if query_cells[t, window] != 0:
                position = find_posting(offset, query_cells[t, window], postings)
                if position >= 0:
                    total += np.float64(weights[t]) * counts[position] / (counts[position] + norm)
        offer(heap_scores, heap_rows, float(np.float32(total)), first_row + window_row + offset)


@inline_kernel
def fetch_window(window: int, terms: int, query_cells: Int64s, postings: UInt16s) -> None:
    """Prefetch the postings of a window: their positions in the array are scattered."""
    for t in range(terms):
        if query_cells[t, window] != 0:
            prefetch(postings, cell_start(query_cells[t, window]))


@kernel
def take_highest(bounds: Float32s, queue: Int64s) -> int:
    """Put the (at most SEEDS) windows with the highest bounds into the queue, best first, and zero their bounds."""
    values = np.zeros(SEEDS, np.float32)
    size = 0
    for window in range(len(bounds)):
        if bounds[window] > values[SEEDS - 1]:
            rank = SEEDS - 1
            while rank > 0 and values[rank - 1] < bounds[window]:
                values[rank], queue[rank] = values[rank - 1], queue[rank - 1]
                rank -= 1
            values[rank], queue[rank] = bounds[window], window
            size = min(size + 1, SEEDS)
    for i in range(size):
        bounds[queue[i]] = 0
    return size


@kernel
def take_possible(bounds: Float32s, threshold: float, slack: np.float32, queue: Int64s) -> int:
    """Put the windows whose bound exceeds the threshold into the queue."""
    size = 0
    for window in range(len(bounds)):
        if bounds[window] > 0 and bounds[window] * slack > threshold:
            queue[size] = window
            size += 1
    return size


@kernel
def search(
    query_ptr: Int64s,
    query_terms: Int64s,
    query_weights: Float32s,
    stretch: float,
    cell_ptr: Int64s,
    cells: Int64s,
    bests: UInt64s,
    postings: UInt16s,
    counts: UInt32s,
    norms: Float32s,
    allowed: Mask,
    filtered: bool,
    first_row: int,
    heap_scores: Float32s,
    heap_rows: Int64s,
) -> None:
    """Offer the rows of one segment to the heaps of a batch of queries.

    Query q has the terms and weights query_ptr[q]:query_ptr[q + 1]; a weight is the IDF times the count in the query. `norms`
    and `allowed` are per row; `allowed` is used only if `filtered`. Rows are offered as first_row + row.

    Arguments are plain arrays: named tuples take longer to dispatch, 5 to 10 % of a search in a small segment.
    """
    lists, row_filter = PostingLists(cell_ptr, cells, bests, postings, counts), RowFilter(allowed, filtered)
    longest = np.max(query_ptr[1:] - query_ptr[:-1])
    windows = (len(norms) + WINDOW - 1) // WINDOW
    bounds = QueryBounds(
        np.empty((windows, BLOCKS), np.float32),
        np.empty(windows, np.float32),
        np.empty((longest, windows), np.int64),
        np.empty((longest, 256), np.float32),
        np.empty(longest, np.float32),
    )
    window_bounds, query_cells = bounds.windows, bounds.cells
    buffers = WindowBuffers(
        np.empty(longest, np.int64),
        np.empty(longest, np.float32),
        np.empty(BLOCKS, np.float32),
        np.zeros(WINDOW, np.float32),
        np.empty(longest * WINDOW + 1, np.int32),
    )
    queue = np.empty(windows + SEEDS, np.int64)
    open_windows = np.zeros(windows, np.bool_)  # windows with an allowed row
    if filtered:
        for row in range(len(norms)):
            open_windows[row // WINDOW] |= allowed[row]
    for query in range(len(query_ptr) - 1):
        terms = query_terms[query_ptr[query] : query_ptr[query + 1]]
        weights = query_weights[query_ptr[query] : query_ptr[query + 1]]
        n = len(terms)
        if n == 0:
            continue
        # The rounding error of a bound grows with the number of summands and must not exclude a row.
        slack = np.float32(1 + 2e-7 * (n + 50))
        scores, rows = heap_scores[query], heap_rows[query]
        bounds.blocks[:] = 0
        query_cells[:n] = 0
        bound_windows(terms, weights, stretch, lists, bounds)
        weighted = WeightedTerms(weights, np.argsort(bounds.highest[:n]), slack)
        if filtered:
            for window in range(windows):
                window_bounds[window] *= open_windows[window]
        for seeding in (True, False):  # the windows with the highest bounds, then all others that can contribute
            size = take_highest(window_bounds, queue) if seeding else take_possible(window_bounds, scores[0], slack, queue)
            for i in range(min(AHEAD, size)):
                fetch_window(queue[i], n, query_cells, postings)
            for i in range(size):
                if i + AHEAD < size:
                    fetch_window(queue[i + AHEAD], n, query_cells, postings)
                window = queue[i]
                if not seeding and window_bounds[window] * slack <= scores[0]:
                    continue
                search_window(window, weighted, bounds, lists, norms, row_filter, first_row, buffers, scores, rows)
