"""The k best rows of each query, kept in a heap whose root is the worst of them.

Order everywhere: a higher score first, and of equal scores the smaller row. A heap is a row of `scores` and `rows`
of fixed length k, padded with -inf and -1 while fewer than k rows were seen.
"""

import numpy as np
from numpy.typing import NDArray

from trilens.kernels.compile import kernel

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]


def new_heaps(queries: int, k: int) -> tuple[Floats, Rows]:
    """Empty heaps: scores and rows, both (queries, k)."""
    return np.full((queries, k), -np.inf, np.float32), np.full((queries, k), -1, np.int64)


@kernel
def worse(score: float, row: int, other_score: float, other_row: int) -> bool:
    """Whether the first comes after the second in the final order; padding (row -1) comes after everything."""
    if score != other_score:
        return score < other_score
    if row < 0 or other_row < 0:
        return row < other_row
    return row > other_row


@kernel
def sift_down(scores: Floats, rows: Rows, start: int, end: int) -> None:
    """Restore the heap below `start`, looking only at the first `end` entries."""
    score, row = scores[start], rows[start]
    parent = start
    while True:
        child = 2 * parent + 1
        if child >= end:
            break
        if child + 1 < end and worse(scores[child + 1], rows[child + 1], scores[child], rows[child]):
            child += 1
        if not worse(scores[child], rows[child], score, row):
            break
        scores[parent], rows[parent] = scores[child], rows[child]
        parent = child
    scores[parent], rows[parent] = score, row


@kernel
def offer(scores: Floats, rows: Rows, score: float, row: int) -> None:
    """Put a row into the heap if it beats the worst one there."""
    if len(scores) and worse(scores[0], rows[0], score, row):
        scores[0], rows[0] = score, row
        sift_down(scores, rows, 0, len(scores))


@kernel
def sort_heaps(scores: Floats, rows: Rows) -> None:
    """Turn each heap into a list, best first, in place."""
    for query in range(scores.shape[0]):
        heap_scores, heap_rows = scores[query], rows[query]
        for end in range(scores.shape[1] - 1, 0, -1):
            heap_scores[0], heap_scores[end] = heap_scores[end], heap_scores[0]
            heap_rows[0], heap_rows[end] = heap_rows[end], heap_rows[0]
            sift_down(heap_scores, heap_rows, 0, end)


@kernel
def offer_block(block: Floats, first_row: int, allowed: NDArray[np.bool_], filtered: bool, scores: Floats, rows: Rows) -> None:
    """Offer the scores (queries, n) of the rows first_row … first_row + n; `allowed` (n,) counts only if `filtered`."""
    for query in range(block.shape[0]):
        heap_scores, heap_rows = scores[query], rows[query]
        for i in range(block.shape[1]):
            if block[query, i] > heap_scores[0] or heap_rows[0] < 0 or block[query, i] == heap_scores[0]:
                if filtered and not allowed[i]:
                    continue
                offer(heap_scores, heap_rows, block[query, i], first_row + i)


@kernel
def offer_rows(block: Floats, candidates: Rows, scores: Floats, rows: Rows) -> None:
    """Offer the scores (queries, n) of scattered rows: `candidates` (queries, n), -1 where there is none."""
    for query in range(block.shape[0]):
        for i in range(block.shape[1]):
            if candidates[query, i] >= 0:
                offer(scores[query], rows[query], block[query, i], candidates[query, i])


@kernel
def first_of_each(keys: Rows, rows: Rows, most: int) -> Rows:
    """In each line of `keys` (queries, n) the places of the first `most` different ones, -1 where there are fewer.

    Places whose row is -1 do not count.
    """
    count = min(most, keys.shape[1])
    places = np.full((len(keys), count), -1, np.int64)
    size = 4
    while size < 2 * count:
        size *= 2
    seen = np.empty(size, np.int64)  # open addressing
    for query in range(len(keys)):
        seen[:] = -1
        found = 0
        for i in range(keys.shape[1]):
            if found == count:
                break
            if rows[query, i] < 0:
                continue
            key = keys[query, i]
            slot = (key * np.int64(0x9E3779B1) >> 12) & (size - 1)
            while seen[slot] >= 0 and seen[slot] != key:
                slot = (slot + 1) & (size - 1)
            if seen[slot] < 0:
                seen[slot] = key
                places[query, found] = i
                found += 1
    return places
