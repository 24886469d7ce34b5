"""The parts of a score: summands with the places in query and passage that they come from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import BeforeValidator, InstanceOf, PlainSerializer

from trilens.kernels.array_types import Float64s

ROUNDING = 1e-6
Span = tuple[int, int]
"""Offset of the first character, and of the one after the last."""

Kind = Literal["own", "expanded", "pair", "imputed", "token", "asked", "rest", "lens"]
"""own       a term that both query and document contain
expanded  a term that a model or a query expansion added to one of them
pair      a query token and the document token that it matched
imputed   a query token that retrieved no token of the document, with its imputed similarity
token     a word of the document
asked     a word of the query, whatever it matched
rest      what belongs to no word: special tokens, rounding
lens      the contribution of one lens to a fused score"""

Similarities = Annotated[
    InstanceOf[np.ndarray],
    BeforeValidator(np.asarray),
    PlainSerializer(lambda array: array.astype(np.float64).round(4).tolist(), return_type=list[list[float]]),
]


@dataclass(frozen=True, slots=True)
class Part:
    """One summand of a score.

    `target` is what `label` matched. `query_span` is a span of the query, `doc_spans` are spans of the passage's text. `facts`
    are the numbers that the summand was computed from.
    """

    label: str
    score: float
    kind: Kind
    target: str | None = None
    query_span: Span | None = None
    doc_spans: tuple[Span, ...] = ()
    facts: Mapping[str, float | int | str | None] = field(default_factory=dict)


class Match(NamedTuple):
    """A place in a text that matches part `part` of a query, such as a term, and how much it contributes."""

    part: int
    start: int
    end: int
    weight: float


@dataclass(frozen=True, eq=False, slots=True)
class Matrix:
    """Similarities (query tokens, document tokens). The span of a token that is not part of its text is None."""

    query_tokens: list[str]
    doc_tokens: list[str]
    values: Similarities
    query_spans: list[Span | None]
    doc_spans: list[Span | None]


@dataclass(frozen=True, eq=False, slots=True)
class ScoreParts:
    """The decomposition of one score.

    `approximate` marks parts that were measured from outside (by leaving words out) instead of being the terms of the sum.
    """

    parts: Sequence[Part]
    approximate: bool = False
    matrix: Matrix | None = None


def with_rest(parts: Sequence[Part], score: float, label: str = "rounding") -> list[Part]:
    """The parts plus one for the remainder of the score, if it exceeds rounding error: scores are 32-bit floats."""
    rest = score - sum(part.score for part in parts)
    return [*parts, Part(label, rest, "rest")] if abs(rest) > ROUNDING else list(parts)


def heat(parts: Sequence[Part], length: int) -> list[tuple[int, int, float]]:
    """Stretches of a text of this length with their contribution to the score, in order and without overlap.

    A part with several spans is divided evenly among them; overlapping parts add up.
    """
    values: Float64s = np.zeros(length + 1)
    for part in parts:
        for start, end in part.doc_spans:
            values[start:end] += part.score / len(part.doc_spans)
    values[length] = np.nan
    edges = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    pairs = zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    return [(start, end, float(values[start])) for start, end in pairs if values[start]]
