"""`TopK`, the result of all searchers, and the heaps that collect it."""

from dataclasses import dataclass

from trilens.errors import BadInput
from trilens.kernels.array_types import Float32s, Int64s
from trilens.kernels.topk import new_heaps, sort_heaps


@dataclass(frozen=True, eq=False, slots=True)
class TopK:
    """Rows and scores (queries, k), best first, padded with -1 and -inf; of equal scores the smaller row comes first."""

    rows: Int64s
    scores: Float32s


class Heaps:
    """Top-k heaps of a batch of queries, filled segment by segment."""

    def __init__(self, queries: int, k: int) -> None:
        if k < 1:
            raise BadInput(f"k is {k}; expected at least 1")
        self.scores, self.rows = new_heaps(queries, k)

    def sorted(self) -> TopK:
        """The collected rows, sorted in place: the heaps must not be used afterwards."""
        sort_heaps(self.scores, self.rows)
        return TopK(self.rows, self.scores)
