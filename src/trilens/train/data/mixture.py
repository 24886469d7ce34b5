"""`Mixture`: examples of several sources, sampled by weight, in an order determined by seed and epoch."""

from collections.abc import Sequence

import numpy as np

from trilens.errors import BadInput
from trilens.kernels.array_types import Int64s
from trilens.train.data.builder import SourceReport
from trilens.train.data.examples import Examples, split


class Mixture:
    """Examples with a sampling weight per source: 1 uses each example once per epoch, 3 three times, 0.25 a quarter of them.

    A source is traversed in rounds, each a shuffle of all its examples, and an epoch continues where the previous one stopped:
    with weight 0.25, four epochs use each example once.
    """

    def __init__(self, examples: Examples, weights: Sequence[float], seed: int, reports: Sequence[SourceReport] = ()) -> None:
        if not len(weights) or not all(np.isfinite(weight) and weight > 0 for weight in weights):
            raise BadInput(f"the weights of the sources are {list(weights)}; expected positive numbers")
        self.examples = examples
        self.weights = tuple(weights)
        self.seed = seed
        self.reports = tuple(reports)
        self._members = [np.flatnonzero(examples.columns.sources == source) for source in range(len(weights))]

    def order(self, epoch: int) -> Int64s:
        """The example numbers of an epoch, in order.

        The order depends on seed and epoch only, so a run can resume at any position.
        """
        if epoch < 0:
            raise BadInput(f"the epoch is {epoch}; expected 0 or more")
        drawn = [self._drawn(source, epoch) for source in range(len(self.weights))]
        return np.random.default_rng([self.seed, epoch]).permutation(np.concatenate(drawn))

    def hold_out(self, count: int, apart: bool = True) -> tuple["Mixture", Examples]:
        """Split off `count` examples; the rest keeps its weights. See `Examples.hold_out`."""
        rest, held_out = split(self.examples, count, self.seed, apart)
        remaining = Mixture(self.examples.take(rest), self.weights, self.seed, self.reports)
        return remaining, self.examples.take(held_out)

    def _drawn(self, source: int, epoch: int) -> Int64s:
        members, weight = self._members[source], self.weights[source]
        count = len(members)
        if not count:
            return members
        first, last = round(epoch * weight * count), round((epoch + 1) * weight * count)
        rounds = range(first // count, -(-last // count))
        shuffles = [np.random.default_rng([self.seed, source, round_number]).permutation(members) for round_number in rounds]
        begin = rounds.start * count
        return np.concatenate([members[:0], *shuffles])[first - begin : last - begin]
