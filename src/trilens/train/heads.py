"""Heads as modules over the last hidden states of a shared backbone, (texts, tokens, hidden), with an attention mask."""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import elu, gelu, normalize, relu, softplus

from trilens.errors import BadInput
from trilens.train.best_products import best_products


class DenseHeadModule(nn.Module):
    """One vector per text: CLS or mean pooling, normalised.

    `linear`, then `tanh`, are applied to the pooled state. DPR's vectors are not `normalised`.
    """

    def __init__(
        self, pooling: Literal["cls", "mean"], normalised: bool = True, linear: nn.Linear | None = None, tanh: bool = False
    ) -> None:
        super().__init__()
        if pooling not in ("cls", "mean"):
            raise BadInput(f"pooling is {pooling!r}; expected 'cls' or 'mean'")
        self.pooling = pooling
        self.normalised = normalised
        self.linear = linear
        self.tanh = tanh

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """Float (texts, dims); with mean pooling, a text without positions is a zero vector, unless a projection has a bias."""
        pooled = states[:, 0] if self.pooling == "cls" else _mean(states, mask)
        if self.linear is not None:
            pooled = self.linear(pooled)
        if self.tanh:
            pooled = torch.tanh(pooled)
        return normalize(pooled, dim=-1) if self.normalised else pooled


class LexicalHeadModule(nn.Module):
    """A non-negative weight per token, ReLU(⟨w, state⟩ + b)."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.linear = nn.Linear(hidden, 1)

    def forward(self, states: Tensor) -> Tensor:
        """Float (texts, tokens)."""
        return torch.relu(self.linear(states)).squeeze(-1)


def lexical_vectors(weights: Tensor, ids: Tensor, kept: Tensor, terms: int) -> Tensor:
    """Scatter token weights (texts, tokens) over the vocabulary (texts, terms); a repeated token keeps its highest weight.

    `kept` masks out padding and special tokens: see `kept_tokens`. No (texts, tokens, terms) tensor is created.
    """
    blank = weights.new_zeros(len(weights), terms)
    return blank.scatter_reduce(1, ids, weights * kept.to(weights.dtype), "amax", include_self=True)


class SparseHeadModule(nn.Module):
    """VDR: a positive weight for every word of the vocabulary, elu(x) + 1 of its highest product with a token state.

    SPLADE: log(1 + ReLU(x)) instead, the activation `log1p`.

    The word vectors are the backbone's input embeddings, passed at each call so that they stay tied; ids below `shift`
    (special and unused tokens) have no dimension. Masked positions are ignored. `transform` adds a linear layer and GELU
    before the normalisation, and `biases`, one per word, are added to the highest products, as in masked-language heads.
    """

    def __init__(
        self,
        hidden: int,
        shift: int = 999,
        normalised: bool = False,
        transform: bool = False,
        biases: int = 0,
        activation: Literal["elu1p", "log1p"] = "elu1p",
        epsilon: float = 1e-5,
    ) -> None:
        super().__init__()
        self.transform = nn.Linear(hidden, hidden) if transform else None
        self.bias = nn.Parameter(torch.zeros(biases)) if biases else None
        self.norm = nn.LayerNorm(hidden, eps=epsilon)
        self.shift = shift
        self.activation = activation
        self.normalised = normalised

    def forward(self, states: Tensor, mask: Tensor, embeddings: Tensor) -> Tensor:
        """Float (texts, words - shift) from embeddings (words, hidden); a text without positions is a zero vector."""
        if not 0 <= self.shift < len(embeddings):
            raise BadInput(
                f"shift is {self.shift}; expected at least 0 and less than the {len(embeddings)} words of the backbone"
            )
        best = best_products(self.ready(states), embeddings[self.shift :], mask)
        if self.bias is not None:
            best = best + self.bias
        # Activations are monotonic, so they commute with the maximum.
        weights = torch.log1p(relu(best)) if self.activation == "log1p" else elu(best) + 1
        return normalize(weights, dim=-1) if self.normalised else weights

    def ready(self, states: Tensor) -> Tensor:
        """Transformed and normalised states."""
        return self.norm(states if self.transform is None else gelu(self.transform(states)))


class MultiHeadModule(nn.Module):
    """One vector per token: a linear projection (bias-free except in BGE-M3), normalised unless disabled as in ColXTR.

    `closing_mean`: the vector at the last position of `mask` is replaced by the mean over the mask, as in ColXTR. PrimeQA
    divides by the padded length instead, which makes a vector depend on its batch.
    `weighted`: query vectors are multiplied by softplus(⟨w, state⟩ + b), a weight per token.
    """

    def __init__(
        self,
        hidden: int,
        dim: int,
        normalised: bool = True,
        bias: bool = False,
        closing_mean: bool = False,
        weighted: bool = False,
    ) -> None:
        super().__init__()
        self.linear = nn.Linear(hidden, dim, bias=bias)
        self.normalised = normalised
        self.closing_mean = closing_mean
        self.weigh = nn.Linear(hidden, 1) if weighted else None

    def forward(self, states: Tensor, kept: Tensor, mask: Tensor | None = None, *, queries: bool = False) -> Tensor:
        """Float (texts, tokens, dim); tokens that are not `kept` are zero vectors. `closing_mean` requires `mask`.

        `queries`: whether the texts are queries; only a weighted head distinguishes them.
        """
        vectors = self.linear(states)
        if self.closing_mean:
            if mask is None:
                raise BadInput("mask is missing; expected the attention mask, which a head with closing_mean needs")
            vectors = torch.where(_last(mask)[:, :, None], _mean(vectors, mask)[:, None], vectors)
        if self.normalised:
            vectors = normalize(vectors, dim=-1)
        if self.weigh is not None:
            weights = softplus(self.weigh(states))
            # Docs have weight 1 and a zero gradient, not none: DDP waits for a gradient of every parameter.
            vectors = vectors * torch.where(torch.full_like(weights, queries, dtype=torch.bool), weights, 1)
        return vectors * kept[:, :, None].to(vectors.dtype)


def _mean(vectors: Tensor, mask: Tensor) -> Tensor:
    """The mean over the positions of the mask; zero if there are none."""
    weights = mask[:, :, None].to(vectors.dtype)
    return (vectors * weights).sum(1) / weights.sum(1).clamp(min=1)


def _last(mask: Tensor) -> Tensor:
    """A mask of the last position of each row of the mask."""
    positions = torch.arange(mask.shape[1], device=mask.device)
    return mask.bool() & (positions == (positions * mask).amax(1, keepdim=True))


def kept_tokens(ids: Tensor, mask: Tensor, left_out: Tensor, *, skip_first: bool = False) -> Tensor:
    """Positions that are attended and whose token is not in `left_out` (bool, one per id): bool (texts, tokens).

    `left_out` marks special tokens and, for documents, usually punctuation. `skip_first` also drops the first position.
    """
    kept = mask.bool() & ~left_out[ids]
    if skip_first:
        kept[:, 0] = False
    return kept


def bags_of_tokens(ids: Tensor, mask: Tensor, terms: int, shift: int = 0, normalised: bool = False) -> Tensor:
    """A multi-hot vector of the terms that each text contains, float (texts, terms); term t is token t + `shift`.

    `normalised`: with unit length, for heads with normalised weights.
    """
    present = torch.zeros(len(ids), shift + terms, device=ids.device)
    present = present.scatter_reduce(1, ids, mask.to(present.dtype), "amax")[:, shift:]
    return normalize(present, dim=-1) if normalised else present


def top_or_own(weights: Tensor, bags: Tensor, top: int = 768) -> Tensor:
    """A mask of the `top` highest weights (texts, terms) and of the terms that the text contains: bool.

    With `top` 0, only the text's own terms remain.
    """
    if top < 0:
        raise BadInput(f"top is {top}; expected a number of terms, or 0 for the text's own terms only")
    best = weights.detach().topk(min(top, weights.shape[1]), sorted=False).indices
    return bags.bool().scatter(1, best, True)
