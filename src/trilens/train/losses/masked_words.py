"""Losses of masked language modelling and RetroMAE: cross-entropy of predicted tokens."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint

from trilens.errors import BadInput
from trilens.train.gather import Gather, alone
from trilens.train.losses.validation import loss
from trilens.train.retromae import IGNORED

POSITIONS = 256  # per chunk: logits of a chunk are recomputed in the backward pass instead of stored

Predict = Callable[[Tensor], Tensor]


@loss
def word_loss(states: Tensor, labels: Tensor, predict: Predict, *, gather: Gather = alone) -> Tensor:
    """Cross-entropy of `predict`, (positions, hidden) → logits (positions, words), averaged over labels.

    `states` (texts, tokens, hidden), `labels` (texts, tokens) with -100 where nothing is predicted.
    """
    return _mean_loss(states, labels, predict, gather)


@loss
def retromae(
    encoded: Tensor, labels: Tensor, decoded: Tensor, rebuilt: Tensor, predict: Predict, *, gather: Gather = alone
) -> Tensor:
    """Sum of the encoder's masked-token loss and the decoder's reconstruction loss, each averaged over its labels.

    `encoded` and `decoded` are states (texts, tokens, hidden), `labels` and `rebuilt` their target tokens.
    """
    return _mean_loss(encoded, labels, predict, gather) + _mean_loss(decoded, rebuilt, predict, gather)


def _mean_loss(states: Tensor, labels: Tensor, predict: Predict, gather: Gather) -> Tensor:
    if labels.shape != states.shape[:-1]:
        raise BadInput(f"labels are {tuple(labels.shape)}, states {tuple(states.shape)}; expected a label for each state")
    labelled = labels != IGNORED
    total = gather(_total_loss(states[labelled], labels[labelled], predict)[None]).sum()
    count = gather(labelled.sum()[None]).sum()
    if not count:
        raise BadInput("no position has a label; expected a token to predict: are the texts empty, or none of them masked?")
    return total / count


def _total_loss(states: Tensor, labels: Tensor, predict: Predict) -> Tensor:
    def part(positions: Tensor, words: Tensor) -> Tensor:
        return cross_entropy(predict(positions), words, reduction="sum")

    chunks = zip(states.split(POSITIONS), labels.split(POSITIONS), strict=True)
    parts = [checkpoint(part, *chunk, use_reentrant=False) for chunk in chunks if len(chunk[0])]
    return torch.stack([states[:0].sum(), *parts]).sum()  # a process without labels contributes 0 and takes part in gathering
