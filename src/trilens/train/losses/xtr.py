"""XTR's training score: only the document tokens that a query token would retrieve from the batch count."""

import torch
from torch import Tensor

from trilens.errors import BadInput
from trilens.train.losses.late import below_all, best_matches

SIMILARITIES = 2**24  # held at a time while the retrieved tokens are looked for


def xtr(queries: Tensor, docs: Tensor, query_mask: Tensor, doc_mask: Tensor, top: int = 256) -> Tensor:
    """Scores (queries, docs) by Lee et al. 2023, equation 5; use with `late_interaction(score=partial(xtr, top=…))`.

    Each query token retrieves the `top` most similar of all document tokens given. A doc scores the mean, over the query tokens
    that retrieved some token of it, of the highest similarity among those. Other published code divides by the number of
    *positive* maxima instead, which blows up where all are negative. No retrieved token: 0, what the paper imputes. A score
    depends on which docs are given, so scores of this kind cannot be compared between batches.

    The best token of a doc is retrieved if any of it is; so this is MaxSim over the pairs of query token and doc that
    retrieval leaves.
    """
    if top < 1:
        raise BadInput(f"top is {top}; expected at least 1 token to retrieve")
    found = retrieved(queries.detach(), docs.detach(), doc_mask.bool(), top) & query_mask.bool()[:, :, None]
    best = best_matches(queries, docs, doc_mask).masked_fill(~found, 0)
    return below_all(best.sum(1) / found.sum(1).clamp(min=1), doc_mask)


def retrieved(queries: Tensor, docs: Tensor, doc_mask: Tensor, top: int) -> Tensor:
    """Whether each query token has one of a doc's tokens among the `top` most similar of all: bool (queries, tokens, docs)."""
    of_doc = torch.arange(len(docs), device=docs.device)[:, None].expand_as(doc_mask)[doc_mask]
    tokens, asking = docs[doc_mask], queries.flatten(0, 1)
    found = torch.zeros(len(asking), len(docs), dtype=torch.bool, device=docs.device)
    step = max(1, SIMILARITIES // max(1, len(tokens)))
    for start in range(0, len(asking), step):
        similar = asking[start : start + step] @ tokens.T
        nearest = similar.topk(min(top, len(tokens)), sorted=False).indices
        found[start : start + step].scatter_(1, of_doc[nearest], True)
    return found.view(len(queries), -1, len(docs))
