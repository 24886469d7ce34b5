"""BM25 top-k over windowed inverted lists that never looks at rows which cannot enter the top k.

Block-max pruning (Mallia et al. 2024) with MaxScore (Turtle & Flood 1995) inside: first the cells of the query's terms give
each window the most that a row in it could score; the most promising windows are searched first, so that the k-th score is high
early; then the others, passing over those that cannot reach it. Inside a window the terms that cannot lift a row over the
k-th score on their own are only looked up for rows that the other terms brought up. Bounds decide only who is looked at. The
score itself is always summed in the order of the query's terms, so that equal documents get equal scores.
"""

import numpy as np
from numpy.typing import NDArray

from trilens.kernels.compile import inline_kernel, kernel
from trilens.kernels.postings import STEPS, WINDOW
from trilens.kernels.topk import offer

SEEDS = 8  # windows searched first
SLACK = np.float32(1.00001)  # bounds are rounded sums: never let rounding hide a winner

Ints = NDArray[np.int64]
Starts = NDArray[np.uint32]
Windows = NDArray[np.uint16]
Places = NDArray[np.uint8]
Counts = NDArray[np.uint32]
Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]


@kernel
def bound_windows(
    terms: Ints,
    weights: Floats,
    stretch: float,
    cell_ptr: Ints,
    windows: Windows,
    bests: Places,
    bounds: Floats,
    cells: NDArray[np.int32],
    limits: Floats,
    most: Floats,
) -> None:
    """Add up, for each window, the most that the terms can give a row in it.

    Also fills, for each term, its cell in each window (`cells`, -1 where it has none), the most it can give by the stored
    maximum of a cell (`limits`), and the most it can give anywhere (`most`).
    """
    for t in range(len(terms)):
        # The stored maxima hold for the average length at build time; `stretch` makes them valid for a larger one.
        for code in range(256):
            best = np.float32(code) / STEPS
            limits[t, code] = weights[t] * best * stretch / (1 + best * (stretch - 1))
        highest = np.uint8(0)
        for cell in range(cell_ptr[terms[t]], cell_ptr[terms[t] + 1]):
            bounds[windows[cell]] += limits[t, bests[cell]]
            cells[t, windows[cell]] = cell - cell_ptr[terms[t]]
            highest = max(highest, bests[cell])
        most[t] = limits[t, highest]


@inline_kernel
def find_place(place: int, cell: int, starts: Starts, places: Places) -> int | np.int64:
    """The posting of a row of a window in a cell; -1 if the cell has none."""
    low, end = np.int64(starts[cell]), np.int64(starts[cell + 1])
    n = end - low
    while n > 1:  # halving that does not branch on what it reads, so that the processor never guesses wrong
        half = n >> 1
        low += half * (places[low + half - 1] < place)
        n -= half
    return low if places[low] == place else -1


@kernel
def search_window(
    window: int,
    terms: Ints,
    weights: Floats,
    order: Ints,
    cells: NDArray[np.int32],
    limits: Floats,
    cell_ptr: Ints,
    starts: Starts,
    bests: Places,
    places: Places,
    counts: Counts,
    norms: Floats,
    allowed: Mask,
    filtered: bool,
    first_row: int,
    here: Ints,
    caps: Floats,
    sums: Floats,
    touched: NDArray[np.int32],
    heap_scores: Floats,
    heap_rows: Ints,
) -> None:
    """Offer every row of one window that can enter the heap. `sums` (WINDOW,) is zero on entry and on return."""
    # The terms that stand in this window, weakest first: their numbers in `here`, the most each can give in `caps`.
    n = 0
    weak, below = 0, np.float32(0)
    for t in order:
        if cells[t, window] >= 0:
            here[n] = t
            caps[n] = limits[t, bests[cell_ptr[terms[t]] + cells[t, window]]]
            if weak == n and (below + caps[n]) * SLACK <= heap_scores[0]:
                below += caps[n]
                weak += 1
            n += 1
    window_row = window * WINDOW
    count = 0
    for i in range(weak, n):
        t = here[i]
        cell = cell_ptr[terms[t]] + cells[t, window]
        for at in range(starts[cell], starts[cell + 1]):
            place = places[at]
            tf = np.float32(counts[at])
            if sums[place] == 0:
                touched[count] = place
                count += 1
            sums[place] += weights[t] * (tf / (tf + norms[window_row + place]))
    for c in range(count):
        place = touched[c]
        possible = sums[place]
        sums[place] = 0
        if (possible + below) * SLACK <= heap_scores[0] or (filtered and not allowed[window_row + place]):
            continue
        rest = below
        for i in range(weak - 1, -1, -1):
            t = here[i]
            rest = max(rest - caps[i], np.float32(0))
            found = find_place(place, cell_ptr[terms[t]] + cells[t, window], starts, places)
            if found >= 0:
                tf = np.float32(counts[found])
                possible += weights[t] * (tf / (tf + norms[window_row + place]))
            if (possible + rest) * SLACK <= heap_scores[0]:
                break
        if (possible + rest) * SLACK > heap_scores[0]:
            total = 0.0
            norm = np.float64(norms[window_row + place])
            for t in range(len(terms)):
                if cells[t, window] >= 0:
                    found = find_place(place, cell_ptr[terms[t]] + cells[t, window], starts, places)
                    if found >= 0:
                        total += np.float64(weights[t]) * counts[found] / (counts[found] + norm)
            offer(heap_scores, heap_rows, float(np.float32(total)), first_row + window_row + place)


@kernel
def take_highest(bounds: Floats, chosen: Ints) -> None:
    """The windows with the highest bounds, best first, -1 where there are no more; their bounds become zero."""
    values = np.zeros(len(chosen), np.float32)
    chosen[:] = -1
    for window in range(len(bounds)):
        if bounds[window] > values[-1]:
            at = len(chosen) - 1
            while at > 0 and values[at - 1] < bounds[window]:
                values[at], chosen[at] = values[at - 1], chosen[at - 1]
                at -= 1
            values[at], chosen[at] = bounds[window], window
    for window in chosen:
        if window >= 0:
            bounds[window] = 0


@kernel
def search(
    query_ptr: Ints,
    query_terms: Ints,
    query_weights: Floats,
    stretch: float,
    cell_ptr: Ints,
    windows: Windows,
    starts: Starts,
    bests: Places,
    places: Places,
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
    cells = np.empty((longest, len(bounds)), np.int32)
    limits = np.empty((longest, 256), np.float32)
    most, caps = np.empty(longest, np.float32), np.empty(longest, np.float32)
    here = np.empty(longest, np.int64)
    sums = np.zeros(WINDOW, np.float32)
    touched = np.empty(WINDOW, np.int32)
    seeds = np.empty(SEEDS, np.int64)
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
        scores, rows = heap_scores[query], heap_rows[query]
        bounds[:] = 0
        cells[:n] = -1
        bound_windows(terms, weights, stretch, cell_ptr, windows, bests, bounds, cells, limits, most)
        order = np.argsort(most[:n])
        if filtered:
            for window in range(len(bounds)):
                bounds[window] *= open_windows[window]
        take_highest(bounds, seeds)
        for i in range(SEEDS + len(bounds)):
            window = seeds[i] if i < SEEDS else i - SEEDS
            if window < 0 or (i >= SEEDS and (bounds[window] == 0 or bounds[window] * SLACK <= scores[0])):
                continue
            search_window(
                window,
                terms,
                weights,
                order,
                cells,
                limits,
                cell_ptr,
                starts,
                bests,
                places,
                counts,
                norms,
                allowed,
                filtered,
                first_row,
                here,
                caps,
                sums,
                touched,
                scores,
                rows,
            )
