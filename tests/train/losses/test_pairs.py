"""Losses of pair scores against numpy."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")

from tests.train import plain
from trilens.errors import BadInput
from trilens.train.losses.pairs import binary_cross_entropy, group_cross_entropy

SCORES = [[2.0, -1.0, 0.5], [-0.5, 3.0, 0.0]]


def test_group_cross_entropy_equals_numpy() -> None:
    expected = np.mean([-np.log(plain.softmax(np.array(row))[0]) for row in SCORES])
    assert group_cross_entropy(torch.tensor(SCORES)).item() == pytest.approx(expected, abs=1e-6)


def test_binary_cross_entropy_equals_numpy() -> None:
    """The positive counts as much as all negatives of its group."""
    sigmoid = 1 / (1 + np.exp(-np.array(SCORES)))
    expected = np.mean([(-np.log(row[0]) - np.log(1 - row[1:]).mean()) / 2 for row in sigmoid])
    assert binary_cross_entropy(torch.tensor(SCORES)).item() == pytest.approx(expected, abs=1e-6)
    alone = binary_cross_entropy(torch.tensor([[2.0]])).item()
    assert alone == pytest.approx(np.log1p(np.exp(-2.0)) / 2, abs=1e-6)


@pytest.mark.parametrize("shape", [(3,), (0, 2), (2, 1)])
def test_groups_without_negatives(shape: tuple[int, ...]) -> None:
    with pytest.raises(BadInput, match="at least one negative"):
        group_cross_entropy(torch.zeros(shape))
