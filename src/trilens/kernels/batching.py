"""Assignment of training examples to batches in which no two examples share a key."""

import numpy as np

from trilens.kernels.array_types import Int64s
from trilens.kernels.compile import inline_kernel, kernel


@inline_kernel
def next_open(batch: int, onward: Int64s) -> int:
    """The first batch from `batch` on that is not full; `onward` leads from each full batch towards it (union-find)."""
    while onward[batch] != batch:
        onward[batch] = onward[onward[batch]]
        batch = onward[batch]
    return batch


@kernel
def assign_batches(order: Int64s, offsets: Int64s, keys: Int64s, key_count: int, size: int) -> Int64s:
    """The batch of each example of `order`: the first with room after all batches that contain one of its keys.

    The batches of a key ascend, so its last batch decides, and one pass suffices. Example i has the keys
    `keys[offsets[i]:offsets[i + 1]]`.
    """
    count = len(order)
    after_key = np.zeros(key_count, np.int64)
    filled = np.zeros(count + 1, np.int64)
    onward = np.arange(count + 2)
    batches = np.empty(count, np.int64)
    for i in range(count):
        example = order[i]
        earliest = 0
        for position in range(offsets[example], offsets[example + 1]):
            earliest = max(earliest, after_key[keys[position]])
        batch = next_open(earliest, onward)
        batches[i] = batch
        filled[batch] += 1
        if filled[batch] == size:
            onward[batch] = batch + 1
        for position in range(offsets[example], offsets[example + 1]):
            after_key[keys[position]] = batch + 1
    return batches
