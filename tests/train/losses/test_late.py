"""MaxSim against numpy loops and sentence-transformers, its masks, and the contrastive loss over it."""

from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")

from torch import Tensor

from tests.train import plain
from trilens.errors import BadInput, TrainingFailed
from trilens.train.losses.late import EMPTY_SCORE, Score, late_interaction, maxsim, mean_maxsim, own_maxsim
from trilens.train.losses.xtr import xtr

Batch = tuple[Tensor, Tensor, Tensor, Tensor]


def drawn(seed: int, queries: int = 3, group: int = 2, dims: int = 4) -> Batch:
    """Queries of 5 tokens, docs of 6, and masks that keep the first token of every text."""
    generator = torch.Generator().manual_seed(seed)
    shapes = (queries, 5), (queries, group, 6)
    vectors = [torch.randn(*shape, dims, generator=generator, dtype=torch.float64).requires_grad_() for shape in shapes]
    masks = [torch.rand(*shape, generator=generator) > 0.4 for shape in shapes]
    for mask in masks:
        mask[..., 0] = True
    return vectors[0], vectors[1], masks[0], masks[1]


def scores_by_hand(batch: Batch) -> plain.Floats:
    queries, docs, query_mask, doc_mask = (tensor.detach().numpy() for tensor in batch)
    return np.array(
        [
            [
                plain.maxsim(query, doc, kept, there)
                for doc, there in zip(plain.columns(docs), plain.columns(doc_mask), strict=True)
            ]
            for query, kept in zip(queries, query_mask, strict=True)
        ]
    )


def flat(batch: Batch) -> Batch:
    """Docs in columns, as the scores expect them."""
    queries, docs, query_mask, doc_mask = batch
    return queries, docs.transpose(0, 1).flatten(0, 1), query_mask, doc_mask.transpose(0, 1).flatten(0, 1)


def test_by_hand() -> None:
    query = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [9.0, 9.0]]])
    doc = torch.tensor([[[0.5, -1.0], [-0.5, -2.0], [9.0, 9.0]]])
    # best of token 1: 0.5; best of token 2: -1, though the masked third would give 9; the third query token is masked
    actual = maxsim(query, doc, torch.tensor([[1, 1, 0]]), torch.tensor([[1, 1, 0]]))
    assert actual.tolist() == [[-0.5]]
    assert mean_maxsim(query, doc, torch.tensor([[1, 1, 0]]), torch.tensor([[1, 1, 0]])).tolist() == [[-0.25]]


@pytest.mark.parametrize("group", [1, 3])
def test_scores_equal_numpy(group: int) -> None:
    batch = drawn(1, group=group)
    expected = scores_by_hand(batch)
    np.testing.assert_allclose(maxsim(*flat(batch)).detach(), expected, atol=1e-12)
    lengths = batch[2].sum(1, keepdim=True).numpy()
    np.testing.assert_allclose(mean_maxsim(*flat(batch)).detach(), expected / lengths, atol=1e-12)
    own = [[expected[query, place * 3 + query] for place in range(group)] for query in range(3)]
    np.testing.assert_allclose(own_maxsim(*batch).detach(), own, atol=1e-12)


def test_scores_equal_those_of_sentence_transformers() -> None:
    util = pytest.importorskip("sentence_transformers.util")
    queries, docs, query_mask, doc_mask = flat(drawn(2))
    doc_mask[1] = False
    theirs = util.maxsim(queries.detach().float(), docs.detach().float(), query_mask, doc_mask)
    np.testing.assert_allclose(maxsim(queries, docs, query_mask, doc_mask).detach(), theirs, atol=1e-4)


@pytest.mark.parametrize("group", [1, 3])
@pytest.mark.parametrize("symmetric", [False, True])
def test_loss_equals_numpy(group: int, symmetric: bool) -> None:
    batch = drawn(3, group=group)
    expected = plain.contrast(scores_by_hand(batch) / 0.7, symmetric)
    assert late_interaction(*batch, temperature=0.7, symmetric=symmetric).item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("score", [maxsim, mean_maxsim, partial(xtr, top=4)])
def test_gradcheck(score: Score) -> None:
    queries, docs, query_mask, doc_mask = drawn(4)
    doc_mask[1, 1] = False
    assert torch.autograd.gradcheck(
        lambda q, d: late_interaction(q, d, query_mask, doc_mask, score=score, temperature=0.5), (queries, docs)
    )


def test_own_maxsim_gradcheck() -> None:
    queries, docs, query_mask, doc_mask = drawn(5)
    doc_mask[1, 1] = False
    assert torch.autograd.gradcheck(lambda q, d: own_maxsim(q, d, query_mask, doc_mask).clamp(min=-100), (queries, docs))


def test_masked_tokens_are_ignored() -> None:
    queries, docs, query_mask, doc_mask = drawn(6)
    filled = docs.detach().masked_fill(~doc_mask[..., None], 1e6)
    asked = queries.detach().masked_fill(~query_mask[..., None], 1e6)
    for score in (maxsim, mean_maxsim):
        loss = late_interaction(asked, filled, query_mask, doc_mask, score=score)
        assert loss.item() == pytest.approx(late_interaction(queries, docs, query_mask, doc_mask, score=score).item())


@pytest.mark.parametrize("score", [maxsim, mean_maxsim, partial(xtr, top=4)])
def test_negatives_without_tokens_score_below_all(score: Score) -> None:
    queries, docs, query_mask, doc_mask = drawn(7)
    doc_mask[2, 1] = False
    columns = flat((queries, docs, query_mask, doc_mask))
    scores = score(*columns)
    assert (scores[:, 5] == EMPTY_SCORE).all() and (scores[:, :5] > EMPTY_SCORE).all()
    assert own_maxsim(queries, docs, query_mask, doc_mask)[2, 1] == EMPTY_SCORE
    grads = torch.autograd.grad(late_interaction(queries, docs, query_mask, doc_mask, score=score), (queries, docs))
    assert all(grad.isfinite().all() for grad in grads) and not grads[1][2, 1].any()


def test_invalid_texts() -> None:
    queries, docs, query_mask, doc_mask = drawn(8)
    for lacking, message in (
        (query_mask, "query 1 has no unmasked token"),
        (doc_mask[:, 0], "the positive of query 1 has no unmasked token"),
    ):
        before = lacking[1].clone()
        lacking[1] = False
        with pytest.raises(BadInput, match=message):
            late_interaction(queries, docs, query_mask, doc_mask)
        lacking[1] = before
    with pytest.raises(BadInput, match="expected a positive for each"):
        late_interaction(queries, docs[:, :0], query_mask, doc_mask[:, :0])
    with pytest.raises(BadInput, match="masks without dims"):
        late_interaction(queries, docs, query_mask[:, :2], doc_mask)
    with pytest.raises(TrainingFailed, match="late_interaction is nan"):
        late_interaction(queries * torch.nan, docs, query_mask, doc_mask)
