"""BM25 top-k over windowed inverted lists that never looks at rows which cannot enter the top k.

Block-max pruning (Mallia et al. 2024) with MaxScore (Turtle & Flood 1995) inside: first the cells of the query's terms give
each block of rows the most that a row in it could score; the windows with the most promising blocks are searched first, so that
the k-th score is high early; then the others, passing over those that cannot reach it, and inside a window over its blocks that
cannot. The terms that cannot lift a row over the k-th score on their own are only looked up for rows that the other terms
brought up. Bounds decide only who is looked at. The score itself is always summed in the order of the query's terms, so that
equal documents get equal scores.
"""

import numpy as np
from numpy.typing import NDArray

from trilens.kernels.compile import inline_kernel, kernel
from trilens.kernels.postings import BLOCK, BLOCKS, STEPS, WINDOW, cell_best, cell_size, cell_start, cell_window
from trilens.kernels.prefetch import prefetch
from trilens.kernels.topk import offer

SEEDS = 32  # windows searched first
SCAN = 16  # reading through this many postings costs as much as looking one up
AHEAD = 8  # windows whose postings are being fetched while one is searched

Ints = NDArray[np.int64]
Postings = NDArray[np.uint16]
Bests = NDArray[np.uint64]
Counts = NDArray[np.uint32]
Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]


@inline_kernel
def add_bests(bests: np.uint64, unit: np.float32, bounds: Floats) -> None:
    """Add `unit` times each of the eight bytes to the bounds of a window's blocks.

    All sums come before all writes: so the compiler sees that it may compute the eight at once.
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
def bound_windows(
    terms: Ints,
    weights: Floats,
    stretch: float,
    cell_ptr: Ints,
    cells: Ints,
    bests: Bests,
    block_bounds: Floats,
    bounds: Floats,
    found: Ints,
    limits: Floats,
    most: Floats,
) -> None:
    """Add up the most that the terms can give a row, for each block and, the highest of its blocks, for each window.

    Also fills, for each term, its cell in each window (`found`, 0 where it has none), the most it can give by impact
    (`limits`), and the most it can give anywhere (`most`). `block_bounds` (windows, BLOCKS) is zero on entry.
    """
    for t in range(len(terms)):
        # Impacts hold for the average length at build time; `stretch` makes them valid for a larger one.
        for impact in range(256):
            best = np.float32(impact) / STEPS
            limits[t, impact] = weights[t] * best * stretch / (1 + best * (stretch - 1))
        highest = 0
        unit = np.float32(weights[t] * stretch / STEPS)
        for at in range(cell_ptr[terms[t]], cell_ptr[terms[t] + 1]):
            window = cell_window(cells[at])
            found[t, window] = cells[at]
            highest = max(highest, cell_best(cells[at]))
            add_bests(bests[at], unit, block_bounds[window])
        most[t] = limits[t, highest]
    for window in range(len(bounds)):
        bounds[window] = 0
        for block in range(BLOCKS):
            bounds[window] = max(bounds[window], block_bounds[window, block])


@inline_kernel
def find_posting(place: int, cell: int, postings: Postings) -> int:
    """Where in a cell the posting of a place is; -1 if there is none."""
    low, n = cell_start(cell), cell_size(cell)
    while n > 1:  # halving that does not branch on what it reads, so that the processor never guesses wrong
        half = n >> 1
        low += half * ((postings[low + half - 1] >> 8) < place)
        n -= half
    return low if (postings[low] >> 8) == place else -1


@kernel
def posting_of(term: int, row: int, cell_ptr: Ints, cells: Ints, postings: Postings) -> int:
    """Where the posting of a term in a row lies, -1 if there is none (or no such term, which is -1)."""
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
    if low < last and cell_window(cells[low]) == window:
        return int(find_posting(row - window * WINDOW, cells[low], postings))
    return -1


@kernel
def count_in_rows(
    terms: Ints, rows: Ints, cell_ptr: Ints, cells: Ints, postings: Postings, counts: Counts, found: NDArray[np.float64]
) -> None:
    """Write how often each term (-1: one that the lists do not have) stands in each row into `found` (terms, rows)."""
    for t in range(len(terms)):
        for r in range(len(rows)):
            at = posting_of(terms[t], rows[r], cell_ptr, cells, postings)
            found[t, r] = counts[at] if at >= 0 else 0


@kernel
def score_rows(
    query_ptr: Ints,
    terms: Ints,
    weights: NDArray[np.float32],
    rows: Ints,
    first_row: int,
    cell_ptr: Ints,
    cells: Ints,
    postings: Postings,
    counts: Counts,
    norms: Floats,
    scores: Floats,
) -> None:
    """Write the scores of those `rows` (queries, n) that lie in this part, summed term by term; terms as above."""
    for query in range(len(rows)):
        for i in range(rows.shape[1]):
            row = rows[query, i] - first_row
            if row < 0 or row >= len(norms):
                continue
            total = 0.0
            for t in range(query_ptr[query], query_ptr[query + 1]):
                at = posting_of(terms[t], row, cell_ptr, cells, postings)
                if at >= 0:
                    count = np.float64(counts[at])
                    total += np.float64(weights[t]) * (count / (count + np.float64(norms[row])))
            scores[query, i] = np.float32(total)


@inline_kernel
def keep_possible(
    count: int, rest: np.float32, threshold: np.float32, slack: np.float32, sums: Floats, touched: NDArray[np.int32]
) -> int:
    """Keep the touched places that can still beat the threshold with `rest` more; the sums of the others become zero."""
    kept = 0
    for c in range(count):
        place = touched[c]
        possible = (sums[place] + rest) * slack > threshold
        touched[kept] = place
        kept += possible
        sums[place] *= possible
    return kept


@kernel
def search_window(
    window: int,
    slack: np.float32,
    weights: Floats,
    order: Ints,
    block_bounds: Floats,
    found: Ints,
    limits: Floats,
    postings: Postings,
    counts: Counts,
    norms: Floats,
    allowed: Mask,
    filtered: bool,
    first_row: int,
    here: Ints,
    caps: Floats,
    live: Floats,
    sums: Floats,
    touched: NDArray[np.int32],
    heap_scores: Floats,
    heap_rows: Ints,
) -> None:
    """Offer every row of one window that can enter the heap. `sums` (WINDOW,) is zero on entry and on return."""
    for block in range(BLOCKS):
        live[block] = block_bounds[block] * slack > heap_scores[0]
    # The terms that stand in this window, weakest first: their numbers in `here`, the most each can give in `caps`.
    n = 0
    weak, below = 0, np.float32(0)
    for t in order:
        if found[t, window] != 0:
            here[n] = t
            caps[n] = limits[t, cell_best(found[t, window])]
            if weak == n and (below + caps[n]) * slack <= heap_scores[0]:
                below += caps[n]
                weak += 1
            n += 1
    window_row = window * WINDOW
    count = 0
    for i in range(weak, n):
        t = here[i]
        cell = found[t, window]
        for at in range(cell_start(cell), cell_start(cell) + cell_size(cell)):
            place, impact = postings[at] >> 8, postings[at] & 255
            possible = live[place // BLOCK]
            touched[count] = place
            count += (possible > 0) & (sums[place] == 0)
            sums[place] += limits[t, impact] * possible
    count = keep_possible(count, below, heap_scores[0], slack, sums, touched)
    for i in range(weak - 1, -1, -1):
        if count == 0:
            return
        t = here[i]
        cell = found[t, window]
        if cell_size(cell) < SCAN * count:
            for at in range(cell_start(cell), cell_start(cell) + cell_size(cell)):
                place, impact = postings[at] >> 8, postings[at] & 255
                sums[place] += limits[t, impact] * (sums[place] > 0)
        else:
            for c in range(count):
                at = find_posting(touched[c], cell, postings)
                if at >= 0:
                    sums[touched[c]] += limits[t, postings[at] & 255]
        below = max(below - caps[i], np.float32(0))
        count = keep_possible(count, below, heap_scores[0], slack, sums, touched)
    for c in range(count):
        place = touched[c]
        possible = sums[place]
        sums[place] = 0
        if possible * slack <= heap_scores[0] or (filtered and not allowed[window_row + place]):
            continue
        total = 0.0
        norm = np.float64(norms[window_row + place])
        for t in range(len(weights)):
            if found[t, window] != 0:
                at = find_posting(place, found[t, window], postings)
                if at >= 0:
                    total += np.float64(weights[t]) * counts[at] / (counts[at] + norm)
        offer(heap_scores, heap_rows, float(np.float32(total)), first_row + window_row + place)


@inline_kernel
def fetch_window(window: int, terms: int, found: Ints, postings: Postings) -> None:
    """Have the postings of a window on their way before it is searched: they lie anywhere in a large array."""
    for t in range(terms):
        if found[t, window] != 0:
            prefetch(postings, cell_start(found[t, window]))


@kernel
def take_highest(bounds: Floats, queue: Ints) -> int:
    """Put the (at most SEEDS) windows with the highest bounds into the queue, best first; their bounds become zero."""
    values = np.zeros(SEEDS, np.float32)
    size = 0
    for window in range(len(bounds)):
        if bounds[window] > values[SEEDS - 1]:
            at = SEEDS - 1
            while at > 0 and values[at - 1] < bounds[window]:
                values[at], queue[at] = values[at - 1], queue[at - 1]
                at -= 1
            values[at], queue[at] = bounds[window], window
            size = min(size + 1, SEEDS)
    for i in range(size):
        bounds[queue[i]] = 0
    return size


@kernel
def take_possible(bounds: Floats, threshold: float, slack: np.float32, queue: Ints) -> int:
    """Put the windows whose bound is over the threshold into the queue."""
    size = 0
    for window in range(len(bounds)):
        if bounds[window] > 0 and bounds[window] * slack > threshold:
            queue[size] = window
            size += 1
    return size


@kernel
def search(
    query_ptr: Ints,
    query_terms: Ints,
    query_weights: Floats,
    stretch: float,
    cell_ptr: Ints,
    cells: Ints,
    bests: Bests,
    postings: Postings,
    counts: Counts,
    norms: Floats,
    allowed: Mask,
    filtered: bool,
    first_row: int,
    heap_scores: Floats,
    heap_rows: Ints,
) -> None:
    """Offer the rows of one segment to the heaps of a batch of queries.

    Query q has the terms and weights (idf times count in the query) query_ptr[q]:query_ptr[q + 1]. `norms` and `allowed`
    are per row; `allowed` counts only if `filtered`. Rows are offered as first_row + row.
    """
    longest = np.max(query_ptr[1:] - query_ptr[:-1])
    bounds = np.empty((len(norms) + WINDOW - 1) // WINDOW, np.float32)
    block_bounds = np.empty((len(bounds), BLOCKS), np.float32)
    live = np.empty(BLOCKS, np.float32)
    found = np.empty((longest, len(bounds)), np.int64)
    limits = np.empty((longest, 256), np.float32)
    most, caps = np.empty(longest, np.float32), np.empty(longest, np.float32)
    here = np.empty(longest, np.int64)
    sums = np.zeros(WINDOW, np.float32)
    touched = np.empty(WINDOW + 1, np.int32)
    queue = np.empty(len(bounds) + SEEDS, np.int64)
    open_windows = np.zeros(len(bounds), np.bool_)  # those with an allowed row
    if filtered:
        for row in range(len(norms)):
            open_windows[row // WINDOW] |= allowed[row]
    for query in range(len(query_ptr) - 1):
        terms = query_terms[query_ptr[query] : query_ptr[query + 1]]
        weights = query_weights[query_ptr[query] : query_ptr[query + 1]]
        n = len(terms)
        if n == 0:
            continue
        # Bounds are rounded sums, the worse the longer: never let rounding hide a winner.
        slack = np.float32(1 + 2e-7 * (n + 50))
        scores, rows = heap_scores[query], heap_rows[query]
        block_bounds[:] = 0
        found[:n] = 0
        bound_windows(terms, weights, stretch, cell_ptr, cells, bests, block_bounds, bounds, found, limits, most)
        order = np.argsort(most[:n])
        if filtered:
            for window in range(len(bounds)):
                bounds[window] *= open_windows[window]
        for seeding in (True, False):  # first the most promising windows, then all others that can still matter
            size = take_highest(bounds, queue) if seeding else take_possible(bounds, scores[0], slack, queue)
            for i in range(min(AHEAD, size)):
                fetch_window(queue[i], n, found, postings)
            for i in range(size):
                if i + AHEAD < size:
                    fetch_window(queue[i + AHEAD], n, found, postings)
                window = queue[i]
                if not seeding and bounds[window] * slack <= scores[0]:
                    continue
                search_window(
                    window,
                    slack,
                    weights,
                    order,
                    block_bounds[window],
                    found,
                    limits,
                    postings,
                    counts,
                    norms,
                    allowed,
                    filtered,
                    first_row,
                    here,
                    caps,
                    live,
                    sums,
                    touched,
                    scores,
                    rows,
                )
