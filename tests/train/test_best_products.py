"""The fused maximum has the values and gradients of the plain one, for any masks, tiles and groups."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")

from torch import Tensor

from trilens.errors import BadInput
from trilens.train import best_products as module
from trilens.train.best_products import best_products


def plain(states: Tensor, words: Tensor, mask: Tensor) -> Tensor:
    """The unfused computation, with a product per position and word."""
    return (states @ words.T).masked_fill(~mask.bool()[:, :, None], -torch.inf).amax(1)


def drawn(seed: int, texts: int, tokens: int, words: int, dims: int, dtype: object = None) -> tuple[Tensor, Tensor, Tensor]:
    """States, words and a mask that keeps the first token of every text."""
    generator = torch.Generator().manual_seed(seed)
    states = torch.randn(texts, tokens, dims, generator=generator, dtype=dtype or torch.float32)
    table = torch.randn(words, dims, generator=generator, dtype=dtype or torch.float32)
    mask = torch.rand(texts, tokens, generator=generator) > 0.4
    mask[:, 0] = True
    return states.requires_grad_(), table.requires_grad_(), mask


def gradients(actual: Tensor, *inputs: Tensor) -> list[Tensor]:
    """Gradients of a fixed weighted sum of `found`."""
    weights = torch.randn(actual.shape, generator=torch.Generator().manual_seed(9), dtype=actual.dtype)
    return list(torch.autograd.grad((actual * weights).sum(), inputs))


def test_by_hand() -> None:
    states = torch.tensor([[[1.0, 0.0], [0.0, 2.0], [5.0, 5.0]]])
    words = torch.tensor([[1.0, 1.0], [3.0, -1.0]])
    mask = torch.tensor([[1, 1, 0]])
    # ⟨(1,0),(1,1)⟩ = 1, ⟨(0,2),(1,1)⟩ = 2; ⟨(1,0),(3,-1)⟩ = 3, ⟨(0,2),(3,-1)⟩ = -2; the third position is masked
    assert best_products(states, words, mask).tolist() == [[2.0, 3.0]]


@pytest.mark.parametrize("texts, tokens, words", [(1, 1, 1), (5, 7, 11), (3, 300, 70), (40, 16, 200), (2, 600, 1500)])
def test_equals_the_unfused_computation(texts: int, tokens: int, words: int) -> None:
    states, table, mask = drawn(1, texts, tokens, words, dims=8)
    fused, slow = best_products(states, table, mask), plain(states, table, mask)
    np.testing.assert_allclose(fused.detach().numpy(), slow.detach().numpy(), atol=1e-5)
    for ours, theirs in zip(gradients(fused, states, table), gradients(slow, states, table), strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=1e-4)


def test_tiles_and_groups_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    states, table, mask = drawn(2, texts=9, tokens=20, words=333, dims=6, dtype=torch.float64)
    whole = best_products(states, table, mask)
    expected = gradients(whole, states, table)
    for group, tile in ((1, 1), (50, 700), (10**6, 10**9)):
        monkeypatch.setattr(module, "GROUP_TOKENS", group)
        monkeypatch.setattr(module, "TILE", {"cpu": tile})
        actual = best_products(states, table, mask)
        np.testing.assert_allclose(actual.detach().numpy(), whole.detach().numpy(), atol=1e-12)
        for ours, theirs in zip(gradients(actual, states, table), expected, strict=True):
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=1e-12)


@pytest.mark.parametrize("scale", [torch.tensor(0.7), torch.tensor([0.5, -1.0, 2.0, 0.1])])
def test_gradcheck(scale: Tensor) -> None:
    states, table, mask = drawn(3, texts=3, tokens=5, words=6, dims=4, dtype=torch.float64)
    scale = scale.double().requires_grad_()
    assert torch.autograd.gradcheck(
        lambda *inputs: best_products(inputs[0], inputs[1], mask, inputs[2]), (states, table, scale)
    )


def test_padding_is_ignored() -> None:
    states, table, mask = drawn(4, texts=3, tokens=5, words=9, dims=4)
    padded = torch.cat([states, torch.full((3, 4, 4), 100.0)], 1)
    wider = torch.cat([mask, torch.zeros(3, 4, dtype=torch.bool)], 1)
    assert best_products(padded, table, wider).tolist() == best_products(states, table, mask).tolist()


def test_texts_are_independent() -> None:
    states, table, mask = drawn(5, texts=6, tokens=9, words=50, dims=4, dtype=torch.float64)
    alone = torch.cat([best_products(states[index : index + 1], table, mask[index : index + 1]) for index in range(6)])
    np.testing.assert_allclose(best_products(states, table, mask).detach(), alone.detach(), atol=1e-12)


@pytest.mark.parametrize("empty", [[0], [1], [2], [0, 1], [1, 2]])
def test_text_without_positions(empty: list[int]) -> None:
    states, table, mask = drawn(6, texts=3, tokens=4, words=5, dims=3)
    mask[empty] = False
    assert (best_products(states, table, mask)[empty] == -torch.inf).all()
    rest = [text for text in range(3) if text not in empty]
    expected = gradients(plain(states[rest], table, mask[rest]).exp(), states, table)
    actual = gradients(best_products(states, table, mask).exp()[rest], states, table)
    for ours, theirs in zip(actual, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-4)
    of_states, of_words = gradients(best_products(states, table, mask).nan_to_num(neginf=0), states, table)
    assert of_words.isfinite().all() and not of_states[empty].any()


def test_only_masked_texts() -> None:
    states, table, mask = drawn(7, texts=2, tokens=4, words=5, dims=3)
    actual = best_products(states, table, torch.zeros_like(mask))
    assert (actual == -torch.inf).all()
    assert not any(grad.any() for grad in gradients(actual.exp(), states, table))


def test_no_product_per_position_and_word_is_stored() -> None:
    states, table, mask = drawn(8, texts=4, tokens=64, words=500, dims=8)
    kept: list[int] = []

    def keep(tensor: Tensor) -> Tensor:
        kept.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        best_products(states, table, mask)
    assert max(kept) <= max(states.numel(), table.numel(), 4 * 500)


def test_autocast_is_ignored() -> None:
    states, table, mask = drawn(9, texts=2, tokens=5, words=7, dims=16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        actual = best_products(states, table, mask)
    np.testing.assert_allclose(actual.detach(), plain(states, table, mask).detach(), atol=1e-5)


def test_nan_propagates() -> None:
    states, table, mask = drawn(10, texts=2, tokens=3, words=4, dims=2)
    broken = states.detach().clone()
    broken[1, 0, 0] = torch.nan
    actual = best_products(broken, table, mask)
    assert actual[1].isnan().all() and actual[0].isfinite().all()


def test_invalid_shapes() -> None:
    states, table, mask = drawn(11, texts=2, tokens=3, words=4, dims=2)
    for wrong in ((states, table[:, :1], mask), (states, table, mask[:, :2]), (states[0], table, mask)):
        with pytest.raises(BadInput, match="expected \\(texts, tokens, dims\\)"):
            best_products(*wrong)
