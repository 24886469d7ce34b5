"""Late interaction: MaxSim scores of token vectors, and the contrastive loss over them or over another token score."""

from typing import Protocol

import torch
from torch import Tensor

from trilens.train.best_products import best_products
from trilens.train.gather import Gather, alone
from trilens.train.losses.contrastive import contrast, in_columns
from trilens.train.losses.validation import loss, require_temperature, require_tokens

EMPTY_SCORE = -1e9  # score of a doc without tokens: below all others, but finite, so that no loss becomes NaN


class Score(Protocol):
    """Scores (queries, docs) of token vectors (queries, tokens, dims) and (docs, tokens, dims), each with a mask."""

    def __call__(self, queries: Tensor, docs: Tensor, query_mask: Tensor, doc_mask: Tensor) -> Tensor: ...


def maxsim(queries: Tensor, docs: Tensor, query_mask: Tensor, doc_mask: Tensor) -> Tensor:
    """MaxSim: the sum over query tokens of the highest product with a doc token."""
    best = best_matches(queries, docs, doc_mask)
    return mask_empty_docs((best * query_mask[:, :, None]).sum(1), doc_mask)


def mean_maxsim(queries: Tensor, docs: Tensor, query_mask: Tensor, doc_mask: Tensor) -> Tensor:
    """MaxSim divided by the number of query tokens, as in M3, so that scores do not depend on query length."""
    return mean_over_tokens(best_matches(queries, docs, doc_mask), query_mask, doc_mask)


@loss
def late_interaction(
    queries: Tensor,
    docs: Tensor,
    query_mask: Tensor,
    doc_mask: Tensor,
    *,
    score: Score = maxsim,
    temperature: float = 1.0,
    symmetric: bool = False,
    gather: Gather = alone,
) -> Tensor:
    """InfoNCE over scores of token vectors of queries (queries, tokens, dims) and docs (queries, group, tokens, dims).

    The positive comes first in its group. The default temperature suits MaxSim, a sum over query tokens; scores that are
    means (`mean_maxsim`, `xtr`, `imputed`) need about 0.05. A negative without tokens scores below all other docs.
    """
    require_tokens(queries, query_mask, docs, doc_mask)
    require_temperature(temperature)
    scores = score(
        gather(queries, ragged=1),
        in_columns(gather(docs, ragged=2)),
        gather(query_mask, ragged=1),
        in_columns(gather(doc_mask, ragged=2)),
    )
    return contrast(scores / temperature, symmetric=symmetric)


def best_matches(queries: Tensor, docs: Tensor, doc_mask: Tensor) -> Tensor:
    """The highest product of each query token with any token of each doc (queries, tokens, docs); 0 for empty docs."""
    best = best_products(docs, queries.flatten(0, 1), doc_mask).view(len(docs), len(queries), -1)
    return best.masked_fill(~doc_mask.bool().any(1)[:, None, None], 0).permute(1, 2, 0)


def mean_over_tokens(best: Tensor, query_mask: Tensor, doc_mask: Tensor) -> Tensor:
    """Mean over query tokens: scores (queries, docs) from token scores (queries, tokens, docs)."""
    return mask_empty_docs((best * query_mask[:, :, None]).sum(1) / query_mask.sum(1, keepdim=True).clamp(min=1), doc_mask)


def mask_empty_docs(scores: Tensor, doc_mask: Tensor) -> Tensor:
    """Set the scores (queries, docs) of docs without tokens below all others."""
    return scores.masked_fill(~doc_mask.bool().any(1), EMPTY_SCORE)


def own_maxsim(queries: Tensor, docs: Tensor, query_mask: Tensor, doc_mask: Tensor) -> Tensor:
    """MaxSim of each query with the docs of its own group (queries, group), from docs (queries, group, tokens, dims)."""
    similarities = torch.einsum("qth,qgsh->qgts", queries, docs)
    kept = doc_mask.bool()
    best = similarities.masked_fill(~kept[:, :, None, :], torch.finfo(similarities.dtype).min).amax(-1)
    empty = ~kept.any(-1)
    scores = (best.masked_fill(empty[:, :, None], 0) * query_mask[:, None, :]).sum(-1)
    return scores.masked_fill(empty, EMPTY_SCORE)
