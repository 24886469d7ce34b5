"""Search for the fusion weights that maximise an objective.

With two lenses all weights on a grid are evaluated. With more, coordinate search moves weight between pairs of lenses while
that improves the objective, from several starting points.
"""

from collections.abc import Callable, Iterable
from itertools import permutations

import numpy as np

from trilens.kernels.array_types import Float64s

STEPS = 20  # weights are multiples of 1/20
MOVES = (4, 2, 1)
RANDOM_STARTS = 3
SEED = 1234

Weights = tuple[int, ...]
"""One weight per lens, in units of 1/STEPS; their sum is STEPS."""


def best_weights(objective: Callable[[Weights], float], lenses: int) -> tuple[Weights, float]:
    """Weights with the highest objective, and its value; ties go to the first candidate."""
    candidates = _grid() if lenses == 2 else (_climb(objective, start) for start in _starts(lenses))
    best: Weights = ()
    highest = -np.inf
    for weights in candidates:
        score = objective(weights)
        if score > highest:
            best, highest = weights, score
    return best, highest


def _grid() -> Iterable[Weights]:
    """All weights of two lenses, most even first, so that ties go to the less extreme weights."""
    return sorted(((first, STEPS - first) for first in range(STEPS + 1)), key=lambda pair: (abs(pair[0] - pair[1]), pair))


def _climb(objective: Callable[[Weights], float], start: Weights) -> Weights:
    """Hill climbing: move weight from one lens to another, in decreasing steps, while the objective improves."""
    best, highest = start, objective(start)
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
                score = objective(tuple(moved))
                if score > highest + 1e-12:
                    best, highest, improved = tuple(moved), score, True
    return best


def _starts(lenses: int) -> list[Weights]:
    """Starting points: uniform weights, each lens favoured in turn, and random weights."""
    random = np.random.default_rng(SEED)
    shares = [np.ones(lenses)]
    shares += [np.where(np.arange(lenses) == first, 2.0 * lenses, 1.0) for first in range(lenses)]
    shares += [random.dirichlet(np.ones(lenses)) for _ in range(RANDOM_STARTS)]
    return list(dict.fromkeys(_rounded(share) for share in shares))


def _rounded(shares: Float64s) -> Weights:
    """Round proportions to integers with sum STEPS by the largest-remainder method."""
    exact = shares / shares.sum() * STEPS
    steps = np.floor(exact).astype(int)
    for lens in np.argsort(steps - exact, kind="stable")[: STEPS - int(steps.sum())]:
        steps[lens] += 1
    return tuple(steps.tolist())
