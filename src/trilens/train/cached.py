"""GradCache over any heads: a contrastive batch far larger than the memory that its activations would take.

A contrastive loss needs all representations of a batch at once, but not all activations. So texts are encoded in small batches
without keeping activations, the loss is computed over all representations, and its gradients with respect to them are kept.
Then each small batch is encoded once more, with the same dropout, and its gradients are sent on (Gao et al. 2021).
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from sentence_transformers.base.losses.gradcache import RandContext
from torch import Tensor, nn
from torch.nn.functional import pad

Features = dict[str, Any]
"""What a model is given of some texts, or gives of them: tensors with a row for each text."""

REPRESENTATIONS = ("sentence_embedding", "lexical", "sparse", "multi")
"""What heads give, and gradients flow through."""
BESIDE = ("bags", "multi_mask")
"""What goes with them, without a gradient."""
TOKEN_AXIS = ("multi", "multi_mask")
"""What has an axis of tokens after that of texts, as long as the longest text of the batch."""

Loss = Callable[[list[Features]], Tensor]


def encode(model: nn.Module, side: Features) -> Features:
    """What the heads make of texts; the model is free to change what it is given, so it gets a copy."""
    found = model(dict(side))
    return {name: found[name] for name in (*REPRESENTATIONS, *BESIDE) if name in found}


def cached_loss(model: nn.Module, sides: Sequence[Features], texts: int, loss: Loss) -> Tensor:
    """`loss` of what the model makes of the sides, encoding no more than so many `texts` at a time.

    The value is that of encoding all at once; calling `backward` on it gives the same gradients.
    """
    batches = [split(side, texts) for side in sides]
    with torch.no_grad():
        states: list[list[RandContext]] = []
        first: list[list[Features]] = []
        for side in batches:
            states.append([])
            first.append([])
            for batch in side:
                states[-1].append(RandContext(*tensors_of(batch)))
                first[-1].append(encode(model, batch))
    if not torch.is_grad_enabled():
        return loss([join(side) for side in first])
    for found in (found for side in first for found in side):
        for name in REPRESENTATIONS:
            if name in found:
                found[name].requires_grad_()
    value = loss([join(side) for side in first])
    value.backward()

    def replay(grad: Tensor) -> None:
        every = [(b, s, f) for side in zip(batches, states, first, strict=True) for b, s, f in zip(*side, strict=True)]
        for number, (batch, state, found) in enumerate(every):
            # Processes exchange gradients once, after the last batch.
            wait = getattr(model, "no_sync", nullcontext) if number + 1 < len(every) else nullcontext
            with torch.enable_grad(), wait(), state:
                again = encode(model, batch)
                names = [name for name in REPRESENTATIONS if name in found and found[name].grad is not None]
                torch.autograd.backward([again[name] for name in names], [found[name].grad * grad for name in names])

    hooked = value.detach().requires_grad_()
    hooked.register_hook(replay)
    return hooked


def split(side: Features, texts: int) -> list[Features]:
    """Batches of so many texts, each without the columns that are padding for all of them."""
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
    """The representations of all batches in one, filled up with zeros where texts have fewer tokens."""
    joined = {}
    for name in parts[0]:
        values = [part[name] for part in parts]
        if name in TOKEN_AXIS:
            longest = max(value.shape[1] for value in values)
            values = [pad(value, (0, 0) * (value.ndim - 2) + (0, longest - value.shape[1])) for value in values]
        joined[name] = torch.cat(values)
    return joined


def tensors_of(batch: Features) -> list[Tensor]:
    """The tensors, whose devices have random states."""
    return [value for value in batch.values() if isinstance(value, Tensor)]
