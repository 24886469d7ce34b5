"""`Representations`: what the service computes of texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trilens.kernels.array_types import Float32s, Int32s


@dataclass(frozen=True, eq=False, slots=True)
class TermWeights:
    """The terms of one text, as numbers and as words, with their weights."""

    terms: Int32s
    words: Sequence[str]
    weights: Float32s


@dataclass(frozen=True, eq=False, slots=True)
class TokenMatrix:
    """The tokens of one text, and their vectors (tokens, dimensions)."""

    tokens: Sequence[str]
    vectors: Float32s


@dataclass(frozen=True, eq=False, slots=True)
class Representations:
    """What the heads of a model compute of texts, in the order of the texts; None for heads that were not used.

    model      fingerprint of the model
    dense      vectors (texts, dimensions)
    sparse     weights over the vocabulary, with expansion terms
    lexical    weights of own tokens
    multi      one vector per token
    truncated  number of texts that exceeded the maximum length of the model and were cut
    """

    model: str
    dense: Float32s | None
    sparse: Sequence[TermWeights] | None
    lexical: Sequence[TermWeights] | None
    multi: Sequence[TokenMatrix] | None
    truncated: int


def read_representations(plain: Mapping[str, Any]) -> Representations:
    """The representations from the JSON of the service."""
    multi = plain["multi"]
    return Representations(
        plain["model"],
        None if plain["dense"] is None else np.array(plain["dense"], np.float32),
        _terms(plain["sparse"]),
        _terms(plain["lexical"]),
        None if multi is None else [TokenMatrix(one["tokens"], np.array(one["vectors"], np.float32)) for one in multi],
        plain["truncated"],
    )


def _terms(plain: Sequence[Mapping[str, Any]] | None) -> list[TermWeights] | None:
    if plain is None:
        return None
    return [TermWeights(np.array(one["terms"], np.int32), one["words"], np.array(one["weights"], np.float32)) for one in plain]
