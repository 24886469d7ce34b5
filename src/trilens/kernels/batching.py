"""Examples into batches such that no two of a batch share a key: one pass, whatever the number of clashes."""

import numpy as np
from numpy.typing import NDArray

from trilens.kernels.compile import inline_kernel, kernel

Ints = NDArray[np.int64]


@inline_kernel
def next_open(batch: int, onward: Ints) -> int:
    """The first batch from `batch` on that is not full; `onward` leads from each full batch towards it."""
    while onward[batch] != batch:
        onward[batch] = onward[onward[batch]]
        batch = onward[batch]
    return batch


@kernel
def assign_batches(order: Ints, offsets: Ints, keys: Ints, key_count: int, size: int) -> Ints:
    """The batch of each example of `order`: the first with room that lies behind all batches which hold one of its keys.

    So the batches of a key ascend, and looking at the last one is enough. Example i has the keys
    `keys[offsets[i]:offsets[i + 1]]`.
    """
    count = len(order)
    behind = np.zeros(key_count, np.int64)
    filled = np.zeros(count + 1, np.int64)
    onward = np.arange(count + 2)
    chosen = np.empty(count, np.int64)
    for at in range(count):
        example = order[at]
        earliest = 0
        for place in range(offsets[example], offsets[example + 1]):
            earliest = max(earliest, behind[keys[place]])
        batch = next_open(earliest, onward)
        chosen[at] = batch
        filled[batch] += 1
        if filled[batch] == size:
            onward[batch] = batch + 1
        for place in range(offsets[example], offsets[example + 1]):
            behind[keys[place]] = batch + 1
    return chosen
