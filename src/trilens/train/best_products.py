"""The maximum over positions of the product of token states and word vectors, without storing all products.

A vocabulary head computes max over positions l of ⟨state[l], word[v]⟩ for every text and word. For 32 texts of 256 tokens and
30,522 words, storing all products takes a gigabyte, and their gradient another. Only one position per text and word matters:
the forward pass computes the products in cache-sized tiles and records the argmax positions, and the backward pass only
touches those. MaxSim is the same function with query tokens as words.
"""

from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import embedding_bag

from trilens.errors import BadInput

GROUP_TOKENS = 256  # short texts are multiplied together up to this many tokens
TILE = {"cpu": 2**18}  # products per tile: 1 MiB of float32 fits into a core's cache
TILE_ELSEWHERE = 2**24


def best_products(states: Tensor, words: Tensor, mask: Tensor, scale: Tensor | None = None) -> Tensor:
    """The highest product over the masked-in positions: float (texts, words); -inf for a text without any.

    `states`: float (texts, tokens, dims); `words`: float (words, dims); `mask`: (texts, tokens), 0 or False for positions to
    ignore. `scale`, a scalar or one value per dimension, multiplies the states. Ties go to the first position, which also
    gets the gradient. Products are computed in the dtype of `words`, regardless of autocast.
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
    """`tokens` (tokens, dims) are the concatenated tokens of all texts; `lengths` has the number of tokens of each text."""

    @staticmethod
    def forward(ctx: Any, tokens: Tensor, words: Tensor, lengths: list[int]) -> Tensor:
        """The maxima; the argmax token of each text and word is saved for the backward pass."""
        best = words.new_full((len(lengths), len(words)), -torch.inf)
        winners = torch.zeros(best.shape, dtype=torch.int32, device=best.device)
        tile = TILE.get(words.device.type, TILE_ELSEWHERE)
        buffer = words.new_empty(0)
        # Autocast would compute the products in a dtype other than the buffer's.
        with torch.autocast(words.device.type, enabled=False):
            for texts, tokens_of_group in _groups(lengths):
                group = tokens[tokens_of_group].T
                step = max(64, tile // group.shape[1])
                for start in range(0, len(words), step):
                    chunk = words[start : start + step]
                    size = len(chunk) * group.shape[1]
                    if len(buffer) < size:
                        buffer = words.new_empty(size)
                    # Words in rows: a maximum along rows is ten times faster than along columns.
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
        """The gradient of a word sums its argmax tokens, that of a token the words it won, weighted by `grad`."""
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
            rows = (winners + starts[:, None]).clamp(max=len(tokens) - 1).T.contiguous()  # the last text may be empty
            grad_words = _weighted_sums(rows, tokens, grad.T.contiguous()) if len(tokens) else torch.zeros_like(words)
        return grad_tokens, grad_words, None


def _keep_best(products: Tensor, lengths: list[int], best: Tensor, winners: Tensor) -> None:
    """Write the maximum over each text's columns into `best`, and its column within the text into `winners`."""
    for row, columns in enumerate(products.split(lengths, dim=1)):
        if columns.shape[1]:
            values, columns_won = columns.max(1)
            best[row] = values
            winners[row] = columns_won


def _won_words(words: Tensor, length: int, winners: Tensor, weights: Tensor) -> Tensor:
    """For each position of a text, the weighted sum of the words it won (tokens, dims)."""
    counts = torch.bincount(winners, minlength=length)
    order = winners.argsort(stable=True)
    return _weighted_sums(order, words, weights[order], offsets=counts.cumsum(0) - counts)


def _weighted_sums(rows: Tensor, table: Tensor, weights: Tensor, offsets: Tensor | None = None) -> Tensor:
    """Σ weight · table[row] for each bag of rows; an embedding bag does not materialise the rows."""
    return embedding_bag(rows, table, offsets, mode="sum", per_sample_weights=weights)


def _groups(lengths: list[int]) -> Iterator[tuple[slice, slice]]:
    """Slices of texts and of their tokens, grouped for one multiplication each; groups without tokens are skipped."""
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
