"""Masked-word losses in chunks against numpy, and RetroMAE's sum."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")

from torch import Tensor

from tests.train import plain
from trilens.errors import BadInput, TrainingFailed
from trilens.train.losses import masked_words as module
from trilens.train.losses.masked_words import retromae, word_loss


def drawn(seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """States, labels with gaps, and word embeddings."""
    generator = torch.Generator().manual_seed(seed)
    states = torch.randn(3, 5, 4, generator=generator, dtype=torch.float64).requires_grad_()
    labels = torch.randint(7, (3, 5), generator=generator)
    labels[torch.rand(3, 5, generator=generator) < 0.4] = -100
    table = torch.randn(7, 4, generator=generator, dtype=torch.float64).requires_grad_()
    return states, labels, table


def by_hand(states: Tensor, labels: Tensor, table: Tensor) -> float:
    rows = [
        (state, label)
        for text, own in zip(states.tolist(), labels.tolist(), strict=True)
        for state, label in zip(text, own, strict=True)
    ]
    asked = [(np.array(state), label) for state, label in rows if label != -100]
    return plain.cross_entropy(np.array([table.detach().numpy() @ state for state, _ in asked]), [label for _, label in asked])


@pytest.mark.parametrize("positions", [1, 4, 256])
def test_equals_numpy_for_any_chunk_size(positions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POSITIONS", positions)
    states, labels, table = drawn(1)
    assert word_loss(states, labels, lambda s: s @ table.T).item() == pytest.approx(by_hand(states, labels, table), abs=1e-12)
    assert torch.autograd.gradcheck(lambda s, t: word_loss(s, labels, lambda states: states @ t.T), (states, table))


def test_retromae_is_the_sum_of_two_means() -> None:
    states, labels, table = drawn(2)
    decoded, rebuilt, _ = drawn(3)
    expected = by_hand(states, labels, table) + by_hand(decoded, rebuilt, table)
    assert retromae(states, labels, decoded, rebuilt, lambda s: s @ table.T).item() == pytest.approx(expected, abs=1e-12)
    assert torch.autograd.gradcheck(
        lambda s, d, t: retromae(s, labels, d, rebuilt, lambda states: states @ t.T), (states, decoded, table)
    )


def test_logits_are_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POSITIONS", 2)
    states, labels, table = drawn(4)
    kept: list[tuple[int, ...]] = []

    def keep(tensor: Tensor) -> Tensor:
        kept.append(tuple(tensor.shape))
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        word_loss(states, labels, lambda s: s @ table.T)
    assert kept and not any(len(shape) == 2 and shape[1] == len(table) for shape in kept)


def test_no_labels() -> None:
    states, labels, table = drawn(5)
    with pytest.raises(BadInput, match="no position has a label"):
        word_loss(states, torch.full_like(labels, -100), lambda s: s @ table.T)
    with pytest.raises(BadInput, match="a label for each state"):
        word_loss(states, labels[:, :2], lambda s: s @ table.T)
    with pytest.raises(TrainingFailed, match="word_loss is nan"):
        word_loss(states * torch.nan, labels, lambda s: s @ table.T)
