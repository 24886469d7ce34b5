"""From what a model computed to weighted terms: bags of tokens, vectors over the vocabulary, weights of a text's own tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trilens.encode.folder import ModelDescription
from trilens.encode.reading import Own
from trilens.encode.tokens import Tokens
from trilens.errors import BadInput, BadModel
from trilens.kernels.activations import ALL, highest_per_term, keep_weights
from trilens.represent import Sparse, saturated


@dataclass(frozen=True, slots=True)
class SparseMode:
    """Which weights of a vector over the vocabulary are kept.

    The `top` highest (None: all, 0: none) and, with `own`, those of the text's own tokens, however low. A model's activation
    is rarely zero, so this alone makes the vector sparse.
    """

    top: int | None = 768
    own: bool = True

    def __post_init__(self) -> None:
        if self.top is not None and self.top < 0:
            raise BadInput(f"top is {self.top}; expected how many weights to keep, 0 for none, or None for all")
        if self.top == 0 and not self.own:
            raise BadInput("top is 0 and own is False, so no weight would be kept; expected at least one of them")


class Terms:
    """The vocabulary of a model as dimensions: what is a term, and what is its word."""

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
                    "restore the tokenizer or make the folder again"
                )
        self.dim = tokens.size - self._shift
        self._stems = config.lexical.stems if config.lexical else None
        self._repeats = config.lexical.repeats if config.lexical else 0

    def bag(self, own: Own) -> Sparse:
        """The text's own tokens, each with how often it stands there."""
        alike = np.ones(len(own.ids), np.float32)
        indptr, terms, _, counts = highest_per_term(own.ids, alike, own.begins, own.ends, self._shift, self._tokens.special)
        return Sparse(indptr, terms, counts, self.dim)

    def lexical(self, own: Own, weights: NDArray[np.float32]) -> Sparse:
        """The text's own tokens, each with the highest of the weights (of all tokens) that it has in the text, raised where
        it is repeated."""
        require_finite(weights, "lexical")
        ids = self.lexical_terms(own.ids)
        indptr, terms, highest, counts = highest_per_term(ids, weights, own.begins, own.ends, 0, self._tokens.special)
        return Sparse(indptr, terms, highest * saturated(counts, self._repeats), self._tokens.size)

    def lexical_terms(self, ids: NDArray[np.integer]) -> NDArray[np.int32]:
        """The terms of a `lexical` that these tokens are: themselves, or the first token of the same stem."""
        found: NDArray[np.int32] = np.asarray(ids, np.int32) if self._same is None else self._same[ids]
        return found

    @cached_property
    def _same(self) -> NDArray[np.int32] | None:
        return self._tokens.same_stems(self._stems) if self._stems else None

    def sparse(self, rows: NDArray[np.float32], bag: Sparse, mode: SparseMode) -> Sparse:
        """What `mode` keeps of the weights (texts, dimensions) of texts with these bags."""
        require_finite(rows, "sparse")
        top = ALL if mode.top is None else mode.top
        return Sparse(*keep_weights(np.ascontiguousarray(rows), top, bag.indptr, bag.terms, mode.own), self.dim)

    def texts(self, terms: Sequence[int]) -> list[str]:
        """The words of the terms of a `sparse` or a bag, one for each; a piece that continues a word keeps its mark."""
        if wrong := [term for term in terms if not 0 <= term < self.dim]:
            raise BadInput(f"there is no term {wrong[0]} in {self._tokens.file}; expected 0 to {self.dim - 1}")
        return self._tokens.texts([term + self._shift for term in map(int, terms)])


def require_finite(weights: NDArray[np.float32], head: str) -> None:
    """Refuse what a damaged model gives, which would otherwise be missing from the result without a word."""
    if not np.isfinite(weights.max(initial=0)):  # the maximum of anything with a NaN is NaN
        raise BadModel(f"the {head} head of the model gave weights that are not finite; restore the model or make it again")
