"""The highest product of each text's states with each word, without ever holding a product per position and word.

A vocabulary head needs max over the positions l of ⟨state[l], word[v]⟩ for every text and word. Kept whole, the products of
32 texts of 256 tokens with 30,522 words take a gigabyte, and their gradient another. Only one position per text and word
matters, so the forward pass makes the products in tiles that stay in the processor's cache and remembers the winning
positions, and the backward pass touches nothing but the winners. MaxSim is the same with the tokens of queries for words.
"""

from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import embedding_bag

from trilens.errors import BadInput

GROUP_TOKENS = 256  # short texts are multiplied together until they have so many tokens
TILE = {"cpu": 2**18}  # products at a time: 1 MiB of float32 stays in the cache of a core
TILE_ELSEWHERE = 2**24


def best_products(states: Tensor, words: Tensor, mask: Tensor, scale: Tensor | None = None) -> Tensor:
    """The highest product over the positions that `mask` has: float (texts, words); -inf for a text that has none.

    `states`: float (texts, tokens, dims); `words`: float (words, dims); `mask`: (texts, tokens), 0 or False where a position
    has no part. `scale`, one number or one per dimension, multiplies the states. Of equal products the first position wins,
    and gets the gradient. Products are computed in the type of `words`, autocast or not.
    """
    _require_shapes(states, words, mask)
    if scale is not None:
        states = states * scale
    kept = mask.bool()
    lengths: list[int] = kept.sum(1).tolist()
    tokens = states.flatten(0, 1)
    if sum(lengths) < len(tokens):
        tokens = tokens.index_select(0, kept.flatten().nonzero().flatten())
    return _BestProducts.apply(tokens.to(words.dtype).contiguous(), words, lengths)


class _BestProducts(torch.autograd.Function):
    """`tokens` (tokens, dims) are those of all texts end to end; `lengths` says how many each text has."""

    @staticmethod
    def forward(ctx: Any, tokens: Tensor, words: Tensor, lengths: list[int]) -> Tensor:
        """Values and, for the way back, the winning token of each text and word."""
        best = words.new_full((len(lengths), len(words)), -torch.inf)
        winners = torch.zeros(best.shape, dtype=torch.int32, device=best.device)
        tile = TILE.get(words.device.type, TILE_ELSEWHERE)
        buffer = words.new_empty(0)
        # Autocast would make the products in another type than the buffer's.
        with torch.autocast(words.device.type, enabled=False):
            for texts, tokens_of_group in _groups(lengths):
                group = tokens[tokens_of_group].T
                step = max(64, tile // group.shape[1])
                for start in range(0, len(words), step):
                    chunk = words[start : start + step]
                    size = len(chunk) * group.shape[1]
                    if len(buffer) < size:
                        buffer = words.new_empty(size)
                    # Words in rows, since the maximum along a row is ten times faster than down a column.
                    products = torch.mm(chunk, group, out=buffer[:size].view(len(chunk), -1))
                    _keep_best(
                        products, lengths[texts], best[texts, start : start + step], winners[texts, start : start + step]
                    )
        ctx.save_for_backward(tokens, words, winners)
        ctx.lengths = lengths
        return best

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        """A word gets the tokens that won for it, a token the words that it won, weighted with the gradient."""
        tokens, words, winners = ctx.saved_tensors
        if 0 in ctx.lengths:
            grad = grad.masked_fill(torch.tensor(ctx.lengths, device=grad.device)[:, None] == 0, 0)
        grad = grad.contiguous()
        starts = torch.tensor([0, *accumulate(ctx.lengths)][:-1], dtype=torch.int32, device=grad.device)
        grad_tokens = grad_words = None
        if ctx.needs_input_grad[0]:
            parts = zip(ctx.lengths, winners, grad, strict=True)
            grad_tokens = torch.cat([tokens[:0], *(_won_words(words, *part) for part in parts if part[0])])
        if ctx.needs_input_grad[1]:
            rows = (winners + starts[:, None]).clamp(max=len(tokens) - 1).T.contiguous()  # of the last text, if it is empty
            grad_words = _weighted_sums(rows, tokens, grad.T.contiguous()) if len(tokens) else torch.zeros_like(words)
        return grad_tokens, grad_words, None


def _keep_best(products: Tensor, lengths: list[int], best: Tensor, winners: Tensor) -> None:
    """Write the maximum of each text's columns, and which column of the text it is, into `best` and `winners`."""
    for row, columns in enumerate(products.split(lengths, dim=1)):
        if columns.shape[1]:
            values, places = columns.max(1)
            best[row] = values
            winners[row] = places


def _won_words(words: Tensor, length: int, winners: Tensor, weights: Tensor) -> Tensor:
    """For each position of one text the weighted sum of the words that it won (tokens, dims)."""
    counts = torch.bincount(winners, minlength=length)
    order = winners.argsort(stable=True)
    return _weighted_sums(order, words, weights[order], offsets=counts.cumsum(0) - counts)


def _weighted_sums(rows: Tensor, table: Tensor, weights: Tensor, offsets: Tensor | None = None) -> Tensor:
    """Σ weight · table[row] for each bag of rows; an embedding bag never holds the rows that it adds up."""
    return embedding_bag(rows, table, offsets, mode="sum", per_sample_weights=weights)


def _groups(lengths: list[int]) -> Iterator[tuple[slice, slice]]:
    """Texts, and their tokens, in groups that are worth a multiplication; groups without tokens are left out."""
    ends = [0, *accumulate(lengths)]
    borders = [0]
    for text, end in enumerate(ends[1:], 1):
        if end - ends[borders[-1]] >= GROUP_TOKENS or text == len(lengths):
            borders.append(text)
    for first, last in pairwise(borders):
        if ends[first] < ends[last]:
            yield slice(first, last), slice(ends[first], ends[last])


def _require_shapes(states: Tensor, words: Tensor, mask: Tensor) -> None:
    if states.ndim != 3 or words.ndim != 2 or states.shape[2] != words.shape[1] or mask.shape != states.shape[:2]:
        raise BadInput(
            f"states are {tuple(states.shape)}, words {tuple(words.shape)}, mask {tuple(mask.shape)}; expected "
            "(texts, tokens, dims), (words, dims) and (texts, tokens)"
        )
