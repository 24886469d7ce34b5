"""Index-time processing of document tokens: inverted lists of centroids, and pooling of similar tokens."""

import numpy as np

from trilens.kernels.array_types import Float32s, Int32s, Int64s, Unsigned
from trilens.kernels.compile import kernel
from trilens.kernels.dense import rough_product


@kernel
def count_lists(offsets: Int64s, nearest: Unsigned, centroids: int) -> Int64s:
    """The list offsets of all centroids; a list contains each row once whose tokens include one of the centroid."""
    list_ptr = np.zeros(centroids + 1, np.int64)
    last = np.full(centroids, -1, np.int64)
    for row in range(len(offsets) - 1):
        for token in range(offsets[row], offsets[row + 1]):
            if last[nearest[token]] != row:
                last[nearest[token]] = row
                list_ptr[nearest[token] + 1] += 1
    return np.cumsum(list_ptr)


@kernel
def fill_lists(offsets: Int64s, nearest: Unsigned, list_ptr: Int64s, list_rows: Int32s) -> None:
    """Write the rows of the lists that `count_lists` measured."""
    cursor = list_ptr[:-1].copy()
    for row in range(len(offsets) - 1):
        for token in range(offsets[row], offsets[row + 1]):
            centroid = nearest[token]
            if cursor[centroid] == list_ptr[centroid] or list_rows[cursor[centroid] - 1] != row:
                list_rows[cursor[centroid]] = row
                cursor[centroid] += 1


@kernel
def pool_tokens(offsets: Int64s, vectors: Float32s, factor: int) -> tuple[Int64s, Float32s, Int64s]:
    """Merge the most similar tokens of each text by cosine until one in `factor` is left (at least one per text).

    Merged vectors are summed, and finally divided by their number. Returns offsets, vectors, and the first token of each pool.
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
            for j in range(size):  # the last token replaced the merged one
                if j != a:
                    similar[max(a, j), min(a, j)] = similar[size, j]
            for j in range(size):
                if j != b:
                    similar[max(b, j), min(b, j)] = rough_product(group[b], group[j]) / (lengths[b] * lengths[j])
        order = np.argsort(names[:size])
        for i in order:
            pooled[to] = group[i] / weight[i]
            first[to] = names[i]
            to += 1
        kept_offsets[text + 1] = to
    return kept_offsets, pooled[:to], first[:to]
