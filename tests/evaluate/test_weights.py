"""Weight search: candidates lie on the simplex, and hill climbing finds the maximum."""

import numpy as np

from trilens.evaluate.weights import STEPS, Weights, _climb, _grid, _rounded, _starts, best_weights


def test_weights_on_the_simplex() -> None:
    assert len(list(_grid())) == STEPS + 1
    assert next(iter(_grid())) == (10, 10)
    assert _rounded(np.array([1.0, 1.0, 1.0])) == (7, 7, 6)
    assert all(sum(start) == STEPS and min(start) >= 0 for start in _starts(4))
    goal = np.array([14, 1, 5])
    assert _climb(lambda weights: -float(((np.array(weights) - goal) ** 2).sum()), (7, 7, 6)) == (14, 1, 5)


def test_the_best_weights_maximise_the_objective() -> None:
    def peak(weights: Weights) -> float:
        return -float(((np.array(weights) - np.array([14, 1, 5])[: len(weights)]) ** 2).sum())

    assert best_weights(peak, 3) == ((14, 1, 5), 0.0)
    # (16, 4) and (17, 3) are equally near to (14, 1); the more even one wins.
    assert best_weights(peak, 2) == ((16, 4), -13.0)
    assert best_weights(lambda weights: 0.0, 2) == ((10, 10), 0.0)
