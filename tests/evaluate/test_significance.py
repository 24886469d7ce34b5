"""Paired tests against arithmetic written out, against all sign patterns in plain Python, and against scipy."""

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from trilens.evaluate.significance import EXACT_UP_TO, bootstrap_interval, holm, randomisation_p


def column(*values: float) -> NDArray[np.float64]:
    return np.array(values, np.float64)[:, None]


def by_counting(differences: NDArray[np.float64]) -> float:
    """All ways to choose the signs, one after the other."""
    seen = abs(float(differences.sum()))
    sums = [
        abs(sum(sign * value for sign, value in zip(signs, differences, strict=True))) for signs in _signs(len(differences))
    ]
    return float(np.mean([total >= seen - 1e-12 for total in sums]))


def _signs(count: int) -> list[tuple[int, ...]]:
    return list(product((1, -1), repeat=count))


def test_by_hand() -> None:
    # Of eight ways to choose the signs of 3, 2, 1 only + + + and - - - reach 6.
    assert randomisation_p(column(3, 2, 1)).tolist() == [0.25]
    # 3, 2, -1 sum to 4: + + +, + + - and their opposites.
    assert randomisation_p(column(3, 2, -1)).tolist() == [0.5]


def test_identical_runs_have_p_one() -> None:
    assert randomisation_p(np.zeros((300, 2))).tolist() == [1.0, 1.0]
    assert randomisation_p(column(0.5, -0.5)).tolist() == [1.0]


def test_queries_that_tie_change_nothing() -> None:
    few = column(0.3, 0.2, -0.1, 0.4)
    many = np.concatenate([few, np.zeros((500, 1))])
    assert randomisation_p(many).tolist() == randomisation_p(few).tolist()


@pytest.mark.parametrize("queries", [1, 2, 5, 9, 12])
def test_few_queries_are_counted_exactly(queries: int) -> None:
    random = np.random.default_rng(queries)
    differences = random.normal(0.1, 0.3, (queries, 3)).round(1)  # rounded, so that sums are often equal
    expected = [by_counting(differences[:, one]) for one in range(3)]
    assert randomisation_p(differences).tolist() == pytest.approx(expected, abs=1e-15)


def test_equal_to_scipy_where_counted() -> None:
    stats = pytest.importorskip("scipy.stats")
    random = np.random.default_rng(5)
    differences = random.normal(0.1, 0.3, (15, 4)).round(2)
    for one, p in enumerate(randomisation_p(differences)):
        reference = stats.permutation_test((differences[:, one],), np.mean, permutation_type="samples", n_resamples=np.inf)
        assert p == pytest.approx(reference.pvalue, abs=1e-12)


def test_near_scipy_where_drawn() -> None:
    stats = pytest.importorskip("scipy.stats")
    random = np.random.default_rng(6)
    differences = random.normal(0.02, 0.2, (EXACT_UP_TO * 4, 3))
    for one, p in enumerate(randomisation_p(differences)):
        reference = stats.permutation_test(
            (differences[:, one],), np.mean, permutation_type="samples", n_resamples=100_000, vectorized=True, rng=1
        )
        # Both are shares of 100,000 draws: six standard errors of their difference.
        assert abs(p - reference.pvalue) < 6 * np.sqrt(2 * p * (1 - p) / 100_000) + 1e-4


def test_drawn_and_counted_agree() -> None:
    random = np.random.default_rng(7)
    values = random.normal(0.05, 0.3, EXACT_UP_TO + 1)
    [drawn] = randomisation_p(values[:, None])
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    counted = np.mean(np.abs(sums) >= abs(values.sum()) - 1e-12)
    assert drawn == pytest.approx(counted, abs=6 * np.sqrt(counted * (1 - counted) / 100_000) + 1e-4)


def test_the_same_seed_gives_the_same_and_others_change_nothing() -> None:
    differences = np.random.default_rng(8).normal(0.05, 0.3, (50, 5))
    together = randomisation_p(differences, rounds=2000)
    assert together.tolist() == randomisation_p(differences, rounds=2000).tolist()
    assert randomisation_p(differences[:, 2:3], rounds=2000)[0] == together[2]
    assert together.tolist() != randomisation_p(differences, rounds=2000, seed=1).tolist()


def test_p_is_never_zero() -> None:
    assert randomisation_p(np.ones((200, 1)), rounds=999)[0] == pytest.approx(1 / 1000)


def test_true_equals_are_called_different_as_often_as_said() -> None:
    random = np.random.default_rng(9)
    differences = random.normal(0, 1, (40, 400))
    share = float(np.mean(randomisation_p(differences, rounds=2000) < 0.05))
    assert 0.02 < share < 0.085  # 0.05, give or take three standard errors


def test_holm_by_hand() -> None:
    # Sorted: 0.01 · 4, 0.02 · 3, 0.03 · 2 = 0.06 but not below its forerunner's, 0.9 · 1.
    assert holm([0.03, 0.01, 0.9, 0.02]) == pytest.approx([0.06, 0.04, 0.9, 0.06])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([0.04]) == [0.04]
    assert holm([]) == []


def test_intervals_hold_the_mean_and_are_as_wide_as_they_should_be() -> None:
    differences = np.random.default_rng(10).normal(0.1, 0.5, (400, 2))
    low, high = bootstrap_interval(differences)
    mean, error = differences.mean(axis=0), differences.std(axis=0) / np.sqrt(400)
    assert np.all((low < mean) & (mean < high))
    assert low == pytest.approx(mean - 1.96 * error, abs=0.15 * error.max())
    assert high == pytest.approx(mean + 1.96 * error, abs=0.15 * error.max())


def test_an_interval_of_nothing() -> None:
    low, high = bootstrap_interval(np.zeros((5, 1)))
    assert (low.tolist(), high.tolist()) == ([0.0], [0.0])
