"""Top-k heaps: the k best rows of each query, with the worst of them at the root.

Rows are ordered by descending score, and equal scores by ascending row. A heap is one line of `scores` and `rows` (queries, k),
padded with -inf and -1 until k rows were offered.
"""

import numpy as np

from trilens.kernels.array_types import Float32s, Int64s, Mask
from trilens.kernels.compile import kernel


def new_heaps(queries: int, k: int) -> tuple[Float32s, Int64s]:
    """Empty heaps: scores and rows, both (queries, k)."""
    return np.full((queries, k), -np.inf, np.float32), np.full((queries, k), -1, np.int64)


@kernel
def worse(score: float, row: int, other_score: float, other_row: int) -> bool:
    """Whether the first row ranks below the second; padding (row -1) ranks below everything."""
    if score != other_score:
        return score < other_score
    if row < 0 or other_row < 0:
        return row < other_row
    return row > other_row


@kernel
def sift_down(scores: Float32s, rows: Int64s, start: int, end: int) -> None:
    """Restore the heap property below `start` among the first `end` entries."""
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
def offer(scores: Float32s, rows: Int64s, score: float, row: int) -> None:
    """Put a row into the heap if it ranks above the worst row there."""
    if len(scores) and worse(scores[0], rows[0], score, row):
        scores[0], rows[0] = score, row
        sift_down(scores, rows, 0, len(scores))


@kernel
def sort_heaps(scores: Float32s, rows: Int64s) -> None:
    """Sort each heap in place, best first."""
    for query in range(scores.shape[0]):
        heap_scores, heap_rows = scores[query], rows[query]
        for end in range(scores.shape[1] - 1, 0, -1):
            heap_scores[0], heap_scores[end] = heap_scores[end], heap_scores[0]
            heap_rows[0], heap_rows[end] = heap_rows[end], heap_rows[0]
            sift_down(heap_scores, heap_rows, 0, end)


@kernel
def offer_block(block: Float32s, first_row: int, allowed: Mask, filtered: bool, scores: Float32s, rows: Int64s) -> None:
    """Offer n consecutive rows from first_row with scores `block` (queries, n); `allowed` (n,) is used only if `filtered`."""
    for query in range(block.shape[0]):
        heap_scores, heap_rows = scores[query], rows[query]
        for i in range(block.shape[1]):
            if block[query, i] > heap_scores[0] or heap_rows[0] < 0 or block[query, i] == heap_scores[0]:
                if filtered and not allowed[i]:
                    continue
                offer(heap_scores, heap_rows, block[query, i], first_row + i)


@kernel
def offer_rows(block: Float32s, candidates: Int64s, scores: Float32s, rows: Int64s) -> None:
    """Offer the rows `candidates` (queries, n) with the scores `block` (queries, n); -1 is no row."""
    for query in range(block.shape[0]):
        for i in range(block.shape[1]):
            if candidates[query, i] >= 0:
                offer(scores[query], rows[query], block[query, i], candidates[query, i])


@kernel
def first_of_each(keys: Int64s, rows: Int64s, most: int) -> Int64s:
    """The positions of the first `most` distinct keys in each line of `keys` (queries, n); -1 where there are fewer.

    Positions whose row is -1 are skipped.
    """
    count = min(most, keys.shape[1])
    positions = np.full((len(keys), count), -1, np.int64)
    size = 4
    while size < 2 * count:
        size *= 2
    slots = np.empty(size, np.int64)  # hash table with open addressing
    for query in range(len(keys)):
        slots[:] = -1
        distinct = 0
        for i in range(keys.shape[1]):
            if distinct == count:
                break
            if rows[query, i] < 0:
                continue
            key = keys[query, i]
            slot = (key * np.int64(0x9E3779B1) >> 12) & (size - 1)
            while slots[slot] >= 0 and slots[slot] != key:
                slot = (slot + 1) & (size - 1)
            if slots[slot] < 0:
                slots[slot] = key
                positions[query, distinct] = i
                distinct += 1
    return positions
