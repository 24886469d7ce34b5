"""How a search through a sparse lens is done: what can be said of it, and what is taken where nothing is said."""

import json
from dataclasses import dataclass, fields
from typing import Literal, NamedTuple

from trilens.errors import BadInput

Method = Literal["approximate", "exact"]
QueryKind = Literal["weights", "bag"]


@dataclass(frozen=True, slots=True)
class SparseParams:
    """How one search is done. What is None is chosen by `default_params`, for each search anew.

    query       what the query counts as: its weights, or the bag of its tokens
    rarity      whether terms count by how rare they are in the collection, if its model is meant for that
    method      approximate, or exact: every row that could be among the best is scored
    terms       approximate: how many terms of the query are read, the heaviest first; a query of no more is answered exactly
    candidates  approximate: rows of each segment whose full score is computed
    """

    query: QueryKind = "weights"
    rarity: bool = True
    method: Method = "approximate"
    terms: int | None = None
    candidates: int | None = None

    def __post_init__(self) -> None:
        if self.query not in ("weights", "bag"):
            raise BadInput(f"query is {self.query!r}; expected weights or bag")
        if self.method not in ("approximate", "exact"):
            raise BadInput(f"method is {self.method!r}; expected approximate or exact")
        if not isinstance(self.rarity, bool):
            raise BadInput(f"rarity is {self.rarity!r}; expected true or false")
        for name in ("terms", "candidates"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
                raise BadInput(f"{name} is {value!r}; expected a whole number, at least 1")


class Settings(NamedTuple):
    """`SparseParams` in which everything is chosen; `terms` is 0 for an exact search."""

    terms: int
    candidates: int


def parse_params(text: str) -> SparseParams:
    """Parameters from the command line."""
    try:
        return SparseParams(**json.loads(text))
    except (json.JSONDecodeError, TypeError) as error:
        names = ", ".join(field.name for field in fields(SparseParams))
        raise BadInput(f"sparse settings are {text!r} ({error}); expected a JSON object with some of {names}") from error


def default_params(params: SparseParams, k: int, rows: int) -> Settings:
    """What a search for the best k of so many rows takes where `params` says nothing.

    A pure function, so that no search leaves anything behind for the next.
    """
    if params.method == "exact":
        return Settings(0, 0)
    growth = max(1.0, rows / 50_000) ** 0.25
    terms = int(128 * growth) if params.terms is None else params.terms
    candidates = int(max(200, 8 * k) * growth) if params.candidates is None else params.candidates
    return Settings(terms, max(k, candidates))
