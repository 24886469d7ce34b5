"""One batch from several processes, with exactly the gradient that one process would have.

Every process computes the loss of the joined batch, so what flows back to a process's own rows is all that the loss says
about them. Processes then average the gradients of their parameters (DistributedDataParallel does), where one process would
have added up the contributions of all rows. The gradient of the own rows is therefore multiplied by the number of processes;
without that, as in several published trainers, every step is smaller by that factor. What comes after the joining (a learned
temperature, say) has the same gradient in all processes already, and averaging leaves it as it is.
"""

from typing import Any, Protocol

import torch
from torch import Tensor, distributed

from trilens.errors import BadInput


class Gather(Protocol):
    """Rows of all processes, in the order of the processes. `ragged` names the axis of tokens, which may differ in length."""

    def __call__(self, tensor: Tensor, ragged: int | None = None) -> Tensor: ...


def alone(tensor: Tensor, ragged: int | None = None) -> Tensor:
    """One process: its batch is the batch."""
    return tensor


def joined(tensor: Tensor, ragged: int | None = None) -> Tensor:
    """The batch of all processes of the group; just the own one where there is no group.

    Processes may have different numbers of rows. Shorter `ragged` axes are filled up with zeros, which masks say of themselves.
    """
    if not distributed.is_available() or not distributed.is_initialized() or distributed.get_world_size() == 1:
        return tensor
    shapes = _shapes(tensor)
    _require_alike(shapes, ragged)
    return _Join.apply(tensor, shapes)


class _Join(torch.autograd.Function):
    """All processes pad their tensor to the same shape, exchange, and cut off the rows that were padding."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, shapes: list[list[int]]) -> Tensor:
        """The rows of all."""
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
        """That of the own rows, for all processes: see the top of the file."""
        own = grad[ctx.start : ctx.start + ctx.shape[0]][_corner(ctx.shape)]
        return own * distributed.get_world_size(), None


def _corner(shape: torch.Size) -> tuple[slice, ...]:
    return tuple(slice(size) for size in shape)


def _shapes(tensor: Tensor) -> list[list[int]]:
    """The shape in each process."""
    own = torch.tensor(tensor.shape, device=tensor.device)
    found = [torch.empty_like(own) for _ in range(distributed.get_world_size())]
    distributed.all_gather(found, own)
    return [shape.tolist() for shape in found]


def _require_alike(shapes: list[list[int]], ragged: int | None) -> None:
    """Refuse what cannot be one batch; every process sees the same shapes, so all refuse."""
    for axis in range(1, len(shapes[0])):
        if axis != ragged and len({shape[axis] for shape in shapes}) > 1:
            raise BadInput(f"processes have tensors of shapes {shapes}; expected the same beyond the first axis")
