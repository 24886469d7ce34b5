"""Whether one way to search is better than another, or was only lucky with these queries: paired tests over the same queries.

Randomisation test (Fisher; Smucker et al. 2007 for retrieval): if two runs were equally good, each query's difference could as
well have the other sign. p is the share of all ways to choose the signs whose mean is at least as far from zero as the one
seen; with few differences all ways are counted, else a seeded sample of them. Many comparisons are corrected by Holm's method.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

SEED = 1234
ROUNDS = 100_000
RESAMPLES = 10_000
CONFIDENCE = 0.95
EXACT_UP_TO = 20  # differences; 2 to this many ways to choose their signs
TIE = 1e-9
AT_ONCE = 4_000_000  # numbers held at a time


def randomisation_p(differences: Values, rounds: int = ROUNDS, seed: int = SEED) -> Values:
    """The two-sided p of each column of (queries, comparisons) differences.

    All columns see the same signs, so that the p of a comparison does not depend on what else is compared.
    """
    found = np.ones(differences.shape[1])
    sampled = []
    for column in range(differences.shape[1]):
        nonzero = differences[np.abs(differences[:, column]) > TIE, column]  # the sign of a tie changes nothing
        if len(nonzero) <= EXACT_UP_TO:
            found[column] = _exact_p(nonzero)
        else:
            sampled.append(column)
    if sampled:
        found[sampled] = _sampled_p(differences[:, sampled], rounds, seed)
    return found


def bootstrap_interval(differences: Values, resamples: int = RESAMPLES, seed: int = SEED) -> tuple[Values, Values]:
    """Lower and upper ends of the 95 % interval of the mean of each column: percentiles over resampled queries."""
    queries = len(differences)
    random = np.random.default_rng(seed)
    means = []
    for size in _portions(resamples, queries):
        drawn = random.integers(queries, size=(size, queries)) + np.arange(size)[:, None] * queries
        times = np.bincount(drawn.ravel(), minlength=size * queries).reshape(size, queries)
        means.append(times @ differences / queries)
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(np.concatenate(means), [tail, 100 - tail], axis=0)
    return low, high


def holm(p_values: Sequence[float]) -> list[float]:
    """Each p as it counts among the others: the smallest times their number, the next times one less, never falling."""
    adjusted = [1.0] * len(p_values)
    highest = 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - place) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def _exact_p(nonzero: Values) -> float:
    sums = np.zeros(1)
    for difference in nonzero:
        sums = np.concatenate([sums + difference, sums - difference])
    return float(np.mean(np.abs(sums) >= _reached(nonzero.sum(), nonzero)))


def _sampled_p(differences: Values, rounds: int, seed: int) -> Values:
    """The one seen counts among the sample, so that p is never 0 (Phipson and Smyth 2010)."""
    queries = len(differences)
    random = np.random.default_rng(seed)
    least = np.array([_reached(column.sum(), column) for column in differences.T])
    total = differences.sum(axis=0)
    reached = np.zeros(differences.shape[1])
    for size in _portions(rounds, queries):
        bits = np.frombuffer(random.bytes(size * -(-queries // 8)), np.uint8).reshape(size, -1)
        turned = np.unpackbits(bits, axis=1, count=queries).astype(np.float64)
        reached += (np.abs(total - 2 * (turned @ differences)) >= least).sum(axis=0)
    return (reached + 1) / (rounds + 1)


def _reached(total: float, differences: Values) -> float:
    """What a sum has to reach to be as extreme as the one seen, in spite of rounding."""
    return float(abs(total) - 1e-12 * np.abs(differences).sum())


def _portions(rounds: int, queries: int) -> Iterator[int]:
    size = max(1, AT_ONCE // max(1, queries))
    for start in range(0, rounds, size):
        yield min(size, rounds - start)
