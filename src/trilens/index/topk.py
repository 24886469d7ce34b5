"""`TopK`: the answer of every searcher."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trilens.errors import BadInput
from trilens.kernels.topk import new_heaps, sort_heaps


@dataclass(frozen=True, eq=False, slots=True)
class TopK:
    """`rows` and `scores` are (queries, k), best first, padded with -1 and -inf; ties go to the smaller row."""

    rows: NDArray[np.int64]
    scores: NDArray[np.float32]


class Heaps:
    """Collects the best rows of a batch of queries while searchers offer them, segment after segment."""

    def __init__(self, queries: int, k: int) -> None:
        if k < 1:
            raise BadInput(f"k is {k}; expected at least 1")
        self.scores, self.rows = new_heaps(queries, k)

    def sorted(self) -> TopK:
        """The collected rows in order. The heaps are used up."""
        sort_heaps(self.scores, self.rows)
        return TopK(self.rows, self.scores)
