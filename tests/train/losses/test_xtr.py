"""XTR's in-batch retrieval against numpy loops and sentence-transformers."""

from functools import partial
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")

from tests.train import plain
from tests.train.losses.test_late import Batch, drawn, flat
from trilens.errors import BadInput
from trilens.train.losses import xtr as module
from trilens.train.losses.late import EMPTY_SCORE, late_interaction, maxsim
from trilens.train.losses.xtr import imputed, retrieved, xtr


def by_hand(batch: Batch, top: int) -> plain.Floats:
    """Lee et al. 2023, equation 5, token by token."""
    queries, docs, query_mask, doc_mask = (tensor.detach().numpy() for tensor in flat(batch))
    scores = np.zeros((len(queries), len(docs)))
    counts = np.zeros((len(queries), len(docs)))
    for index, query in enumerate(queries):
        for token in query[query_mask[index]]:
            pool = [(token @ vector, doc) for doc in range(len(docs)) for vector in docs[doc][doc_mask[doc]]]
            best: dict[int, float] = {}
            for similarity, doc in sorted(pool, reverse=True)[:top]:
                best[doc] = max(best.get(doc, -np.inf), similarity)
            for doc, similarity in best.items():
                scores[index, doc] += similarity
                counts[index, doc] += 1
    scores /= np.maximum(counts, 1)
    scores[:, ~doc_mask.any(1)] = EMPTY_SCORE
    return scores


def test_by_hand() -> None:
    query = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
    docs = torch.tensor([[[0.9, 0.0], [0.1, -0.5]], [[0.8, -0.1], [0.0, -0.2]], [[0.0, -0.9], [0.2, -0.8]]])
    every = torch.ones(3, 2)
    # token 1 retrieves 0.9 (doc 1) and 0.8 (doc 2); token 2 retrieves 0 (doc 1) and -0.1 (doc 2); doc 3 is not retrieved
    actual = xtr(query, docs, torch.ones(1, 2), every, top=2)
    np.testing.assert_allclose(actual, [[(0.9 + 0.0) / 2, (0.8 - 0.1) / 2, 0.0]], atol=1e-6)


@pytest.mark.parametrize("top", [1, 2, 5, 12, 1000])
def test_equals_numpy(top: int) -> None:
    batch = drawn(1)
    batch[3][1, 1] = False
    np.testing.assert_allclose(xtr(*flat(batch), top=top).detach(), by_hand(batch, top), atol=1e-12)


@pytest.mark.parametrize("top", [1, 3, 8, 64])
def test_equals_sentence_transformers(top: int) -> None:
    scoring = pytest.importorskip("sentence_transformers.multi_vector_encoder.scoring")
    queries, docs, query_mask, doc_mask = drawn(2, queries=4, group=3)
    doc_mask[3, 2] = False
    theirs = scoring.xtr_scores(queries.detach().float(), docs.detach().float(), query_mask, doc_mask, top_k=top)
    ours = xtr(*flat((queries, docs, query_mask, doc_mask)), top=top).detach()
    by_query = ours.view(4, 3, 4).transpose(1, 2).flatten(1)  # theirs has the docs of a query side by side
    np.testing.assert_allclose(by_query, theirs, atol=1e-4)


def test_negative_similarities_are_retrieved() -> None:
    query, docs = torch.tensor([[[1.0]]]), torch.tensor([[[-0.5]], [[-2.0]]])
    assert xtr(query, docs, torch.ones(1, 1), torch.ones(2, 1), top=1).tolist() == [[-0.5, 0.0]]


def test_retrieving_all_tokens_equals_mean_maxsim() -> None:
    queries, docs, query_mask, doc_mask = flat(drawn(3))
    expected = maxsim(queries, docs, query_mask, doc_mask) / query_mask.sum(1, keepdim=True)
    np.testing.assert_allclose(xtr(queries, docs, query_mask, doc_mask, top=999).detach(), expected.detach(), atol=1e-12)


def test_chunked_retrieval_equals_unchunked(monkeypatch: pytest.MonkeyPatch) -> None:
    queries, docs, _, doc_mask = flat(drawn(4))
    whole = retrieved(queries, docs, doc_mask, 3)
    monkeypatch.setattr(module, "SIMILARITIES", 1)
    assert torch.equal(retrieved(queries, docs, doc_mask, 3), whole)


@pytest.mark.parametrize("score", [xtr, imputed])
def test_docs_without_tokens(score: Any) -> None:
    queries, docs, query_mask, doc_mask = flat(drawn(5))
    assert (score(queries, docs, query_mask, torch.zeros_like(doc_mask)) == EMPTY_SCORE).all()
    with pytest.raises(BadInput, match="top is 0"):
        score(queries, docs, query_mask, doc_mask, top=0)


def imputed_by_hand(batch: Batch, top: int) -> plain.Floats:
    """MaxSim with similarities raised to the last retrieved one, except for the positive; token by token."""
    queries, docs, query_mask, doc_mask = (tensor.detach().numpy() for tensor in flat(batch))
    scores = np.full((len(queries), len(docs)), EMPTY_SCORE)
    for index, query in enumerate(queries):
        for doc in np.flatnonzero(doc_mask.any(1)):
            parts = []
            for token in query[query_mask[index]]:
                last = np.sort(docs[doc_mask] @ token)[::-1][: top or None][-1]
                best = (docs[doc][doc_mask[doc]] @ token).max()
                parts.append(best if doc == index else max(best, last))
            scores[index, doc] = np.mean(parts)
    return scores


def test_imputed_by_hand() -> None:
    query = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
    docs = torch.tensor([[[0.7, 0.0], [0.1, -0.5]], [[0.8, -0.1], [0.0, -0.2]], [[0.9, -0.9], [0.2, -0.8]]])
    # token 1 retrieves 0.9 (doc 3) and 0.8 (doc 2), token 2 retrieves 0 (doc 1) and -0.1 (doc 2)
    actual = imputed(query, docs, torch.ones(1, 2), torch.ones(3, 2), top=2)
    np.testing.assert_allclose(actual, [[(0.7 + 0.0) / 2, (0.8 - 0.1) / 2, (0.9 - 0.1) / 2]], atol=1e-6)


@pytest.mark.parametrize("top", [1, 2, 5, 12, 1000])
def test_imputed_equals_numpy(top: int) -> None:
    batch = drawn(1)
    batch[3][1, 1] = False
    np.testing.assert_allclose(imputed(*flat(batch), top=top).detach(), imputed_by_hand(batch, top), atol=1e-12)


@pytest.mark.parametrize("top", [1, 4, 1000])
def test_imputed_gradient(top: int) -> None:
    queries, docs, query_mask, doc_mask = drawn(6)

    def loss(asking: Any, asked: Any) -> Any:
        return late_interaction(asking, asked, query_mask, doc_mask, score=partial(imputed, top=top), temperature=0.3)

    assert torch.autograd.gradcheck(loss, (queries, docs))


def test_imputed_gradients_attract_as_much_as_they_repel() -> None:
    queries, docs, query_mask, doc_mask = drawn(7)
    one = torch.nn.functional.pad(docs.detach(), (0, 1), value=1.0)  # a direction that all tokens of docs have in common
    asking = torch.nn.functional.pad(queries.detach(), (0, 1)).requires_grad_()
    for score, balanced in ((partial(imputed, top=4), True), (partial(xtr, top=4), False)):
        asking.grad = None
        late_interaction(asking, one, query_mask, doc_mask, score=score).backward()
        assert asking.grad is not None
        assert (asking.grad[..., -1].abs().max() < 1e-9) == balanced
