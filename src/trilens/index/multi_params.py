"""How a search through the multi lens is done: what can be said of it, and what is taken where nothing is said."""

import json
from dataclasses import dataclass, fields
from typing import Literal

from trilens.errors import BadInput

Method = Literal["plaid", "xtr", "exact"]


@dataclass(frozen=True, slots=True)
class MultiParams:
    """How much work one search does. What is None is chosen by `default_params`, for each search anew.

    reach       groups of centroids looked at for each query token
    probes      centroids of each query token whose rows become candidates (plaid) or whose tokens are scored (xtr)
    candidates  rows that are looked at closer: by their near tokens (plaid) or all their tokens (xtr, 0 for none)
    margin      plaid: how far below a row's best centroid another may be for its tokens to count, in lengths of a vector
    nth         xtr: a query token without a retrieved token gets its nth best similarity (k'); 0: estimated as WARP does
    tokens      xtr: the number of tokens after which WARP's estimate stops
    """

    method: Method = "plaid"
    reach: int | None = None
    probes: int | None = None
    candidates: int | None = None
    margin: float | None = None
    nth: int | None = None
    tokens: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("reach", 1), ("probes", 1), ("candidates", 0), ("nth", 0), ("tokens", 0)):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < least):
                raise BadInput(f"{name} is {value!r}; expected a whole number, at least {least}")
        if self.margin is not None and not (isinstance(self.margin, int | float) and self.margin >= 0):
            raise BadInput(f"margin is {self.margin!r}; expected 0 or more")
        if self.method not in ("plaid", "xtr", "exact"):
            raise BadInput(f"method is {self.method!r}; expected plaid, xtr or exact")


@dataclass(frozen=True, slots=True)
class Settings:
    """`MultiParams` in which everything is chosen."""

    method: Method
    reach: int
    probes: int
    candidates: int
    margin: float
    nth: int
    tokens: int

    @property
    def imputes(self) -> bool:
        """Whether scores hold imputed parts; those of all other searches are MaxSim."""
        return self.method == "xtr" and not self.candidates


def parse_params(text: str) -> MultiParams:
    """Parameters from the command line."""
    try:
        return MultiParams(**json.loads(text))
    except (json.JSONDecodeError, TypeError) as error:
        names = ", ".join(field.name for field in fields(MultiParams))
        raise BadInput(f"multi settings are {text!r} ({error}); expected a JSON object with some of {names}") from error


def default_params(params: MultiParams, k: int, rows: int, crowding: float = 1.0) -> Settings:
    """What a search for the best k of so many rows takes where `params` says nothing.

    A pure function, so that no search leaves anything behind for the next. `crowding` is how many times as many centroids
    there are as a fresh codebook would have.
    """
    growth = max(1.0, rows / 5000) ** 0.25
    xtr = params.method == "xtr"
    probes = int((64 if xtr else 32) * growth * crowding)  # xtr never looks again at what a probe missed
    return Settings(
        method=params.method,
        reach=_first(params.reach, probes if xtr else probes // 2),
        probes=_first(params.probes, probes),
        candidates=_first(params.candidates, 0 if xtr else int(max(200, 8 * k) * growth)),
        margin=0.1 if params.margin is None else params.margin,
        nth=_first(params.nth, 0),
        tokens=_first(params.tokens, int(10_000 * growth**2)),
    )


def _first(said: int | None, default: int) -> int:
    return default if said is None else said
