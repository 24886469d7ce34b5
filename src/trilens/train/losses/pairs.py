"""Losses of a cross-encoder's scores (queries, group), positive first in each group."""

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, log_softmax

from trilens.errors import BadInput
from trilens.train.gather import Gather, alone
from trilens.train.losses.validation import loss


@loss
def group_cross_entropy(scores: Tensor, *, gather: Gather = alone) -> Tensor:
    """Cross-entropy of the softmax over each group, averaged over queries: the positive against its negatives."""
    _require_groups(scores, least=2)
    return gather(-log_softmax(scores, 1)[:, 0]).mean()


@loss
def binary_cross_entropy(scores: Tensor, *, gather: Gather = alone) -> Tensor:
    """Cross-entropy of each pair by itself: positives are 1, negatives 0. Both classes have the same weight in a group."""
    _require_groups(scores, least=1)
    labels = torch.zeros_like(scores)
    labels[:, 0] = 1
    losses = binary_cross_entropy_with_logits(scores, labels, reduction="none")
    negatives = losses[:, 1:].mean(1) if scores.shape[1] > 1 else torch.zeros_like(losses[:, 0])
    return gather((losses[:, 0] + negatives) / 2).mean()


def _require_groups(scores: Tensor, least: int) -> None:
    if scores.ndim != 2 or not len(scores) or scores.shape[1] < least:
        raise BadInput(
            f"scores are {tuple(scores.shape)}; expected (queries, group), with a positive"
            f"{' and at least one negative' if least > 1 else ''} for each query: raise negatives.count"
        )
