"""InfoNCE by hand, against numpy, and edge cases."""

from math import exp, log

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")

from torch import Tensor

from tests.train import plain
from trilens.errors import BadInput, TrainingFailed
from trilens.train.losses.contrastive import contrast, in_columns, info_nce


def drawn(seed: int, queries: int, group: int, dims: int = 4) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    made = [torch.randn(*shape, dims, generator=generator, dtype=torch.float64) for shape in ((queries,), (queries, group))]
    return made[0].requires_grad_(), made[1].requires_grad_()


def test_by_hand() -> None:
    queries = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    docs = torch.tensor([[[2.0, 0.0]], [[0.0, 1.0]]])
    # scores (2, 0) and (0, 1): -log e²/(e² + 1) and -log e/(e + 1)
    expected = (log(1 + exp(-2)) + log(1 + exp(-1))) / 2
    assert info_nce(queries, docs, temperature=1).item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("group", [1, 2, 4])
@pytest.mark.parametrize("symmetric", [False, True])
def test_equals_numpy(group: int, symmetric: bool) -> None:
    queries, docs = drawn(1, queries=3, group=group)
    scores = np.array([[q @ d for d in plain.columns(docs.detach().numpy())] for q in queries.detach().numpy()]) / 0.3
    actual = info_nce(queries, docs, temperature=0.3, symmetric=symmetric)
    assert actual.item() == pytest.approx(plain.contrast(scores, symmetric), abs=1e-12)


@pytest.mark.parametrize("group", [1, 3])
@pytest.mark.parametrize("symmetric", [False, True])
def test_gradcheck(group: int, symmetric: bool) -> None:
    assert torch.autograd.gradcheck(lambda q, d: info_nce(q, d, temperature=0.5, symmetric=symmetric), drawn(2, 3, group))


def test_balanced_terms_have_equal_values() -> None:
    scores = torch.tensor([[1.0, 2.0, 0.5], [0.3, -1.0, 0.2]], dtype=torch.float64, requires_grad=True)
    forth, both = contrast(scores), contrast(scores, symmetric=True)
    balanced = contrast(scores, symmetric=True, balanced=True)
    assert balanced.item() == pytest.approx(2 * forth.item())
    by_one, by_both, actual = (torch.autograd.grad(value, scores, retain_graph=True)[0] for value in (forth, both, balanced))
    ratio = forth.item() / (both.item() - forth.item())
    np.testing.assert_allclose(actual, by_one + ratio * (by_both - by_one), atol=1e-12)


def test_single_query_without_negatives_has_zero_loss() -> None:
    queries, docs = drawn(3, queries=1, group=1)
    assert info_nce(queries, docs).item() == 0
    assert contrast(queries @ in_columns(docs).T, symmetric=True, balanced=True).item() == 0


def test_positives_come_first() -> None:
    docs = torch.arange(6).view(3, 2, 1)
    assert in_columns(docs).flatten().tolist() == [0, 2, 4, 1, 3, 5]


def test_half_precision_is_summed_in_float32() -> None:
    queries, docs = (tensor.to(torch.bfloat16) for tensor in drawn(4, queries=3, group=2))
    exact = info_nce(queries.double(), docs.double())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        actual = info_nce(queries, docs)
    assert actual.dtype == torch.float32
    assert actual.item() == pytest.approx(exact.item(), rel=1e-5)


@pytest.mark.parametrize(
    "queries, docs, message",
    [
        ((0, 4), (0, 1, 4), "no queries"),
        ((2, 4), (2, 0, 4), "the queries have no docs; expected a positive"),
        ((2, 4), (3, 1, 4), "expected a group of docs per query"),
        ((2, 4), (2,), "expected a group of docs per query"),
        ((2, 4), (2, 1, 5), "4 dimensions, docs 5"),
    ],
)
def test_invalid_batches(queries: tuple[int, ...], docs: tuple[int, ...], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        info_nce(torch.ones(queries), torch.ones(docs))


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_invalid_temperatures(temperature: float) -> None:
    with pytest.raises(BadInput, match="temperature is"):
        info_nce(torch.ones(1, 2), torch.ones(1, 1, 2), temperature=temperature)


def test_non_finite_loss_is_an_error() -> None:
    queries, docs = drawn(5, queries=2, group=2)
    with pytest.raises(TrainingFailed, match="info_nce is nan; expected a finite number: lower the learning rate"):
        info_nce(queries * torch.nan, docs)
