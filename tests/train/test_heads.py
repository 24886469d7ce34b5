"""Heads against numpy loops: masks, repeated words and tied embeddings."""

from math import erf

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")

from torch import Tensor

from trilens.errors import BadInput
from trilens.train.heads import (
    DenseHeadModule,
    LexicalHeadModule,
    MultiHeadModule,
    SparseHeadModule,
    bags_of_tokens,
    kept_tokens,
    lexical_vectors,
    top_or_own,
)

HIDDEN, WORDS = 6, 20


def drawn(seed: int, texts: int = 3, tokens: int = 5) -> tuple[Tensor, Tensor, Tensor]:
    """States, ids and a mask of texts of different lengths, the last with one token."""
    generator = torch.Generator().manual_seed(seed)
    states = torch.randn(texts, tokens, HIDDEN, generator=generator, dtype=torch.float64).requires_grad_()
    ids = torch.randint(2, 8, (texts, tokens), generator=generator)
    lengths = torch.linspace(tokens, 1, texts).round()
    return states, ids, torch.arange(tokens)[None] < lengths[:, None]


def unit(vector: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[float]:
    values: list[float] = (vector / np.sqrt((vector**2).sum())).tolist()
    return values


def test_dense() -> None:
    states, _, mask = drawn(1)
    rows = states.detach().numpy()
    np.testing.assert_allclose(DenseHeadModule("cls")(states, mask).detach(), [unit(row[0]) for row in rows], atol=1e-12)
    means = [unit(row[kept].mean(0)) for row, kept in zip(rows, mask.numpy(), strict=True)]
    np.testing.assert_allclose(DenseHeadModule("mean")(states, mask).detach(), means, atol=1e-12)
    for head in (DenseHeadModule("cls"), DenseHeadModule("mean")):
        assert torch.autograd.gradcheck(head, (states, mask))
    with pytest.raises(BadInput, match="pooling is 'max'"):
        DenseHeadModule("max")  # type: ignore[arg-type]


def test_mean_over_no_positions_is_zero() -> None:
    states, _, mask = drawn(2)
    mask[1] = False
    assert not DenseHeadModule("mean")(states, mask)[1].any()
    assert torch.autograd.grad(DenseHeadModule("mean")(states, mask).sum(), states)[0].isfinite().all()


def test_lexical() -> None:
    states, ids, mask = drawn(3)
    left_out = torch.zeros(WORDS, dtype=torch.bool)
    left_out[[3, 4]] = True
    head = LexicalHeadModule(HIDDEN).double()
    actual = lexical_vectors(head(states), ids, kept_tokens(ids, mask, left_out), WORDS)
    expected = np.zeros((3, WORDS))
    weight, bias = head.linear.weight.detach().numpy()[0], head.linear.bias.item()
    for text in range(3):
        for index in range(5):
            term = int(ids[text, index])
            if mask[text, index] and term not in (3, 4):
                expected[text, term] = max(expected[text, term], states[text, index].detach().numpy() @ weight + bias, 0)
    np.testing.assert_allclose(actual.detach(), expected, atol=1e-12)
    assert not actual[:, [3, 4]].any()


def test_gradient_of_a_repeated_token_goes_to_the_higher_weight() -> None:
    weights = torch.tensor([[0.5, 2.0, 1.0]], requires_grad=True)
    actual = lexical_vectors(weights, torch.tensor([[7, 7, 5]]), torch.ones(1, 3, dtype=torch.bool), WORDS)
    assert actual[0, 7] == 2 and actual[0, 5] == 1 and actual.count_nonzero() == 2
    (actual * torch.arange(WORDS)).sum().backward()
    assert weights.grad is not None and weights.grad.tolist() == [[0, 7, 5]]


def test_lexical_gradcheck() -> None:
    states, ids, mask = drawn(4)
    head = LexicalHeadModule(HIDDEN).double()
    torch.nn.init.ones_(head.linear.bias)
    kept = kept_tokens(ids, mask, torch.zeros(WORDS, dtype=torch.bool))
    assert torch.autograd.gradcheck(lambda s: lexical_vectors(head(s), ids, kept, WORDS), (states,))


@pytest.mark.parametrize("normalised", [False, True])
def test_sparse(normalised: bool) -> None:
    states, _, mask = drawn(5)
    embeddings = torch.randn(WORDS, HIDDEN, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    head = SparseHeadModule(HIDDEN, shift=7, normalised=normalised).double()
    torch.nn.init.uniform_(head.norm.weight, 0.5, 2)
    scale = head.norm.weight.detach().numpy()
    expected = []
    for row, kept in zip(states.detach().numpy(), mask.numpy(), strict=True):
        normed = [(s - s.mean()) / np.sqrt(s.var() + 1e-5) * scale for s in row[kept]]
        products = [[n @ word for n in normed] for word in embeddings.numpy()[7:]]
        weights = np.array([max(x + 1 if x > 0 else np.exp(x) for x in own) for own in products])
        expected.append(unit(weights) if normalised else weights.tolist())
    np.testing.assert_allclose(head(states, mask, embeddings).detach(), expected, atol=1e-10)
    assert torch.autograd.gradcheck(lambda s, e: head(s, mask, e), (states, embeddings.requires_grad_()))


def test_sparse_transform() -> None:
    states, _, mask = drawn(12)
    embeddings = torch.randn(WORDS, HIDDEN, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    head = SparseHeadModule(HIDDEN, shift=7, transform=True).double()
    matrix, bias = head.transform.weight.detach().numpy(), head.transform.bias.detach().numpy()
    changed = np.array([[[z * (1 + erf(z / 2**0.5)) / 2 for z in matrix @ s + bias] for s in row] for row in states.tolist()])
    plain = SparseHeadModule(HIDDEN, shift=7).double()(torch.from_numpy(changed), mask, embeddings)
    np.testing.assert_allclose(head(states, mask, embeddings).detach(), plain.detach(), atol=1e-10)
    assert torch.autograd.gradcheck(lambda s: head(s, mask, embeddings), (states,))


def test_sparse_biases() -> None:
    states, _, mask = drawn(13)
    embeddings = torch.randn(WORDS, HIDDEN, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    head, plain = SparseHeadModule(HIDDEN, shift=7, biases=WORDS - 7).double(), SparseHeadModule(HIDDEN, shift=7).double()
    assert torch.equal(head(states, mask, embeddings), plain(states, mask, embeddings))
    torch.nn.init.normal_(head.bias)
    given = states.detach(), mask, embeddings
    weights = plain(*given)
    best = torch.where(weights > 1, weights - 1, weights.log())
    torch.testing.assert_close(head(*given), torch.nn.functional.elu(best + head.bias) + 1)
    assert torch.autograd.gradcheck(lambda bias: torch.func.functional_call(head, {"bias": bias}, given), (head.bias,))


def test_embeddings_stay_tied() -> None:
    table = torch.nn.Embedding(WORDS, HIDDEN)
    head = SparseHeadModule(HIDDEN, shift=7)
    states, ids, mask = drawn(6)
    head(table(ids), mask, table.weight).sum().backward()
    assert set(dict(head.named_parameters())) == {"norm.weight", "norm.bias"}
    assert table.weight.grad is not None and table.weight.grad[7:].all() and not table.weight.grad[:2].any()
    with pytest.raises(BadInput, match="shift is 20"):
        SparseHeadModule(HIDDEN, shift=20)(states.float(), mask, table.weight)


def test_sparse_without_positions_is_zero() -> None:
    states, _, mask = drawn(7)
    mask[1] = False
    embeddings = torch.randn(WORDS, HIDDEN, dtype=torch.float64, requires_grad=True)
    for normalised in (False, True):
        actual = SparseHeadModule(HIDDEN, shift=0, normalised=normalised).double()(states, mask, embeddings)
        assert not actual[1].any() and (actual[[0, 2]] > 0).all()
        grads = torch.autograd.grad(actual.square().sum(), (states, embeddings))
        assert all(grad.isfinite().all() for grad in grads)


@pytest.mark.parametrize("normalised", [False, True])
def test_multi(normalised: bool) -> None:
    states, ids, mask = drawn(8)
    left_out = torch.zeros(WORDS, dtype=torch.bool)
    left_out[5] = True
    kept = kept_tokens(ids, mask, left_out)
    head = MultiHeadModule(HIDDEN, 4, normalised=normalised).double()
    assert head.linear.bias is None
    matrix = head.linear.weight.detach().numpy()
    expected = np.zeros((3, 5, 4))
    for text in range(3):
        for index in range(5):
            if mask[text, index] and ids[text, index] != 5:
                vector = matrix @ states[text, index].detach().numpy()
                expected[text, index] = unit(vector) if normalised else vector
    np.testing.assert_allclose(head(states, kept).detach(), expected, atol=1e-12)
    assert torch.autograd.gradcheck(lambda s: head(s, kept), (states,))


@pytest.mark.parametrize("normalised", [False, True])
def test_weighted_queries(normalised: bool) -> None:
    states, _, mask = drawn(10)
    head = MultiHeadModule(HIDDEN, 4, normalised=normalised, weighted=True).double()
    plain = MultiHeadModule(HIDDEN, 4, normalised=normalised).double()
    plain.linear = head.linear
    weight, bias = head.weigh.weight.detach().numpy()[0], head.weigh.bias.item()
    expected = plain(states, mask).detach().numpy()
    np.testing.assert_array_equal(head(states, mask).detach(), expected)
    for text in range(3):
        for index in range(5):
            expected[text, index] *= np.log1p(np.exp(states[text, index].detach().numpy() @ weight + bias))
    np.testing.assert_allclose(head(states, mask, queries=True).detach(), expected, atol=1e-12)
    assert torch.autograd.gradcheck(lambda s: head(s, mask, queries=True), (states,))


def test_docs_give_query_weights_a_zero_gradient() -> None:
    """Not none: DDP waits for a gradient of every parameter."""
    states, _, mask = drawn(11)
    head = MultiHeadModule(HIDDEN, 4, weighted=True).double()
    for queries in (False, True):
        gradients = torch.autograd.grad(head(states, mask, queries=queries).square().sum(), tuple(head.weigh.parameters()))
        assert all(bool(gradient.any()) == queries for gradient in gradients)


def test_kept_tokens() -> None:
    ids, mask = torch.tensor([[1, 4, 5, 2, 0]]), torch.tensor([[1, 1, 1, 1, 0]])
    left_out = torch.tensor([False, False, False, False, False, True])
    assert kept_tokens(ids, mask, left_out).tolist() == [[True, True, False, True, False]]
    assert kept_tokens(ids, mask, left_out, skip_first=True).tolist() == [[False, True, False, True, False]]
    assert mask.tolist() == [[1, 1, 1, 1, 0]]


def test_bags_of_tokens() -> None:
    ids, mask = torch.tensor([[1, 4, 4, 5, 6], [5, 0, 0, 0, 0]]), torch.tensor([[1, 1, 1, 1, 0], [1, 0, 0, 0, 0]])
    assert bags_of_tokens(ids, mask, terms=4, shift=3).tolist() == [[0, 1, 1, 0], [0, 0, 1, 0]]
    assert bags_of_tokens(ids, mask, terms=7).tolist() == [[0, 1, 0, 0, 1, 1, 0], [0, 0, 0, 0, 0, 1, 0]]
    half = 0.5**0.5
    np.testing.assert_allclose(bags_of_tokens(ids, mask, 4, 3, normalised=True), [[0, half, half, 0], [0, 0, 1, 0]])


def test_top_or_own() -> None:
    weights = torch.tensor([[0.1, 0.9, 0.5, 0.7], [4.0, 3.0, 2.0, 1.0]])
    bags = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    assert top_or_own(weights, bags, 2).long().tolist() == [[1, 1, 0, 1], [1, 1, 0, 0]]
    assert top_or_own(weights, bags, 0).long().tolist() == [[1, 0, 0, 0], [0, 0, 0, 0]]
    assert top_or_own(weights, bags, 99).all()
    with pytest.raises(BadInput, match="top is -1"):
        top_or_own(weights, bags, -1)


def test_padding_changes_nothing() -> None:
    states, ids, mask = drawn(9)
    padded = torch.cat([states, torch.full((3, 2, HIDDEN), 50.0, dtype=torch.float64)], 1)
    more, wider = torch.nn.functional.pad(ids, (0, 2)), torch.nn.functional.pad(mask, (0, 2))
    embeddings = torch.randn(WORDS, HIDDEN, dtype=torch.float64)
    sparse, lexical = SparseHeadModule(HIDDEN, shift=7).double(), LexicalHeadModule(HIDDEN).double()
    nothing = torch.zeros(WORDS, dtype=torch.bool)

    def words(states: Tensor, ids: Tensor, mask: Tensor) -> Tensor:
        return lexical_vectors(lexical(states), ids, kept_tokens(ids, mask, nothing), WORDS)

    for head in (DenseHeadModule("cls"), DenseHeadModule("mean"), lambda s, m: sparse(s, m, embeddings)):
        np.testing.assert_allclose(head(padded, wider).detach(), head(states, mask).detach(), atol=1e-12)
    np.testing.assert_allclose(words(padded, more, wider).detach(), words(states, ids, mask).detach(), atol=1e-12)
    assert torch.equal(bags_of_tokens(more, wider, WORDS), bags_of_tokens(ids, mask, WORDS))
