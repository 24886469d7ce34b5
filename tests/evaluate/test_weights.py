"""Weights that are tried: all of them are on the simplex, and climbing finds the top."""

import numpy as np

from trilens.evaluate.weights import STEPS, _climb, _grid, _rounded, _starts


def test_weights_on_the_simplex() -> None:
    assert len(list(_grid())) == STEPS + 1
    assert next(iter(_grid())) == (10, 10)
    assert _rounded(np.array([1.0, 1.0, 1.0])) == (7, 7, 6)
    assert all(sum(start) == STEPS and min(start) >= 0 for start in _starts(4))
    goal = np.array([14, 1, 5])
    assert _climb(lambda weights: -float(((np.array(weights) - goal) ** 2).sum()), (7, 7, 6)) == (14, 1, 5)
