"""Heads: what becomes of the last hidden states of a shared backbone, (texts, tokens, hidden), attended positions in a mask."""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import elu, gelu, normalize, softplus

from trilens.errors import BadInput
from trilens.train.vocabulary import best_products


class DenseHead(nn.Module):
    """One vector per text: the state of the first token, or the mean over attended positions, at length 1.

    `linear`, and then `tanh`, are applied to the pooled state first. The vectors of DPR are not `normalised`.
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
        """Float (texts, dims); a text without positions is a zero vector under `mean`, unless a projection has a bias."""
        pooled = states[:, 0] if self.pooling == "cls" else _mean(states, mask)
        if self.linear is not None:
            pooled = self.linear(pooled)
        if self.tanh:
            pooled = torch.tanh(pooled)
        return normalize(pooled, dim=-1) if self.normalised else pooled


class LexicalHead(nn.Module):
    """A weight of at least 0 for each token of a text, ReLU(⟨w, state⟩ + b), and the text as the weights of its words."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.linear = nn.Linear(hidden, 1)

    def forward(self, states: Tensor) -> Tensor:
        """Float (texts, tokens)."""
        return torch.relu(self.linear(states)).squeeze(-1)


def lexical_vectors(weights: Tensor, ids: Tensor, kept: Tensor, terms: int) -> Tensor:
    """Weights of tokens (texts, tokens) over the vocabulary (texts, terms): of a word that stands there twice, the higher.

    `kept` leaves out padding and special tokens: see `kept_tokens`. Nothing is held per token and term.
    """
    blank = weights.new_zeros(len(weights), terms)
    return blank.scatter_reduce(1, ids, weights * kept.to(weights.dtype), "amax", include_self=True)


class SparseHead(nn.Module):
    """VDR: a weight above 0 for every word of the vocabulary, elu(x) + 1 of its best product with a state.

    The words are the backbone's own input embeddings, given at each call so that they stay tied; ids below `shift` (special and
    unused tokens) are no dimensions. Positions that are not attended to have no part in the maximum. `transform` puts a linear
    layer and GELU before the states are normalised, and `biases`, one per word, are added to
    the best products, as the heads of masked-language models have them.
    """

    def __init__(
        self, hidden: int, shift: int = 999, normalised: bool = False, transform: bool = False, biases: int = 0
    ) -> None:
        super().__init__()
        self.transform = nn.Linear(hidden, hidden) if transform else None
        self.bias = nn.Parameter(torch.zeros(biases)) if biases else None
        self.norm = nn.LayerNorm(hidden)
        self.shift = shift
        self.normalised = normalised

    def forward(self, states: Tensor, mask: Tensor, embeddings: Tensor) -> Tensor:
        """Float (texts, words - shift) from embeddings (words, hidden); a text without positions is a zero vector."""
        if not 0 <= self.shift < len(embeddings):
            raise BadInput(
                f"shift is {self.shift}; expected less than the {len(embeddings)} words of the backbone, and not below 0"
            )
        best = best_products(self.ready(states), embeddings[self.shift :], mask)
        if self.bias is not None:
            best = best + self.bias
        # elu + 1 grows with its argument, so the maximum may come first.
        weights = elu(best) + 1
        return normalize(weights, dim=-1) if self.normalised else weights

    def ready(self, states: Tensor) -> Tensor:
        """States as they meet the words."""
        return self.norm(states if self.transform is None else gelu(self.transform(states)))


class MultiHead(nn.Module):
    """One vector per token: a projection without bias (BGE-M3's has one), of length 1 or, as ColXTR has it, as it comes.

    `closing_mean`: the last position of `mask` has the mean over the mask for its vector, as in ColXTR. PrimeQA divides by the
    padded length instead, which makes a vector depend on what its text was batched with.
    `weighted`: the vectors of queries are multiplied by softplus(⟨w, state⟩ + b), so that tokens which say more count more.
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
        """Float (texts, tokens, dim); tokens that are not `kept` are zero vectors. `mask` is needed for the closing mean.

        `queries` says that the texts are queries, which matters to a weighted head only.
        """
        vectors = self.linear(states)
        if self.closing_mean:
            if mask is None:
                raise BadInput("there is no mask, which a head with closing_mean needs; expected the attended positions")
            vectors = torch.where(_last(mask)[:, :, None], _mean(vectors, mask)[:, None], vectors)
        if self.normalised:
            vectors = normalize(vectors, dim=-1)
        if self.weigh is not None:
            weights = softplus(self.weigh(states))
            # Docs get 1 and a gradient of 0, not none: processes wait for a gradient of each parameter before they go on.
            vectors = vectors * torch.where(torch.full_like(weights, queries, dtype=torch.bool), weights, 1)
        return vectors * kept[:, :, None].to(vectors.dtype)


def _mean(vectors: Tensor, mask: Tensor) -> Tensor:
    """The mean over the positions of the mask, zero where there are none."""
    weights = mask[:, :, None].to(vectors.dtype)
    return (vectors * weights).sum(1) / weights.sum(1).clamp(min=1)


def _last(mask: Tensor) -> Tensor:
    """The last position of each row of the mask, as a mask."""
    places = torch.arange(mask.shape[1], device=mask.device)
    return mask.bool() & (places == (places * mask).amax(1, keepdim=True))


def kept_tokens(ids: Tensor, mask: Tensor, left_out: Tensor, *, skip_first: bool = False) -> Tensor:
    """Which positions count: attended, and not of a token that `left_out` (bool, one per id) names; bool (texts, tokens).

    `left_out` names special tokens, and for documents usually punctuation. `skip_first` leaves out the first position as well.
    """
    kept = mask.bool() & ~left_out[ids]
    if skip_first:
        kept[:, 0] = False
    return kept


def bags_of_tokens(ids: Tensor, mask: Tensor, terms: int, shift: int = 0, normalised: bool = False) -> Tensor:
    """1 for each term that a text contains, as float (texts, terms); term t is the token t + `shift`.

    `normalised`: of length 1, for heads whose weights are.
    """
    present = torch.zeros(len(ids), shift + terms, device=ids.device)
    present = present.scatter_reduce(1, ids, mask.to(present.dtype), "amax")[:, shift:]
    return normalize(present, dim=-1) if normalised else present


def top_or_own(weights: Tensor, bags: Tensor, top: int = 768) -> Tensor:
    """Which terms are left of whole weights (texts, terms): the `top` highest and those the text contains; bool.

    `top` 0 leaves only a text's own terms.
    """
    if top < 0:
        raise BadInput(f"top is {top}; expected a number of terms, 0 for a text's own terms only")
    best = weights.detach().topk(min(top, weights.shape[1]), sorted=False).indices
    return bags.bool().scatter(1, best, True)
