"""GradCache for any heads: contrastive batches larger than activation memory allows (Gao et al. 2021).

A contrastive loss needs all representations of a batch at once, but not all activations. Texts are encoded in sub-batches
without storing activations, the loss is computed over all representations, and its gradients with respect to them are stored.
Each sub-batch is then encoded again, with the same dropout, and backpropagated from the stored gradients.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from sentence_transformers.base.losses.gradcache import RandContext
from torch import Tensor, nn
from torch.nn.functional import pad

Features = dict[str, Any]
"""Inputs or outputs of a model: tensors with a row per text."""

REPRESENTATIONS = ("sentence_embedding", "lexical", "sparse", "multi")
"""Head outputs with gradients."""
BESIDE = ("bags", "multi_mask")
"""Head outputs without gradients."""
TOKEN_AXIS = ("multi", "multi_mask")
"""Outputs with a token axis after the text axis, padded to the longest text of the batch."""

Loss = Callable[[list[Features]], Tensor]


def encode(model: nn.Module, side: Features) -> Features:
    """The head outputs for one side; the model gets a copy of the features, because it may modify them."""
    outputs = model(dict(side))
    return {name: outputs[name] for name in (*REPRESENTATIONS, *BESIDE) if name in outputs}


def cached_loss(model: nn.Module, sides: Sequence[Features], texts: int, loss: Loss) -> Tensor:
    """`loss` of the head outputs of all sides, encoding at most `texts` texts at a time.

    Value and gradients (after `backward`) equal those of encoding all texts at once.
    """
    batches = [split(side, texts) for side in sides]
    with torch.no_grad():
        states: list[list[RandContext]] = []
        outputs: list[list[Features]] = []
        for side in batches:
            states.append([])
            outputs.append([])
            for batch in side:
                states[-1].append(RandContext(*tensors_of(batch)))
                outputs[-1].append(encode(model, batch))
    if not torch.is_grad_enabled():
        return loss([join(side) for side in outputs])
    for output in (output for side in outputs for output in side):
        for name in REPRESENTATIONS:
            if name in output:
                output[name].requires_grad_()
    value = loss([join(side) for side in outputs])
    value.backward()

    def replay(grad: Tensor) -> None:
        sub_batches = [(b, s, o) for side in zip(batches, states, outputs, strict=True) for b, s, o in zip(*side, strict=True)]
        for number, (batch, state, output) in enumerate(sub_batches):
            # DDP synchronises gradients once, after the last sub-batch.
            wait = getattr(model, "no_sync", nullcontext) if number + 1 < len(sub_batches) else nullcontext
            with torch.enable_grad(), wait(), state:
                again = encode(model, batch)
                names = [name for name in REPRESENTATIONS if name in output and output[name].grad is not None]
                torch.autograd.backward([again[name] for name in names], [output[name].grad * grad for name in names])

    hooked = value.detach().requires_grad_()
    hooked.register_hook(replay)
    return hooked


def split(side: Features, texts: int) -> list[Features]:
    """Split into sub-batches of `texts` texts, each without columns that are padding for all of its texts."""
    rows = len(side["input_ids"])
    batches = []
    for start in range(0, rows, texts):
        batch = {name: value[start : start + texts] if isinstance(value, Tensor) else value for name, value in side.items()}
        used = batch["attention_mask"].bool() | batch["kept"] if "kept" in batch else batch["attention_mask"].bool()
        width, columns = used.shape[1], int(used.any(0).nonzero().max()) + 1 if used.any() else 1
        batches.append(
            {
                name: value[:, :columns] if isinstance(value, Tensor) and value.shape[1:2] == (width,) else value
                for name, value in batch.items()
            }
        )
    return batches


def join(parts: Sequence[Features]) -> Features:
    """Concatenate the outputs of sub-batches, zero-padded to the most tokens."""
    joined = {}
    for name in parts[0]:
        values = [part[name] for part in parts]
        if name in TOKEN_AXIS:
            longest = max(value.shape[1] for value in values)
            values = [pad(value, (0, 0) * (value.ndim - 2) + (0, longest - value.shape[1])) for value in values]
        joined[name] = torch.cat(values)
    return joined


def tensors_of(batch: Features) -> list[Tensor]:
    """The tensors of a batch, for saving the random state of their devices."""
    return [value for value in batch.values() if isinstance(value, Tensor)]
