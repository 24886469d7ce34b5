"""Random negatives, for queries with too few candidates."""

import numpy as np

from trilens.kernels.array_types import Int64s
from trilens.train.data.examples import Examples

FEW = 4096  # up to this many passages, shuffling all of them is cheap


def random_negatives(examples: Examples, example: int, count: int, taken: Int64s, random: np.random.Generator) -> Int64s:
    """Up to `count` distinct random passages that are neither positives of the example nor in `taken`."""
    total = examples.passage_count
    needed = count + len(taken) + len(examples.positives(example))
    drawn = random.permutation(total) if total <= max(FEW, 4 * needed) else random.integers(0, total, 4 * needed + 64)
    _, first = np.unique(drawn, return_index=True)
    distinct = drawn[np.sort(first)]
    excluded = np.isin(distinct, taken) | np.isin(examples.passages.same[distinct], examples.twins(example))
    return distinct[~excluded][:count].astype(np.int64)
