"""Paired significance tests and confidence intervals over per-query differences.

Paired randomisation test (Fisher; Smucker et al. 2007 for retrieval): under the null hypothesis that two runs are equally good,
the sign of each per-query difference is arbitrary. The two-sided p-value is the fraction of sign assignments whose mean is at
least as far from zero as the observed one: all assignments if few queries differ, otherwise a seeded random sample. Multiple
comparisons use the Holm correction. Confidence intervals are bootstrap percentiles.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from trilens.kernels.array_types import Float64s

SEED = 1234
ROUNDS = 100_000
RESAMPLES = 10_000
CONFIDENCE = 0.95
EXACT_UP_TO = 20  # non-zero differences: up to 2^20 sign assignments are enumerated
TIE = 1e-9  # differences up to this size count as ties
AT_ONCE = 4_000_000  # numbers in memory at a time


def randomisation_p(differences: Float64s, rounds: int = ROUNDS, seed: int = SEED) -> Float64s:
    """Two-sided p-value of each column of a (queries, comparisons) matrix of differences.

    All columns share the same random signs, so the p-value of a comparison does not depend on the other comparisons.
    """
    p_values = np.ones(differences.shape[1])
    sampled = []
    for column in range(differences.shape[1]):
        nonzero = differences[np.abs(differences[:, column]) > TIE, column]  # ties do not affect the sum
        if len(nonzero) <= EXACT_UP_TO:
            p_values[column] = _exact_p(nonzero)
        else:
            sampled.append(column)
    if sampled:
        p_values[sampled] = _sampled_p(differences[:, sampled], rounds, seed)
    return p_values


def bootstrap_interval(differences: Float64s, resamples: int = RESAMPLES, seed: int = SEED) -> tuple[Float64s, Float64s]:
    """Lower and upper bounds of the 95 % bootstrap percentile interval of each column's mean, resampling queries."""
    queries = len(differences)
    random = np.random.default_rng(seed)
    means = []
    for size in _portions(resamples, queries):
        drawn = random.integers(queries, size=(size, queries)) + np.arange(size)[:, None] * queries
        counts = np.bincount(drawn.ravel(), minlength=size * queries).reshape(size, queries)
        means.append(counts @ differences / queries)
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(np.concatenate(means), [tail, 100 - tail], axis=0)
    return low, high


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm-adjusted p-values: the i-th smallest of m is multiplied by m - i (from 0); the results are made non-decreasing."""
    adjusted = [1.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def _exact_p(nonzero: Float64s) -> float:
    """p-value over all sign assignments."""
    sums = np.zeros(1)
    for difference in nonzero:
        sums = np.concatenate([sums + difference, sums - difference])
    return float(np.mean(np.abs(sums) >= _threshold(nonzero.sum(), nonzero)))


def _sampled_p(differences: Float64s, rounds: int, seed: int) -> Float64s:
    """p-values over sampled sign assignments, which include the observed one, so that p > 0 (Phipson and Smyth 2010)."""
    queries = len(differences)
    random = np.random.default_rng(seed)
    thresholds = np.array([_threshold(column.sum(), column) for column in differences.T])
    totals = differences.sum(axis=0)
    extreme = np.zeros(differences.shape[1])
    for size in _portions(rounds, queries):
        bits = np.frombuffer(random.bytes(size * -(-queries // 8)), np.uint8).reshape(size, -1)
        flipped = np.unpackbits(bits, axis=1, count=queries).astype(np.float64)
        extreme += (np.abs(totals - 2 * (flipped @ differences)) >= thresholds).sum(axis=0)
    return (extreme + 1) / (rounds + 1)


def _threshold(total: float, differences: Float64s) -> float:
    """Smallest absolute sum that counts as extreme as the observed one, with a margin for rounding errors."""
    return float(abs(total) - 1e-12 * np.abs(differences).sum())


def _portions(rounds: int, queries: int) -> Iterator[int]:
    """Split the rounds into chunks that fit in memory."""
    size = max(1, AT_ONCE // max(1, queries))
    for start in range(0, rounds, size):
        yield min(size, rounds - start)
