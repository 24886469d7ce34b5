"""What is made of the tokens of documents before they are searched: pools of like tokens, and the rows near each centroid."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trilens.kernels.compile import kernel
from trilens.kernels.dense import rough_product

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Rows = NDArray[np.int32]
Centroids = NDArray[np.unsignedinteger[Any]]


@kernel
def count_lists(offsets: Ints, nearest: Centroids, centroids: int) -> Ints:
    """Where the list of each centroid begins, if it names every row once that has a token near it."""
    list_ptr = np.zeros(centroids + 1, np.int64)
    last = np.full(centroids, -1, np.int64)
    for row in range(len(offsets) - 1):
        for at in range(offsets[row], offsets[row + 1]):
            if last[nearest[at]] != row:
                last[nearest[at]] = row
                list_ptr[nearest[at] + 1] += 1
    return np.cumsum(list_ptr)


@kernel
def fill_lists(offsets: Ints, nearest: Centroids, list_ptr: Ints, list_rows: Rows) -> None:
    """Write the lists that `count_lists` counted."""
    cursor = list_ptr[:-1].copy()
    for row in range(len(offsets) - 1):
        for at in range(offsets[row], offsets[row + 1]):
            centroid = nearest[at]
            if cursor[centroid] == list_ptr[centroid] or list_rows[cursor[centroid] - 1] != row:
                list_rows[cursor[centroid]] = row
                cursor[centroid] += 1


@kernel
def pool_tokens(offsets: Ints, vectors: Floats, factor: int) -> tuple[Ints, Floats, Ints]:
    """Merge the most similar tokens of each text until one in `factor` is left (at least one per text).

    Two tokens become their sum; similarity is the cosine. Returns offsets, vectors and which token each first was.
    """
    kept_offsets = np.zeros(len(offsets), np.int64)
    pooled, first = vectors.copy(), np.arange(len(vectors))
    to = 0
    for text in range(len(offsets) - 1):
        start, n = offsets[text], offsets[text + 1] - offsets[text]
        group = pooled[start : start + n].copy()
        names = np.arange(start, start + n)
        lengths = np.empty(n, np.float32)
        weight = np.ones(n, np.float32)
        for i in range(n):
            lengths[i] = np.sqrt(rough_product(group[i], group[i])) + np.float32(1e-12)
        left = max(1, -(-n // factor))
        similar = np.empty((n, n), np.float32)
        for i in range(n):
            for j in range(i):
                similar[i, j] = rough_product(group[i], group[j]) / (lengths[i] * lengths[j])
        size = n
        while size > left:
            a, b, top = 1, 0, np.float32(-np.inf)
            for i in range(size):
                for j in range(i):
                    if similar[i, j] > top:
                        a, b, top = i, j, similar[i, j]
            group[b] += group[a]
            weight[b] += weight[a]
            names[b] = min(names[b], names[a])
            lengths[b] = np.sqrt(rough_product(group[b], group[b])) + np.float32(1e-12)
            size -= 1
            group[a], weight[a], names[a], lengths[a] = group[size], weight[size], names[size], lengths[size]
            for j in range(size):  # the last one moved into the place of the one that is gone
                if j != a:
                    similar[max(a, j), min(a, j)] = similar[size, j]
            for j in range(size):
                if j != b:
                    similar[max(b, j), min(b, j)] = rough_product(group[b], group[j]) / (lengths[b] * lengths[j])
        order = np.argsort(names[:size])
        for i in order:
            # as long as the tokens were on average: 1 where they had length 1
            pooled[to] = group[i] / weight[i]
            first[to] = names[i]
            to += 1
        kept_offsets[text + 1] = to
    return kept_offsets, pooled[:to], first[:to]
