"""RetroMAE: masks, labels, and the decoder against numpy."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")

from torch import Generator, Tensor

from tests.train.plain import Floats
from trilens.errors import BadInput
from trilens.train.retromae import RetroDecoder, WordHead, hide, masked_words, rebuilt_labels, visible_tokens

WORDS = torch.tensor(
    [-1, 0, 1, 1, 2, 3, 3, 3, 4, 5, -1, -1]
)  # a special token, six words of nine tokens, another special one, padding


def dice(seed: int = 0) -> Generator:
    return torch.Generator().manual_seed(seed)


def test_masks_cover_whole_words() -> None:
    masks = masked_words(WORDS, 0.4, 200, dice())
    assert masks.shape == (200, 12)
    assert not masks[:, [0, 10, 11]].any()
    assert (
        torch.equal(masks[:, 2], masks[:, 3])
        and torch.equal(masks[:, 5], masks[:, 6])
        and torch.equal(masks[:, 5], masks[:, 7])
    )
    counts = masks.sum(1)
    assert counts.min() >= 1 and counts.max() <= round(0.4 * 9)
    assert masks.any(0)[[1, 2, 4, 5, 8, 9]].all()  # every word's turn comes
    assert len({tuple(row) for row in masks.tolist()}) > 5


def test_first_word_is_masked_even_if_longer_than_the_share() -> None:
    assert masked_words(torch.tensor([-1, 0, 0, 0, 0, -1]), 0.1, 1, dice()).tolist() == [[False, True, True, True, True, False]]


def test_texts_without_words_have_no_mask() -> None:
    assert not masked_words(torch.tensor([-1, -1]), 0.5, 3, dice()).any()


def test_word_numbers_in_any_order() -> None:
    masks = masked_words(torch.tensor([7, 3, 7, 3]), 0.5, 50, dice())
    assert torch.equal(masks[:, 0], masks[:, 2]) and torch.equal(masks[:, 1], ~masks[:, 0])


def test_same_seed_same_masks() -> None:
    assert torch.equal(masked_words(WORDS, 0.4, 9, dice(3)), masked_words(WORDS, 0.4, 9, dice(3)))


def test_visible_tokens() -> None:
    words = torch.stack([WORDS, torch.tensor([-1, 0, -1, *[-1] * 9])])
    mask = torch.arange(12)[None] < torch.tensor([[11], [3]])
    visible = visible_tokens(words, mask, dice())
    assert visible.shape == (2, 12, 12)
    assert not visible.diagonal(dim1=1, dim2=2).any()  # never oneself
    assert not visible[0, :, 11].any() and not visible[1, :, 3:].any()  # never padding
    assert visible[:, 1:, 0].all()  # always the first state
    inner = visible[0, 1:10, 1:10]
    assert 0.3 < inner.float().mean() < 0.75
    assert len({tuple(row) for row in visible[0].tolist()}) > 5  # rows have masks of their own


def test_hide() -> None:
    ids = torch.arange(10, 5010).view(5, 1000)
    chosen = torch.zeros(5, 1000, dtype=torch.bool)
    chosen[:, ::2] = True
    given, labels = hide(ids, chosen, mask_id=3, vocabulary=6000, generator=dice())
    assert torch.equal(given[~chosen], ids[~chosen]) and (labels[~chosen] == -100).all()
    assert torch.equal(labels[chosen], ids[chosen])
    masked, same = (given[chosen] == 3).float().mean().item(), (given[chosen] == ids[chosen]).float().mean().item()
    assert masked == pytest.approx(0.8, abs=0.03) and same == pytest.approx(0.1, abs=0.03)


def test_decoder_labels() -> None:
    ids = torch.tensor([[5, 6, 7, 8], [5, 6, 7, 0], [5, 0, 0, 0]])
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0], [1, 0, 0, 0]])
    assert rebuilt_labels(ids, mask).tolist() == [[-100, 6, 7, -100], [-100, 6, -100, -100], [-100] * 4]


def test_decoder_equals_numpy() -> None:
    torch.manual_seed(0)
    decoder = RetroDecoder(hidden=4, heads=2, inner=6).double().eval()
    queries, memory = torch.randn(2, 1, 3, 4, dtype=torch.float64)
    visible = torch.tensor([[[False, True, False], [True, False, True], [True, True, False]]])
    own = {name: value.detach().numpy() for name, value in decoder.named_parameters()}

    def linear(name: str, x: Floats) -> Floats:
        return x @ own[f"{name}.weight"].T + own[f"{name}.bias"]

    def norm(x: Floats) -> Floats:
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)

    q, m = queries[0].numpy(), memory[0].numpy()
    looked = np.zeros((3, 4))
    for head in (slice(0, 2), slice(2, 4)):
        for row in range(3):
            seen = np.flatnonzero(visible[0, row].numpy())
            logits = linear("key", m)[seen, head] @ linear("query", q)[row, head] / np.sqrt(2)
            shares = np.exp(logits) / np.exp(logits).sum()
            looked[row, head] = shares @ linear("value", m)[seen, head]
    states = norm(q + linear("out", looked))
    grown = torch.nn.functional.gelu(torch.from_numpy(linear("grow", states))).numpy()
    expected = norm(states + linear("shrink", grown))
    np.testing.assert_allclose(decoder(queries, memory, visible)[0].detach(), expected, atol=1e-10)


def test_decoder_ignores_hidden_tokens() -> None:
    torch.manual_seed(1)
    decoder = RetroDecoder(hidden=4, heads=2, inner=6).double().eval()
    queries, memory = torch.randn(2, 2, 5, 4, dtype=torch.float64)
    visible = visible_tokens(
        torch.tensor([[-1, 0, 1, 2, -1], [-1, 0, 1, -1, -1]]), torch.tensor([[1] * 5, [1, 1, 1, 1, 0]]), dice()
    )
    before = decoder(queries, memory, visible)
    for token in range(1, 5):
        changed = memory.clone()
        changed[:, token] += 100
        same = (decoder(queries, changed, visible) - before).abs().amax(-1) < 1e-9
        assert torch.equal(same, ~visible[:, :, token])


def test_rows_without_visible_tokens_are_finite() -> None:
    decoder = RetroDecoder(hidden=4, heads=2, inner=6)
    states = torch.randn(1, 3, 4, requires_grad=True)
    actual = decoder(states, states, torch.zeros(1, 3, 3, dtype=torch.bool))
    assert actual.isfinite().all()
    assert torch.autograd.grad(actual.sum(), states)[0].isfinite().all()


def test_decoder_gradcheck() -> None:
    torch.manual_seed(2)
    decoder = RetroDecoder(hidden=4, heads=2, inner=3, dropout=0.0).double()
    queries, memory = torch.randn(2, 1, 3, 4, dtype=torch.float64)
    visible = torch.tensor([[[False, False, False], [True, False, True], [True, True, False]]])
    inputs = (queries.requires_grad_(), memory.clone().requires_grad_())
    assert torch.autograd.gradcheck(lambda q, m: decoder(q, m, visible), inputs)


def test_word_head_is_tied_to_the_embeddings() -> None:
    torch.manual_seed(3)
    head, embeddings = WordHead(hidden=4, words=7).double(), torch.randn(7, 4, dtype=torch.float64, requires_grad=True)
    states = torch.randn(2, 4, dtype=torch.float64)
    inner = torch.nn.functional.gelu(states @ head.dense.weight.T + head.dense.bias)
    normed = (inner - inner.mean(-1, keepdim=True)) / (inner.var(-1, keepdim=True, unbiased=False) + 1e-5).sqrt()
    np.testing.assert_allclose(head(states, embeddings).detach(), (normed @ embeddings.T).detach(), atol=1e-10)
    head(states, embeddings).sum().backward()
    assert embeddings.grad is not None and "embeddings" not in dict(head.named_parameters())


def test_hidden_size_must_be_a_multiple_of_heads() -> None:
    with pytest.raises(BadInput, match="multiple of heads"):
        RetroDecoder(hidden=5, heads=2, inner=3)


def test_dropout_only_in_training() -> None:
    decoder = RetroDecoder(hidden=8, heads=2, inner=8, dropout=0.5)
    states, visible = torch.randn(1, 4, 8), torch.ones(1, 4, 4, dtype=torch.bool)

    def run() -> Tensor:
        return decoder(states, states, visible)

    assert not torch.equal(run(), run())
    decoder.eval()
    assert torch.equal(run(), run())
