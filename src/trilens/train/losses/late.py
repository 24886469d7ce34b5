"""Late interaction: MaxSim, the score of ColBERT, and the contrastive loss over it or another score of token vectors."""

from typing import Protocol

import torch
from torch import Tensor

from trilens.train.gather import Gather, alone
from trilens.train.losses.contrastive import contrast, in_columns
from trilens.train.losses.rules import loss, require_temperature, require_tokens
from trilens.train.vocabulary import best_products

NOTHING = -1e9  # score of a doc without tokens: below every other, and finite, so that no loss turns into a not-a-number


class Score(Protocol):
    """Scores (queries, docs) of token vectors (queries, tokens, dims) against (docs, tokens, dims), with a mask for each."""

    def __call__(self, queries: Tensor, docs: Tensor, query_mask: Tensor, doc_mask: Tensor) -> Tensor: ...


def maxsim(queries: Tensor, docs: Tensor, query_mask: Tensor, doc_mask: Tensor) -> Tensor:
    """Sum over the tokens of a query of the highest product with a token of the doc."""
    best = best_matches(queries, docs, doc_mask)
    return below_all((best * query_mask[:, :, None]).sum(1), doc_mask)


def mean_maxsim(queries: Tensor, docs: Tensor, query_mask: Tensor, doc_mask: Tensor) -> Tensor:
    """MaxSim by the number of query tokens, which makes scores of short and long queries alike, as M3 has it."""
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
    """InfoNCE over scores of the token vectors of queries (queries, tokens, dims) and docs (queries, group, tokens, dims).

    The positive stands first in its group.
    The default temperature suits MaxSim, a sum over query tokens that differs by whole numbers; scores that are means, as
    `mean_maxsim`, `xtr` and `imputed` give them, want about 0.05. A negative without tokens scores below all other docs.
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
    """The highest product of each query token with a token of each doc (queries, tokens, docs); 0 for docs without tokens."""
    best = best_products(docs, queries.flatten(0, 1), doc_mask).view(len(docs), len(queries), -1)
    return best.masked_fill(~doc_mask.bool().any(1)[:, None, None], 0).permute(1, 2, 0)


def mean_over_tokens(best: Tensor, query_mask: Tensor, doc_mask: Tensor) -> Tensor:
    """Scores (queries, docs) from what each query token is worth in each doc (queries, tokens, docs)."""
    return below_all((best * query_mask[:, :, None]).sum(1) / query_mask.sum(1, keepdim=True).clamp(min=1), doc_mask)


def below_all(scores: Tensor, doc_mask: Tensor) -> Tensor:
    """Scores (queries, docs) with docs without tokens below all others."""
    return scores.masked_fill(~doc_mask.bool().any(1), NOTHING)


def own_maxsim(queries: Tensor, docs: Tensor, query_mask: Tensor, doc_mask: Tensor) -> Tensor:
    """MaxSim of each query with its own docs only (queries, group), from docs (queries, group, tokens, dims)."""
    similar = torch.einsum("qth,qgsh->qgts", queries, docs)
    kept = doc_mask.bool()
    best = similar.masked_fill(~kept[:, :, None, :], torch.finfo(similar.dtype).min).amax(-1)
    empty = ~kept.any(-1)
    scores = (best.masked_fill(empty[:, :, None], 0) * query_mask[:, None, :]).sum(-1)
    return scores.masked_fill(empty, NOTHING)
