"""Split length-sorted texts into batches, minimising padding plus a fixed cost per batch."""

import numpy as np

from trilens.kernels.array_types import Int64s
from trilens.kernels.compile import kernel


@kernel
def cut_batches(lengths: Int64s, batch_tokens: int, most: int, price: int) -> Int64s:
    """The end of each batch, such that the total of padded tokens plus `price` per batch is least.

    `lengths` descend. A batch has at most `most` texts and, unless it is a single text, at most `batch_tokens` padded tokens.
    """
    count = len(lengths)
    least = np.zeros(count + 1, np.int64)  # least cost of the texts from each one to the last
    best_ends = np.zeros(count, np.int64)
    for start in range(count - 1, -1, -1):
        longest = max(1, lengths[start])
        room = max(1, min(most, batch_tokens // longest))
        for end in range(start + 1, min(count, start + room) + 1):
            total = price + (end - start) * longest + least[end]
            if end == start + 1 or total <= least[start]:
                least[start], best_ends[start] = total, end
    ends = np.empty(count, np.int64)
    batches, end = 0, 0
    while end < count:
        end = best_ends[end]
        ends[batches] = end
        batches += 1
    return ends[:batches].copy()
