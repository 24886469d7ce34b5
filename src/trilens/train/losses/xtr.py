"""XTR's training scores: only the document tokens that a query token would retrieve from the batch count."""

from collections.abc import Iterator

import torch
from torch import Tensor

from trilens.errors import BadInput
from trilens.train.losses.late import below_all, best_matches, mean_over_tokens

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
    _require_tokens(top)
    found = retrieved(queries.detach(), docs.detach(), doc_mask.bool(), top) & query_mask.bool()[:, :, None]
    best = best_matches(queries, docs, doc_mask).masked_fill(~found, 0)
    return below_all(best.sum(1) / found.sum(1).clamp(min=1), doc_mask)


def imputed(queries: Tensor, docs: Tensor, query_mask: Tensor, doc_mask: Tensor, top: int = 16) -> Tensor:
    """Scores (queries, docs) as XTR's search gives them; use with `late_interaction(score=partial(imputed, top=…))`.

    The mean over query tokens of the highest similarity, or of the last of the `top` retrieved ones where that is higher: what
    search imputes. The doc of a query's own column, which is the right one, is scored by its best tokens whether they are
    retrieved or not: what is imputed brings it no nearer.

    The gradient of what is imputed goes to the token that was retrieved last, so that every query token is drawn to tokens as
    much as it is pushed off others. In the paper's score it is not, and an encoder that learns may make all tokens alike.
    """
    _require_tokens(top)
    best = best_matches(queries, docs, doc_mask)
    last = last_retrieved(queries, docs, doc_mask.bool(), top)
    right = torch.eye(len(queries), len(docs), dtype=torch.bool, device=docs.device)
    return mean_over_tokens(torch.where(right[:, None], best, torch.maximum(best, last[:, :, None])), query_mask, doc_mask)


def retrieved(queries: Tensor, docs: Tensor, doc_mask: Tensor, top: int) -> Tensor:
    """Whether each query token has one of a doc's tokens among the `top` most similar of all: bool (queries, tokens, docs)."""
    of_doc = torch.arange(len(docs), device=docs.device)[:, None].expand_as(doc_mask)[doc_mask]
    asking = queries.flatten(0, 1)
    found = torch.zeros(len(asking), len(docs), dtype=torch.bool, device=docs.device)
    for rows, nearest in _nearest(asking, docs[doc_mask], top):
        found[rows].scatter_(1, of_doc[nearest], True)
    return found.view(len(queries), -1, len(docs))


def last_retrieved(queries: Tensor, docs: Tensor, doc_mask: Tensor, top: int) -> Tensor:
    """The similarity of each query token to the last of the `top` most similar tokens of all (queries, tokens)."""
    tokens, asking = docs[doc_mask], queries.flatten(0, 1)
    if not len(tokens):
        return queries.new_zeros(queries.shape[:2])
    last = torch.cat([nearest[:, -1] for _, nearest in _nearest(asking.detach(), tokens.detach(), top)])
    return (asking * tokens[last]).sum(1).view(queries.shape[:2])


def _nearest(asking: Tensor, tokens: Tensor, top: int) -> Iterator[tuple[slice, Tensor]]:
    """The places of the most similar tokens, nearest first, for some rows at a time."""
    step = max(1, SIMILARITIES // max(1, len(tokens)))
    for start in range(0, len(asking), step):
        rows = slice(start, start + step)
        yield rows, (asking[rows] @ tokens.T).topk(min(top, len(tokens))).indices


def _require_tokens(top: int) -> None:
    if top < 1:
        raise BadInput(f"top is {top}; expected at least 1 token to retrieve")
