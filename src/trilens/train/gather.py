"""Gathering of a batch across processes, with the gradient that a single process would compute.

Every process computes the loss of the gathered batch, so the gradient of its own rows is complete. Data-parallel training then
averages parameter gradients over processes, where a single process would sum the contributions of all rows. The gradient of
the own rows is therefore multiplied by the number of processes; without that, as in several published trainers, every step is
smaller by that factor. Parameters used after gathering (a learned temperature, say) have the same gradient in all processes
already, and averaging leaves it unchanged.
"""

from typing import Any, Protocol

import torch
from torch import Tensor, distributed

from trilens.errors import BadInput


class Gather(Protocol):
    """Concatenates the rows of all processes, in rank order. `ragged` is the token axis, whose length may differ."""

    def __call__(self, tensor: Tensor, ragged: int | None = None) -> Tensor: ...


def alone(tensor: Tensor, ragged: int | None = None) -> Tensor:
    """The tensor itself: a single process has the whole batch."""
    return tensor


def joined(tensor: Tensor, ragged: int | None = None) -> Tensor:
    """Gather the batch of all processes; without a process group, the tensor itself.

    Processes may have different numbers of rows. Shorter `ragged` axes are padded with zeros, also in masks.
    """
    if not distributed.is_available() or not distributed.is_initialized() or distributed.get_world_size() == 1:
        return tensor
    shapes = _shapes(tensor)
    _require_alike(shapes, ragged)
    return _Join.apply(tensor, shapes)


class _Join(torch.autograd.Function):
    """Pads the tensors of all processes to a common shape, exchanges them, and removes padded rows."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, shapes: list[list[int]]) -> Tensor:
        """The rows of all processes."""
        ctx.shape = tensor.shape
        ctx.start = sum(shape[0] for shape in shapes[: distributed.get_rank()])
        flat = tensor.to(torch.uint8) if tensor.dtype == torch.bool else tensor.detach()
        sent = flat.new_zeros([max(sizes) for sizes in zip(*shapes, strict=True)])
        sent[_corner(tensor.shape)] = flat
        received = [torch.empty_like(sent) for _ in shapes]
        distributed.all_gather(received, sent)
        return torch.cat([part[: shape[0]] for part, shape in zip(received, shapes, strict=True)]).to(tensor.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        """The gradient of the own rows, multiplied by the number of processes: see the module docstring."""
        own = grad[ctx.start : ctx.start + ctx.shape[0]][_corner(ctx.shape)]
        return own * distributed.get_world_size(), None


def _corner(shape: torch.Size) -> tuple[slice, ...]:
    return tuple(slice(size) for size in shape)


def _shapes(tensor: Tensor) -> list[list[int]]:
    """The shape of the tensor in each process."""
    own = torch.tensor(tensor.shape, device=tensor.device)
    shapes = [torch.empty_like(own) for _ in range(distributed.get_world_size())]
    distributed.all_gather(shapes, own)
    return [shape.tolist() for shape in shapes]


def _require_alike(shapes: list[list[int]], ragged: int | None) -> None:
    """Require equal shapes beyond the first and the ragged axis; all processes see the same shapes, so all fail alike."""
    for axis in range(1, len(shapes[0])):
        if axis != ragged and len({shape[axis] for shape in shapes}) > 1:
            raise BadInput(f"processes have tensors of shapes {shapes}; expected the same beyond the first axis")
