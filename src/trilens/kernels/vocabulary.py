"""Sorted words in one byte array: looking words up and merging two vocabularies.

Word i is `letters[offsets[i]:offsets[i + 1]]`, in UTF-8; words ascend by their bytes and differ.
"""

import numpy as np
from numpy.typing import NDArray

from trilens.kernels.compile import kernel

Letters = NDArray[np.uint8]
Ints = NDArray[np.int64]


@kernel
def compare(letters: Letters, start: int, end: int, others: Letters, other_start: int, other_end: int) -> int:
    """-1, 0 or 1 as the first word comes before, equals, or comes after the second."""
    shorter = min(end - start, other_end - other_start)
    for i in range(shorter):
        first, second = letters[start + i], others[other_start + i]
        if first != second:
            return -1 if first < second else 1
    if end - start == other_end - other_start:
        return 0
    return -1 if end - start < other_end - other_start else 1


@kernel
def find_words(letters: Letters, offsets: Ints, wanted: Letters, wanted_offsets: Ints) -> Ints:
    """Index of each wanted word, -1 where the vocabulary does not have it."""
    found = np.full(len(wanted_offsets) - 1, -1, np.int64)
    for i in range(len(found)):
        low, high = 0, len(offsets) - 1
        while low < high:
            middle = (low + high) // 2
            order = compare(letters, offsets[middle], offsets[middle + 1], wanted, wanted_offsets[i], wanted_offsets[i + 1])
            if order == 0:
                found[i] = middle
                break
            if order < 0:
                low = middle + 1
            else:
                high = middle
    return found


@kernel
def merge_words(letters: Letters, offsets: Ints, others: Letters, other_offsets: Ints) -> tuple[Letters, Ints, Ints, Ints]:
    """The union of two vocabularies, and the index in it of each word of the first and of the second."""
    n, m = len(offsets) - 1, len(other_offsets) - 1
    places, other_places = np.empty(n, np.int64), np.empty(m, np.int64)
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
            for at in range(offsets[i], offsets[i + 1]):
                merged[size] = letters[at]
                size += 1
            places[i] = count
            i += 1
        else:
            for at in range(other_offsets[j], other_offsets[j + 1]):
                merged[size] = others[at]
                size += 1
        if order >= 0:
            other_places[j] = count
            j += 1
        count += 1
        merged_offsets[count] = size
    return merged[:size].copy(), merged_offsets[: count + 1].copy(), places, other_places
