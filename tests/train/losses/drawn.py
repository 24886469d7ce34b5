"""Random head outputs of queries and docs."""

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

Heads = TypeVar("Heads")


def both_sides(
    make: Callable[..., Heads], vectors: tuple[int, ...], seed: int, queries: int, group: int
) -> tuple[Heads, Heads]:
    """`make` applied to random vectors of these sizes, token vectors and their mask, for queries and for groups of docs."""
    generator = torch.Generator().manual_seed(seed)

    def side(*texts: int, tokens: int) -> Heads:
        def values(*shape: int) -> Tensor:
            return (0.3 * torch.randn(*texts, *shape, generator=generator, dtype=torch.float64)).requires_grad_()

        mask = torch.rand(*texts, tokens, generator=generator) > 0.4
        mask[..., 0] = True
        return make(*(values(size) for size in vectors), values(tokens, 5), mask)

    return side(queries, tokens=3), side(queries, group, tokens=4)
