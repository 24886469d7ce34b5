"""Paired tests against arithmetic by hand, enumeration of all sign assignments in plain Python, and scipy."""

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from trilens.evaluate.significance import EXACT_UP_TO, bootstrap_interval, holm, randomisation_p


def column(*values: float) -> NDArray[np.float64]:
    return np.array(values, np.float64)[:, None]


def by_enumeration(differences: NDArray[np.float64]) -> float:
    """p-value over all sign assignments, one by one."""
    observed = abs(float(differences.sum()))
    sums = [
        abs(sum(sign * value for sign, value in zip(signs, differences, strict=True))) for signs in _signs(len(differences))
    ]
    return float(np.mean([total >= observed - 1e-12 for total in sums]))


def _signs(count: int) -> list[tuple[int, ...]]:
    return list(product((1, -1), repeat=count))


def test_p_values_by_hand() -> None:
    # Of the eight sign assignments of 3, 2, 1 only + + + and - - - reach 6.
    assert randomisation_p(column(3, 2, 1)).tolist() == [0.25]
    # 3, 2, -1 sum to 4: + + +, + + - and their opposites.
    assert randomisation_p(column(3, 2, -1)).tolist() == [0.5]


def test_identical_runs_have_p_one() -> None:
    assert randomisation_p(np.zeros((300, 2))).tolist() == [1.0, 1.0]
    assert randomisation_p(column(0.5, -0.5)).tolist() == [1.0]


def test_ties_do_not_change_p() -> None:
    few = column(0.3, 0.2, -0.1, 0.4)
    many = np.concatenate([few, np.zeros((500, 1))])
    assert randomisation_p(many).tolist() == randomisation_p(few).tolist()


@pytest.mark.parametrize("queries", [1, 2, 5, 9, 12])
def test_few_queries_are_enumerated(queries: int) -> None:
    random = np.random.default_rng(queries)
    differences = random.normal(0.1, 0.3, (queries, 3)).round(1)  # rounded, so that sums are often equal
    expected = [by_enumeration(differences[:, index]) for index in range(3)]
    assert randomisation_p(differences).tolist() == pytest.approx(expected, abs=1e-15)


def test_exact_p_values_equal_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    random = np.random.default_rng(5)
    differences = random.normal(0.1, 0.3, (15, 4)).round(2)
    for index, p in enumerate(randomisation_p(differences)):
        reference = stats.permutation_test((differences[:, index],), np.mean, permutation_type="samples", n_resamples=np.inf)
        assert p == pytest.approx(reference.pvalue, abs=1e-12)


def test_sampled_p_values_are_near_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    random = np.random.default_rng(6)
    differences = random.normal(0.02, 0.2, (EXACT_UP_TO * 4, 3))
    for index, p in enumerate(randomisation_p(differences)):
        reference = stats.permutation_test(
            (differences[:, index],), np.mean, permutation_type="samples", n_resamples=100_000, vectorized=True, rng=1
        )
        # Both are fractions of 100,000 samples: six standard errors of their difference.
        assert abs(p - reference.pvalue) < 6 * np.sqrt(2 * p * (1 - p) / 100_000) + 1e-4


def test_sampled_and_exact_p_values_agree() -> None:
    random = np.random.default_rng(7)
    values = random.normal(0.05, 0.3, EXACT_UP_TO + 1)
    [sampled] = randomisation_p(values[:, None])
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    exact = np.mean(np.abs(sums) >= abs(values.sum()) - 1e-12)
    assert sampled == pytest.approx(exact, abs=6 * np.sqrt(exact * (1 - exact) / 100_000) + 1e-4)


def test_p_depends_on_the_seed_but_not_on_other_comparisons() -> None:
    differences = np.random.default_rng(8).normal(0.05, 0.3, (50, 5))
    together = randomisation_p(differences, rounds=2000)
    assert together.tolist() == randomisation_p(differences, rounds=2000).tolist()
    assert randomisation_p(differences[:, 2:3], rounds=2000)[0] == together[2]
    assert together.tolist() != randomisation_p(differences, rounds=2000, seed=1).tolist()


def test_p_is_never_zero() -> None:
    assert randomisation_p(np.ones((200, 1)), rounds=999)[0] == pytest.approx(1 / 1000)


def test_the_false_positive_rate_is_the_significance_level() -> None:
    random = np.random.default_rng(9)
    differences = random.normal(0, 1, (40, 400))
    share = float(np.mean(randomisation_p(differences, rounds=2000) < 0.05))
    assert 0.02 < share < 0.085  # 0.05 within three standard errors


def test_holm_by_hand() -> None:
    # Sorted: 0.01 · 4, 0.02 · 3, 0.03 · 2 = 0.06 but not below its predecessor, 0.9 · 1.
    assert holm([0.03, 0.01, 0.9, 0.02]) == pytest.approx([0.06, 0.04, 0.9, 0.06])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([0.04]) == [0.04]
    assert holm([]) == []


def test_bootstrap_intervals_approximate_the_normal_interval() -> None:
    differences = np.random.default_rng(10).normal(0.1, 0.5, (400, 2))
    low, high = bootstrap_interval(differences)
    mean, error = differences.mean(axis=0), differences.std(axis=0) / np.sqrt(400)
    assert np.all((low < mean) & (mean < high))
    assert low == pytest.approx(mean - 1.96 * error, abs=0.15 * error.max())
    assert high == pytest.approx(mean + 1.96 * error, abs=0.15 * error.max())


def test_the_interval_of_zero_differences_is_zero() -> None:
    low, high = bootstrap_interval(np.zeros((5, 1)))
    assert (low.tolist(), high.tolist()) == ([0.0], [0.0])
