"""`Mixture`: weights of sources, order and hold-out."""

import numpy as np
import pytest

from trilens.errors import BadInput
from trilens.text.document import Document
from trilens.train.data.mixture import Mixture
from trilens.train.data.raw_example import RawExample

from .make import make_examples


def mixture(weights: list[float]) -> Mixture:
    examples = make_examples([Document("p", "text")], [RawExample(f"q{index}", ["p"]) for index in range(30)])
    examples.columns.sources[20:] = 1
    return Mixture(examples, weights, seed=5)


def test_weights_set_the_frequency_of_examples() -> None:
    mixed = mixture([0.25, 2])
    counts = np.zeros((4, 30), int)
    for epoch in range(4):
        order = mixed.order(epoch)
        np.testing.assert_array_equal(order, mixture([0.25, 2]).order(epoch))
        np.add.at(counts[epoch], order, 1)
    assert counts[:, :20].sum(axis=1).tolist() == [5, 5, 5, 5]
    assert (counts[:, :20].sum(axis=0) == 1).all()  # four quarters make each example come once
    assert (counts[:, 20:] == 2).all()
    assert not np.array_equal(mixed.order(0), mixed.order(1))


def test_order_is_shuffled() -> None:
    order = mixture([1, 1]).order(0)
    assert sorted(order.tolist()) == list(range(30))
    assert (order[:20] >= 20).any()


def test_hold_out() -> None:
    mixed = mixture([1, 3])
    rest, held = mixed.hold_out(4, apart=False)
    assert len(held) == 4
    assert len(rest.examples) == 26
    assert len(rest.order(0)) == (rest.examples.columns.sources == 0).sum() + 3 * (rest.examples.columns.sources == 1).sum()


def test_invalid_mixtures() -> None:
    with pytest.raises(BadInput, match="expected positive numbers"):
        mixture([1, 0])
    with pytest.raises(BadInput, match="expected 0 or more"):
        mixture([1, 1]).order(-1)
