"""Which word stands at a position: the losses of masked-language modelling and of RetroMAE."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint

from trilens.errors import BadInput
from trilens.train.gather import Gather, alone
from trilens.train.losses.rules import loss
from trilens.train.retromae import IGNORED

POSITIONS = 256  # predicted at a time: their scores of all words are made again on the way back instead of being kept

Predict = Callable[[Tensor], Tensor]


@loss
def word_loss(states: Tensor, labels: Tensor, predict: Predict, *, gather: Gather = alone) -> Tensor:
    """Cross-entropy of the words that `predict` (positions, hidden) → (positions, words) scores, the mean over labels.

    `states` (texts, tokens, hidden), `labels` (texts, tokens) with -100 where nothing is to be predicted.
    """
    return _mean_loss(states, labels, predict, gather)


@loss
def retromae(
    encoded: Tensor, labels: Tensor, decoded: Tensor, rebuilt: Tensor, predict: Predict, *, gather: Gather = alone
) -> Tensor:
    """The encoder's masked words and the decoder's whole text, each a mean over its labels, added up.

    `encoded` and `decoded` are states (texts, tokens, hidden), `labels` and `rebuilt` the words to say from them.
    """
    return _mean_loss(encoded, labels, predict, gather) + _mean_loss(decoded, rebuilt, predict, gather)


def _mean_loss(states: Tensor, labels: Tensor, predict: Predict, gather: Gather) -> Tensor:
    if labels.shape != states.shape[:-1]:
        raise BadInput(f"labels are {tuple(labels.shape)}, states {tuple(states.shape)}; expected a label for each state")
    asked = labels != IGNORED
    total, count = gather(_total_loss(states[asked], labels[asked], predict)[None]).sum(), gather(asked.sum()[None]).sum()
    if not count:
        raise BadInput("no position has a label; expected some word to predict: are the texts empty, or none of them masked?")
    return total / count


def _total_loss(states: Tensor, labels: Tensor, predict: Predict) -> Tensor:
    def part(positions: Tensor, words: Tensor) -> Tensor:
        return cross_entropy(predict(positions), words, reduction="sum")

    chunks = zip(states.split(POSITIONS), labels.split(POSITIONS), strict=True)
    parts = [checkpoint(part, *chunk, use_reentrant=False) for chunk in chunks if len(chunk[0])]
    return torch.stack([states[:0].sum(), *parts]).sum()  # that of no states is 0: a process without labels takes part
