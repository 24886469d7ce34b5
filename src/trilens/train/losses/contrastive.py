"""InfoNCE: the positive of a query against its hard negatives and all other docs of the batch."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from trilens.train.gather import Gather, alone
from trilens.train.losses.rules import loss, require_batch, require_temperature


@loss
def info_nce(
    queries: Tensor, docs: Tensor, *, temperature: float = 0.05, symmetric: bool = False, gather: Gather = alone
) -> Tensor:
    """Inner products of queries (queries, dims) with docs (queries, group, dims), the positive first in its group.

    The default temperature suits vectors of length 1, whose products differ by tenths; DPR leaves products as they are: 1.
    """
    require_batch(queries, docs)
    require_temperature(temperature)
    return contrast(products(gather(queries), gather(docs)) / temperature, symmetric=symmetric)


def products(queries: Tensor, docs: Tensor) -> Tensor:
    """Scores of all queries against all docs (queries, queries · group), in the order of `in_columns`."""
    return queries @ in_columns(docs).T


def in_columns(docs: Tensor) -> Tensor:
    """(queries, group, …) as (queries · group, …): the positives in the order of their queries, then all first negatives, …"""
    return docs.transpose(0, 1).flatten(0, 1)


def contrast(scores: Tensor, *, symmetric: bool = False, balanced: bool = False) -> Tensor:
    """Cross-entropy of scores (queries, docs) where the positive of query i is doc i.

    `symmetric` adds the cross-entropy over queries for each positive; hard negatives have no query of their own and stay out of
    it. `balanced` scales that part to the size of the first one, by a factor without gradient.
    """
    positives = torch.arange(len(scores), device=scores.device)
    forth = cross_entropy(scores, positives)
    if not symmetric:
        return forth
    back = cross_entropy(scores[:, : len(scores)].T, positives)
    if balanced:  # a single query leaves nothing to contrast with, and a part of 0
        back = back * torch.where(back > 0, forth / back, 1).detach()
    return forth + back
