"""XTR's training scores: only doc tokens that a query token retrieves from the batch count."""

from collections.abc import Iterator

import torch
from torch import Tensor

from trilens.errors import BadInput
from trilens.train.losses.late import best_matches, mask_empty_docs, mean_over_tokens

SIMILARITIES = 2**24  # computed at a time when retrieving tokens


def xtr(queries: Tensor, docs: Tensor, query_mask: Tensor, doc_mask: Tensor, top: int = 256) -> Tensor:
    """Scores (queries, docs) by Lee et al. 2023, equation 5; use with `late_interaction(score=partial(xtr, top=…))`.

    Each query token retrieves the `top` most similar of all doc tokens. A doc scores the mean, over the query tokens that
    retrieved one of its tokens, of the highest similarity. Other published code divides by the number of *positive* maxima
    instead, which diverges where all are negative. Docs without a retrieved token score 0, as in the paper. Scores depend on
    the other docs, so they are not comparable between batches.

    If any token of a doc is retrieved, its best token is, so this equals MaxSim over the retrieved pairs of query token and
    doc.
    """
    _require_tokens(top)
    hit = retrieved(queries.detach(), docs.detach(), doc_mask.bool(), top) & query_mask.bool()[:, :, None]
    best = best_matches(queries, docs, doc_mask).masked_fill(~hit, 0)
    return mask_empty_docs(best.sum(1) / hit.sum(1).clamp(min=1), doc_mask)


def imputed(queries: Tensor, docs: Tensor, query_mask: Tensor, doc_mask: Tensor, top: int = 16) -> Tensor:
    """Scores (queries, docs) as in XTR's search; use with `late_interaction(score=partial(imputed, top=…))`.

    The mean over query tokens of the highest similarity, or of the lowest of the `top` retrieved similarities where that is
    higher, which is what search imputes. The positive, in the query's own column, is always scored by its best tokens:
    imputed scores would not move it closer.

    The gradient of an imputed score goes to the last retrieved token, so each query token is attracted as much as it is
    repelled. With the paper's score it is not, and a trainable encoder can collapse to near-identical token vectors.
    """
    _require_tokens(top)
    best = best_matches(queries, docs, doc_mask)
    last = last_retrieved(queries, docs, doc_mask.bool(), top)
    positive = torch.eye(len(queries), len(docs), dtype=torch.bool, device=docs.device)
    return mean_over_tokens(torch.where(positive[:, None], best, torch.maximum(best, last[:, :, None])), query_mask, doc_mask)


def retrieved(queries: Tensor, docs: Tensor, doc_mask: Tensor, top: int) -> Tensor:
    """Whether each query token has a token of each doc among its `top` most similar: bool (queries, tokens, docs)."""
    doc_of_token = torch.arange(len(docs), device=docs.device)[:, None].expand_as(doc_mask)[doc_mask]
    query_tokens = queries.flatten(0, 1)
    hit = torch.zeros(len(query_tokens), len(docs), dtype=torch.bool, device=docs.device)
    for rows, nearest in _nearest(query_tokens, docs[doc_mask], top):
        hit[rows].scatter_(1, doc_of_token[nearest], True)
    return hit.view(len(queries), -1, len(docs))


def last_retrieved(queries: Tensor, docs: Tensor, doc_mask: Tensor, top: int) -> Tensor:
    """The similarity of each query token to the last of its `top` most similar tokens (queries, tokens)."""
    tokens, query_tokens = docs[doc_mask], queries.flatten(0, 1)
    if not len(tokens):
        return queries.new_zeros(queries.shape[:2])
    last = torch.cat([nearest[:, -1] for _, nearest in _nearest(query_tokens.detach(), tokens.detach(), top)])
    return (query_tokens * tokens[last]).sum(1).view(queries.shape[:2])


def _nearest(query_tokens: Tensor, tokens: Tensor, top: int) -> Iterator[tuple[slice, Tensor]]:
    """Indices of the most similar tokens, nearest first, for a slice of query tokens at a time."""
    step = max(1, SIMILARITIES // max(1, len(tokens)))
    for start in range(0, len(query_tokens), step):
        rows = slice(start, start + step)
        yield rows, (query_tokens[rows] @ tokens.T).topk(min(top, len(tokens))).indices


def _require_tokens(top: int) -> None:
    if top < 1:
        raise BadInput(f"top is {top}; expected at least 1 token to retrieve")
