"""Passages drawn at random, for queries that have too few candidates."""

import numpy as np
from numpy.typing import NDArray

from trilens.train.data.examples import Examples

Ints = NDArray[np.int64]
FEW = 4096  # passages: below, shuffling all of them costs nothing


def random_others(examples: Examples, example: int, count: int, taken: Ints, random: np.random.Generator) -> Ints:
    """Up to `count` different passages that are no positives of the example and not among those taken."""
    total = examples.passage_count
    wanted = count + len(taken) + len(examples.positives(example))
    drawn = random.permutation(total) if total <= max(FEW, 4 * wanted) else random.integers(0, total, 4 * wanted + 64)
    _, first = np.unique(drawn, return_index=True)
    different = drawn[np.sort(first)]
    barred = np.isin(different, taken) | np.isin(examples.passages.same[different], examples.twins(example))
    return different[~barred][:count].astype(np.int64)
