"""Lookup and merging of vocabularies: sorted distinct words in one byte array.

Word i is `letters[offsets[i]:offsets[i + 1]]` in UTF-8; words ascend by their bytes.
"""

import numpy as np

from trilens.kernels.array_types import Int64s, UInt8s
from trilens.kernels.compile import kernel


@kernel
def compare(letters: UInt8s, start: int, end: int, others: UInt8s, other_start: int, other_end: int) -> int:
    """-1, 0 or 1 if the first word sorts before, equals, or sorts after the second."""
    shorter = min(end - start, other_end - other_start)
    for i in range(shorter):
        first, second = letters[start + i], others[other_start + i]
        if first != second:
            return -1 if first < second else 1
    if end - start == other_end - other_start:
        return 0
    return -1 if end - start < other_end - other_start else 1


@kernel
def find_words(letters: UInt8s, offsets: Int64s, wanted: UInt8s, wanted_offsets: Int64s) -> Int64s:
    """The index of each wanted word; -1 if the vocabulary does not contain it."""
    indices = np.full(len(wanted_offsets) - 1, -1, np.int64)
    for i in range(len(indices)):
        low, high = 0, len(offsets) - 1
        while low < high:
            middle = (low + high) // 2
            order = compare(letters, offsets[middle], offsets[middle + 1], wanted, wanted_offsets[i], wanted_offsets[i + 1])
            if order == 0:
                indices[i] = middle
                break
            if order < 0:
                low = middle + 1
            else:
                high = middle
    return indices


@kernel
def merge_words(
    letters: UInt8s, offsets: Int64s, others: UInt8s, other_offsets: Int64s
) -> tuple[UInt8s, Int64s, Int64s, Int64s]:
    """The union of two vocabularies, and the index in it of each word of both."""
    n, m = len(offsets) - 1, len(other_offsets) - 1
    indices, other_indices = np.empty(n, np.int64), np.empty(m, np.int64)
    merged = np.empty(len(letters) + len(others), np.uint8)
    merged_offsets = np.zeros(n + m + 1, np.int64)
    i, j, count, size = 0, 0, 0, 0
    while i < n or j < m:
        if i == n:
            order = 1
        elif j == m:
            order = -1
        else:
            order = compare(letters, offsets[i], offsets[i + 1], others, other_offsets[j], other_offsets[j + 1])
        if order <= 0:
            for position in range(offsets[i], offsets[i + 1]):
                merged[size] = letters[position]
                size += 1
            indices[i] = count
            i += 1
        else:
            for position in range(other_offsets[j], other_offsets[j + 1]):
                merged[size] = others[position]
                size += 1
        if order >= 0:
            other_indices[j] = count
            j += 1
        count += 1
        merged_offsets[count] = size
    return merged[:size].copy(), merged_offsets[: count + 1].copy(), indices, other_indices
