"""InfoNCE with hard and in-batch negatives."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from trilens.train.gather import Gather, alone
from trilens.train.losses.validation import loss, require_batch, require_temperature


@loss
def info_nce(
    queries: Tensor, docs: Tensor, *, temperature: float = 0.05, symmetric: bool = False, gather: Gather = alone
) -> Tensor:
    """InfoNCE over inner products of queries (queries, dims) and docs (queries, group, dims), positive first in each group.

    The default temperature suits unit vectors, whose products differ by tenths; DPR uses unscaled products, temperature 1.
    """
    require_batch(queries, docs)
    require_temperature(temperature)
    return contrast(products(gather(queries), gather(docs)) / temperature, symmetric=symmetric)


def products(queries: Tensor, docs: Tensor) -> Tensor:
    """Scores of all queries against all docs (queries, queries · group), with columns ordered by `in_columns`."""
    return queries @ in_columns(docs).T


def in_columns(docs: Tensor) -> Tensor:
    """Flatten (queries, group, …) to (queries · group, …): all positives in query order, then all first negatives, …"""
    return docs.transpose(0, 1).flatten(0, 1)


def contrast(scores: Tensor, *, symmetric: bool = False, balanced: bool = False) -> Tensor:
    """Cross-entropy of scores (queries, docs), where doc i is the positive of query i.

    `symmetric` adds the cross-entropy over queries for each positive; hard negatives belong to no query and are left out of
    that term. `balanced` rescales the added term to the value of the first one, by a factor without gradient.
    """
    positives = torch.arange(len(scores), device=scores.device)
    over_docs = cross_entropy(scores, positives)
    if not symmetric:
        return over_docs
    over_queries = cross_entropy(scores[:, : len(scores)].T, positives)
    if balanced:  # with a single query the added term is 0
        over_queries = over_queries * torch.where(over_queries > 0, over_docs / over_queries, 1).detach()
    return over_docs + over_queries
