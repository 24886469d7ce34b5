"""Pseudo-relevance feedback: settings, the feedback passages of a query, and the interpolation of query and feedback terms."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import numpy as np
from pydantic import Field

from trilens.errors import BadInput
from trilens.frozen import Frozen
from trilens.represent import Sparse
from trilens.represent.ragged import offsets_of

DEFAULTS = "on"
MOST = 1000

Term = TypeVar("Term", str, int)


class Expansion(Frozen):
    """Settings of pseudo-relevance feedback.

    docs    number of top documents whose best passages are assumed to be relevant
    terms   number of expansion terms
    weight  weight of the original query, from 0 to 1
    common  bm25: terms in a larger share of all passages are not added
    """

    docs: Annotated[int, Field(strict=True, ge=1, le=MOST)] = 10
    terms: Annotated[int, Field(strict=True, ge=1, le=MOST)] = 10
    weight: Annotated[float, Field(strict=True, ge=0, le=1)] = 0.5
    common: Annotated[float, Field(strict=True, ge=0, le=1)] = 0.1

    def __str__(self) -> str:
        changed = self.model_dump(exclude_defaults=True)
        return ",".join(f"{name}={value}" for name, value in changed.items()) or DEFAULTS


@dataclass(frozen=True, slots=True)
class FeedbackPassages:
    """The feedback passages of one query, best first. `texts` reads their texts when they are needed."""

    rows: Sequence[int]
    scores: Sequence[float]
    texts: Callable[[], list[str]]


def mix(
    original: Mapping[Term, float], feedback: Mapping[Term, float], weight: float
) -> tuple[dict[Term, float], dict[Term, float]]:
    """The interpolated query and the part of it that came from the feedback.

    Both sides are scaled to the weight sum of the original query, so that scores keep their magnitude. Without feedback
    terms the query is unchanged.
    """
    query_sum, feedback_sum = sum(original.values()), sum(feedback.values())
    if not query_sum or not feedback_sum:
        return dict(original), {}
    added = {term: (1 - weight) * query_sum * value / feedback_sum for term, value in feedback.items()}
    mixture = {term: weight * value for term, value in original.items()}
    for term, value in added.items():
        mixture[term] = mixture.get(term, 0.0) + value
    return {term: value for term, value in mixture.items() if value > 0}, added


def to_sparse(rows: Sequence[Mapping[int, float]], dim: int) -> Sparse:
    """Weighted terms as sparse rows."""
    terms = [term for row in rows for term in sorted(row)]
    weights = [row[term] for row in rows for term in sorted(row)]
    offsets = offsets_of(np.array([len(row) for row in rows], np.int64))
    return Sparse(offsets, np.array(terms, np.int32), np.array(weights, np.float32), dim)


def parse_expansion(given: Any) -> Any:
    """Expansion settings from text: `on`, or fields such as `docs=10,terms=20,weight=0.6`. Other values pass through."""
    if not isinstance(given, str):
        return given
    known = list(Expansion.model_fields)
    options: dict[str, float] = {}
    for piece in [] if given.strip() == DEFAULTS else given.split(","):
        name, _, value = (part.strip() for part in piece.partition("="))
        if name not in known or name in options:
            raise BadInput(f"expand is {given!r}; expected {DEFAULTS}, or each once of {', '.join(known)} as NAME=NUMBER")
        try:
            options[name] = int(value) if value.isdigit() else float(value)
        except ValueError as error:
            raise BadInput(f"expand {given!r} has {name}={value}; expected a number") from error
    return options
