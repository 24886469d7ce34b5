"""GradCache has the loss and gradients of encoding all texts at once."""

import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")

from torch import Tensor

from tests.train.toy import ToyModel, texts
from trilens.train.grad_cache import Features, cached_loss, encode, join, split


def loss(actual: list[Features]) -> Tensor:
    queries, docs = actual
    scores = queries["sentence_embedding"] @ docs["sentence_embedding"].T + queries["sparse"] @ docs["sparse"].T
    late = torch.einsum("qth,dsh->qdts", queries["multi"], docs["multi"]).masked_fill(~docs["multi_mask"][None, :, None], -9)
    late = late.masked_fill(~queries["multi_mask"][:, None, :, None], 0)
    return (scores + late.amax(-1).sum(-1)).logsumexp(1).mean()


def gradients(model: ToyModel) -> list[Tensor]:
    return [parameter.grad.clone() for parameter in model.parameters()]


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_sub_batches_give_equal_loss_and_gradients(size: int) -> None:
    sides = [texts(5, 4, 1), texts(10, 7, 2)]
    model = ToyModel()
    whole = loss([encode(model, side) for side in sides])
    whole.backward()
    wanted = gradients(model)
    model.zero_grad()
    value = cached_loss(model, sides, size, loss)
    (3 * value).backward()
    assert value.item() == pytest.approx(whole.item(), abs=1e-6)
    for actual, expected in zip(gradients(model), wanted, strict=True):
        torch.testing.assert_close(actual, 3 * expected)


def test_dropout_is_the_same_in_both_passes() -> None:
    model = ToyModel(dropout=0.5)
    seen: list[Tensor] = []
    model.dropout.register_forward_hook(lambda module, inputs, output: seen.append(output.detach().clone()))
    torch.manual_seed(5)
    cached_loss(model, [texts(4, 5, 1), texts(4, 5, 2)], 2, loss).backward()
    half = len(seen) // 2
    assert half == 4
    for first, second in zip(seen[:half], seen[half:], strict=True):
        assert torch.equal(first, second)


def test_without_gradients() -> None:
    model, sides = ToyModel(), [texts(3, 4, 1), texts(3, 4, 2)]
    with torch.no_grad():
        assert cached_loss(model, sides, 2, loss).item() == pytest.approx(loss([encode(model, side) for side in sides]).item())


def test_split_removes_common_padding() -> None:
    side = {
        "input_ids": torch.tensor([[1, 2, 3], [4, 5, 0], [6, 0, 0]]),
        "attention_mask": torch.tensor([[1, 1, 1], [1, 1, 0], [1, 0, 0]]),
        "kept": torch.tensor([[True] * 3, [True, True, False], [True, True, False]]),  # a position that only gets a vector
    }
    first, second = split(side, 2)
    assert first["input_ids"].tolist() == [[1, 2, 3], [4, 5, 0]]
    assert second["input_ids"].tolist() == [[6, 0]]


def test_join_pads_with_zeros() -> None:
    parts = [
        {"multi": torch.ones(1, 2, 3), "multi_mask": torch.ones(1, 2)},
        {"multi": torch.ones(2, 4, 3), "multi_mask": torch.ones(2, 4)},
    ]
    joined = join(parts)
    assert joined["multi"].shape == (3, 4, 3)
    assert joined["multi_mask"].sum(1).tolist() == [2, 4, 4]
