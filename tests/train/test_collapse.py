"""The collapse monitor warns once, and again only after recovery."""

import warnings

import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")

from torch import Tensor

from trilens.errors import BadInput
from trilens.train.collapse import CollapseMonitor, CollapseWarning


def batch(zeros: int, texts: int = 4) -> Tensor:
    vectors = torch.ones(texts, 5)
    vectors[:zeros] = 0
    return vectors


def test_share_of_zero_vectors() -> None:
    monitor = CollapseMonitor("lexical", limit=0.9, batches=2)
    assert monitor.share == 0
    assert monitor.watch(batch(1)) == 0.25 and monitor.share == 0.25
    assert monitor.watch(batch(2)) == 0.5 and monitor.share == 3 / 8
    assert monitor.watch(batch(0)) == 0 and monitor.share == 2 / 8  # the first batch is forgotten


def test_warns_once_until_it_recovers() -> None:
    monitor = CollapseMonitor("sparse", limit=0.5, batches=2)
    message = []
    for zeros in (4, 4, 4, 2, 3, 0, 0, 4, 4):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            monitor.watch(batch(zeros))
        message.append(len(caught))
    # not before two batches; shares then are 1, 1, 3/4, 5/8, 3/8, 0 (recovered), 1/2, 1
    assert message == [0, 1, 0, 0, 0, 0, 0, 0, 1]


def test_the_warning_says_what_to_do() -> None:
    with pytest.warns(
        CollapseWarning, match="75 % of the texts of the last 1 batches have all-zero weights in the head 'lexical'"
    ):
        CollapseMonitor("lexical", batches=1).watch(batch(3))


def test_tiny_weights_count_as_zero_and_gradients_are_unaffected() -> None:
    vectors = torch.full((2, 3), 1e-9, requires_grad=True)
    with pytest.warns(CollapseWarning):
        assert CollapseMonitor("sparse", batches=1).watch(vectors) == 1
    assert vectors.grad is None


def test_invalid_limits() -> None:
    for limit, batches in ((1.0, 5), (-0.1, 5), (0.5, 0)):
        with pytest.raises(BadInput, match="expected 0 <= limit < 1"):
            CollapseMonitor("sparse", limit, batches)
