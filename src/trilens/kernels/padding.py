"""Where to cut texts that are sorted by length into batches, when each is padded to its longest and a batch has a price."""

import numpy as np
from numpy.typing import NDArray

from trilens.kernels.compile import kernel

Ints = NDArray[np.int64]


@kernel
def cut_batches(lengths: Ints, batch_tokens: int, most: int, price: int) -> Ints:
    """The end of each batch, such that the tokens computed, padding included, and the prices of the batches are fewest.

    `lengths` descend. A batch holds at most `most` texts and, unless it is a single text, `batch_tokens` tokens.
    """
    count = len(lengths)
    least = np.zeros(count + 1, np.int64)  # from each text to the last
    ends = np.zeros(count, np.int64)
    for start in range(count - 1, -1, -1):
        longest = max(1, lengths[start])
        room = max(1, min(most, batch_tokens // longest))
        for end in range(start + 1, min(count, start + room) + 1):
            total = price + (end - start) * longest + least[end]
            if end == start + 1 or total <= least[start]:
                least[start], ends[start] = total, end
    found = np.empty(count, np.int64)
    batches, at = 0, 0
    while at < count:
        at = ends[at]
        found[batches] = at
        batches += 1
    return found[:batches].copy()
