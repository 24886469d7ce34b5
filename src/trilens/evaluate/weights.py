"""The weights of lenses that make something highest: which are tried.

With two lenses all weights on a grid are; with more, mass is moved between pairs of lenses as long as that helps, from several
starts.
"""

from collections.abc import Callable, Iterable
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

STEPS = 20  # weights are multiples of 1/20
MOVES = (4, 2, 1)
RANDOM_STARTS = 3
SEED = 1234

Weights = tuple[int, ...]
"""Of the lenses in order, in steps; their sum is STEPS."""


def best_weights(value: Callable[[Weights], float], lenses: int) -> tuple[Weights, float]:
    """The weights of the highest value; the first found of equals."""
    tried = _grid() if lenses == 2 else (_climb(value, start) for start in _starts(lenses))
    best: Weights = ()
    highest = -np.inf
    for weights in tried:
        score = value(weights)
        if score > highest:
            best, highest = weights, score
    return best, highest


def _grid() -> Iterable[Weights]:
    """All weights of two lenses, the most even first, so that among equals the less extreme wins."""
    return sorted(((first, STEPS - first) for first in range(STEPS + 1)), key=lambda pair: (abs(pair[0] - pair[1]), pair))


def _climb(value: Callable[[Weights], float], start: Weights) -> Weights:
    """Move weight from one lens to another, in smaller and smaller portions, as long as that helps."""
    best, highest = start, value(start)
    for move in MOVES:
        improved = True
        while improved:
            improved = False
            for source, target in permutations(range(len(best)), 2):
                if best[source] < move:
                    continue
                moved = list(best)
                moved[source] -= move
                moved[target] += move
                score = value(tuple(moved))
                if score > highest + 1e-12:
                    best, highest, improved = tuple(moved), score, True
    return best


def _starts(lenses: int) -> list[Weights]:
    """All alike, each lens ahead of the others, and some at random."""
    random = np.random.default_rng(SEED)
    shares = [np.ones(lenses)]
    shares += [np.where(np.arange(lenses) == first, 2.0 * lenses, 1.0) for first in range(lenses)]
    shares += [random.dirichlet(np.ones(lenses)) for _ in range(RANDOM_STARTS)]
    return list(dict.fromkeys(_rounded(share) for share in shares))


def _rounded(shares: NDArray[np.float64]) -> Weights:
    """Whole steps in these proportions, with the right sum: what rounding lost goes where it lost most."""
    exact = shares / shares.sum() * STEPS
    steps = np.floor(exact).astype(int)
    for place in np.argsort(steps - exact, kind="stable")[: STEPS - int(steps.sum())]:
        steps[place] += 1
    return tuple(steps.tolist())
