"""Sparse representations from token ids and model outputs: bags, `sparse` vectors and `lexical` weights."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from trilens.encode.folder import ModelDescription
from trilens.encode.reading import OwnTokens
from trilens.encode.tokens import Tokens
from trilens.errors import BadInput, BadModel
from trilens.kernels.activations import ALL, highest_per_term, keep_weights
from trilens.kernels.array_types import Float32s, Int32s
from trilens.represent import Sparse, saturated


@dataclass(frozen=True, slots=True)
class SparseMode:
    """Which weights of a `sparse` vector are kept.

    Keeps the `top` highest weights (None: all, 0: none) and, with `own`, the weights of all tokens that occur in the text.
    Models rarely output exact zeros, so pruning is what makes the vectors sparse.
    """

    top: int | None = 768
    own: bool = True

    def __post_init__(self) -> None:
        if self.top is not None and self.top < 0:
            raise BadInput(f"top is {self.top}; expected the number of weights to keep: 0 or more, or None for all")
        if self.top == 0 and not self.own:
            raise BadInput("top is 0 and own is False, which keeps no weights; expected top above 0 or own=True")


@dataclass(frozen=True, slots=True)
class Pruning:
    """Changes of a `SparseMode`: another number of highest weights, or own tokens on or off; None: unchanged."""

    top: int | Literal["all"] | None = None
    own: bool | None = None

    def of(self, mode: SparseMode) -> SparseMode:
        """The mode with these changes."""
        top = mode.top if self.top is None else None if self.top == "all" else self.top
        return SparseMode(top, mode.own if self.own is None else self.own)


class TermSpace:
    """Maps the tokens of a model's vocabulary to the terms of sparse vectors."""

    def __init__(self, tokens: Tokens, config: ModelDescription) -> None:
        self._tokens = tokens
        self._shift = config.sparse.shift if config.sparse else 0
        expected = {
            "sparse": config.sparse and config.sparse.dim + self._shift,
            "lexical": config.lexical and config.lexical.dim,
        }
        for head, size in expected.items():
            if size is not None and size != tokens.size:
                raise BadModel(
                    f"{tokens.file} has {tokens.size:,} tokens, but the {head} head of {config.name} is made for {size:,}; "
                    "restore the tokenizer or export the model again"
                )
        self.dim = tokens.size - self._shift
        self._stems = config.lexical.stems if config.lexical else None
        self._repeats = config.lexical.repeats if config.lexical else 0

    def bag(self, own: OwnTokens) -> Sparse:
        """Token counts of each text."""
        ones = np.ones(len(own.ids), np.float32)
        indptr, terms, _, counts = highest_per_term(own.ids, ones, own.begins, own.ends, self._shift, self._tokens.special)
        return Sparse(indptr, terms, counts, self.dim)

    def lexical(self, own: OwnTokens, weights: Float32s) -> Sparse:
        """The maximum weight of each term of a text, scaled by its saturated term frequency.

        `weights` covers all tokens of the model inputs.
        """
        require_finite(weights, "lexical")
        ids = self.lexical_terms(own.ids)
        indptr, terms, highest, counts = highest_per_term(ids, weights, own.begins, own.ends, 0, self._tokens.special)
        return Sparse(indptr, terms, highest * saturated(counts, self._repeats), self._tokens.size)

    def lexical_terms(self, ids: NDArray[np.integer]) -> Int32s:
        """The `lexical` terms of tokens: the tokens themselves or, with stemming, the first token of the same stem."""
        terms: Int32s = np.asarray(ids, np.int32) if self._stem_terms is None else self._stem_terms[ids]
        return terms

    @cached_property
    def _stem_terms(self) -> Int32s | None:
        return self._tokens.same_stems(self._stems) if self._stems else None

    def sparse(self, weights: Float32s, bag: Sparse, mode: SparseMode) -> Sparse:
        """Prune weights (texts, terms) according to `mode`; `bag` holds the tokens of the same texts."""
        require_finite(weights, "sparse")
        top = ALL if mode.top is None else mode.top
        return Sparse(*keep_weights(np.ascontiguousarray(weights), top, bag.indptr, bag.terms, mode.own), self.dim)

    def texts(self, terms: Sequence[int]) -> list[str]:
        """The words of `sparse` or bag terms; word pieces keep their continuation mark."""
        if wrong := [term for term in terms if not 0 <= term < self.dim]:
            raise BadInput(f"there is no term {wrong[0]} in {self._tokens.file}; expected 0 to {self.dim - 1}")
        return self._tokens.texts([term + self._shift for term in map(int, terms)])


def require_finite(weights: Float32s, head: str) -> None:
    """Raise if weights are not finite; NaN would otherwise be dropped silently."""
    if not np.isfinite(weights.max(initial=0)):  # the maximum propagates NaN
        raise BadModel(f"the {head} head of the model gave weights that are not finite; restore it or export it again")
