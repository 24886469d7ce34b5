"""`Mixture`: examples of several sources, each as often as its weight says, in an order that seed and epoch decide."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trilens.errors import BadInput
from trilens.train.data.builder import Report
from trilens.train.data.examples import Examples, split

Ints = NDArray[np.int64]


class Mixture:
    """Weight 1 shows every example of a source once per epoch, 3 three times, 0.25 a quarter of them.

    A source's examples come in rounds, each a shuffle of all of them, and an epoch goes on where the one before stopped: with
    weight 0.25 four epochs show each example once.
    """

    def __init__(self, examples: Examples, weights: Sequence[float], seed: int, reports: Sequence[Report] = ()) -> None:
        if not len(weights) or not all(np.isfinite(weight) and weight > 0 for weight in weights):
            raise BadInput(f"the weights of the sources are {list(weights)}; expected numbers above 0")
        self.examples = examples
        self.weights = tuple(weights)
        self.seed = seed
        self.reports = tuple(reports)
        self._members = [np.flatnonzero(examples.columns.sources == source) for source in range(len(weights))]

    def order(self, epoch: int) -> Ints:
        """The numbers of the examples of an epoch in their order.

        It depends on seed and epoch alone, so a run that stopped goes on at any place of it.
        """
        if epoch < 0:
            raise BadInput(f"the epoch is {epoch}; expected 0 or more")
        drawn = [self._drawn(source, epoch) for source in range(len(self.weights))]
        return np.random.default_rng([self.seed, epoch]).permutation(np.concatenate(drawn))

    def hold_out(self, count: int, apart: bool = True) -> tuple["Mixture", Examples]:
        """The rest with the same weights, and the examples held out; see `Examples.hold_out`."""
        rest, held = split(self.examples, count, self.seed, apart)
        remaining = Mixture(self.examples.take(rest), self.weights, self.seed, self.reports)
        return remaining, self.examples.take(held)

    def _drawn(self, source: int, epoch: int) -> Ints:
        members, weight = self._members[source], self.weights[source]
        count = len(members)
        if not count:
            return members
        first, last = round(epoch * weight * count), round((epoch + 1) * weight * count)
        rounds = range(first // count, -(-last // count))
        shuffles = [np.random.default_rng([self.seed, source, turn]).permutation(members) for turn in rounds]
        begin = rounds.start * count
        return np.concatenate([members[:0], *shuffles])[first - begin : last - begin]
