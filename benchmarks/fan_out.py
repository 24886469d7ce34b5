"""Simulates how long a query takes that every shard of a collection has to answer: as long as the slowest of them."""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Latencies = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, int]], Latencies]
"""Draws latencies of single shards in milliseconds: (queries, shards)."""

P95 = NormalDist().inv_cdf(0.95)
MOST_AT_ONCE = 1_000_000  # latencies in memory


@dataclass(frozen=True, slots=True)
class Lognormal:
    """Latencies with this median and this 95th percentile, which is what recorded rows have of a distribution."""

    median_ms: float
    p95_ms: float

    def draw(self, random: np.random.Generator, shape: tuple[int, int]) -> Latencies:
        """Independent latencies."""
        return np.asarray(self.median_ms * np.exp(self._spread * random.standard_normal(shape)), np.float64)

    def quantile(self, share: float) -> float:
        """The latency below which this share lies."""
        return self.median_ms * exp(self._spread * NormalDist().inv_cdf(share))

    @property
    def _spread(self) -> float:
        return log(self.p95_ms / self.median_ms) / P95


@dataclass(frozen=True, slots=True)
class Stalling:
    """Latencies of which a share is many times as long, as if a disk, a neighbour or a restart were in the way."""

    usual: Lognormal
    share: float
    times: float

    def draw(self, random: np.random.Generator, shape: tuple[int, int]) -> Latencies:
        """Independent latencies."""
        latencies = self.usual.draw(random, shape)
        return np.where(random.random(shape) < self.share, self.times * latencies, latencies)


def fan_out(draw: Draw, shards: int, queries: int, seed: int, hedge_ms: float | None = None) -> Latencies:
    """The latency of each query: that of its slowest shard.

    With `hedge_ms`, a shard that has not answered after that time is asked again, on another replica; the first answer counts.
    """
    random = np.random.default_rng(seed)
    slowest = np.empty(queries)
    step = max(1, MOST_AT_ONCE // shards)
    for start in range(0, queries, step):
        shape = (min(step, queries - start), shards)
        latencies = draw(random, shape)
        if hedge_ms is not None:
            latencies = np.where(latencies > hedge_ms, np.minimum(latencies, hedge_ms + draw(random, shape)), latencies)
        slowest[start : start + shape[0]] = latencies.max(axis=1)
    return slowest
