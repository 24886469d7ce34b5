"""One ranking out of several: named policies over the scores that lenses give the same candidates.

`rrf`       Σ w / (k + rank): needs no comparable scores (Cormack et al. 2009)
`weighted`  Σ w · score, as the scores are (BGE-M3: dense + 0.3 · sparse + multi)
`minmax`    Σ w · (score − lowest) / (highest − lowest)
`zscore`    Σ w · (score − mean) / standard deviation
`convex`    α · dense + (1 − α) · other, of two lenses, each normalised by `norm`

Lowest, highest, mean and deviation are those of the scores that the lens gives the candidates of this query. The candidates
are the union of what the lenses return; `missing` says what a lens counts for one that it did not return itself.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from trilens.errors import BadInput

Policy = Literal["rrf", "weighted", "minmax", "zscore", "convex"]
Missing = Literal["exact", "worst", "zero"]
Norm = Literal["minmax", "zscore", "none"]
Scores = NDArray[np.float64]

RRF_K = 60.0
DEPTH = 100
MOST_DEPTH = 100_000


@dataclass(frozen=True)
class Fusion:
    """How the rankings of several lenses become one. It prints as text that `parse_fusion` reads.

    weights    by lens; a lens without one counts 1. Where no lenses are named for a search, those with a weight are searched
    k          rrf: the larger, the less the first ranks stand out
    alpha      convex: the share of the lens `dense`, or of the first lens where there is no `dense`
    norm       convex: how the two scores are made comparable
    missing    exact: the lens scores every candidate itself, by the document's best passage; worst: a candidate that it did
               not return counts as its lowest score; zero: it gets nothing from that lens (with zscore that is an average
               document). With rrf, what a lens missed ranks behind what it returned, by its score or, with `worst`, all alike
    depth      documents that each lens returns, at least
    per_token  `multi` counts by the mean over the query's tokens, each by its weight, as in BGE-M3, not by the sum
    rerank     a lens that orders the candidates by its own score alone
    """

    policy: Policy = "rrf"
    weights: Mapping[str, float] = field(default_factory=dict)
    k: float = RRF_K
    alpha: float = 0.5
    norm: Norm = "minmax"
    missing: Missing = "exact"
    depth: int = DEPTH
    per_token: bool = False
    rerank: str | None = None

    def __post_init__(self) -> None:
        for name, value, known in (
            ("policy", self.policy, get_args(Policy)),
            ("norm", self.norm, get_args(Norm)),
            ("missing", self.missing, get_args(Missing)),
        ):
            if value not in known:
                raise BadInput(f"fusion {name} is {value!r}; expected one of {', '.join(known)}")
        _require_number("k", self.k, 0, math.inf)
        _require_number("alpha", self.alpha, 0, 1)
        if not isinstance(self.depth, int) or isinstance(self.depth, bool) or not 1 <= self.depth <= MOST_DEPTH:
            raise BadInput(f"fusion depth is {self.depth!r}; expected a whole number from 1 to {MOST_DEPTH}")
        if self.policy == "convex" and self.weights:
            raise BadInput("fusion convex weighs its two lenses by alpha; leave the other weights out, or choose minmax")
        for lens, weight in self.weights.items():
            _require_number(f"weight of {lens}", weight, 0, math.inf)
        if self.weights and not any(self.weights.values()):
            raise BadInput(f"fusion weights of {', '.join(self.weights)} are all 0; expected at least one above 0")

    def __str__(self) -> str:
        plain = Fusion()
        options = [f"{lens}={_shown(weight)}" for lens, weight in self.weights.items()]
        for name in ("k", "alpha", "norm", "missing", "depth", "per_token", "rerank"):
            value = getattr(self, name)
            if value != getattr(plain, name):
                options.append(f"{name}={_shown(value)}")
        return f"{self.policy}:{','.join(options)}" if options else self.policy

    def require_lenses(self, names: Sequence[str]) -> None:
        """Refuse lenses that this fusion cannot be of."""
        if unknown := [lens for lens in self.weights if lens not in names]:
            raise BadInput(
                f"fusion {self} gives a weight to {unknown[0]}, but the lenses searched are {', '.join(names)}; "
                "leave the weight out, or search that lens as well"
            )
        if self.policy == "convex" and not self.rerank and len(names) != 2:
            raise BadInput(f"fusion convex is of two lenses; the lenses searched are {', '.join(names)}")
        if not any(self.weights.get(name, 1.0) for name in names):
            raise BadInput(f"fusion {self} gives every lens the weight 0; expected at least one above 0")


@dataclass(frozen=True, slots=True)
class Candidates:
    """What one lens says of documents by key: those that it returned, best first, and those that it scored when asked.

    `scale` makes the scores of this query comparable: they are multiplied by it. `exhausted`: the lens returned all that match
    the query at all, as BM25 may, so the others were not missed, and have no rank.
    """

    found: Mapping[int, float]
    filled: Mapping[int, float] = field(default_factory=dict)
    scale: float = 1.0
    exhausted: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """What counted of one lens for one document: its score, its rank if the lens returned it, what it gave to the sum."""

    score: float
    rank: int | None
    contribution: float


@dataclass(frozen=True, slots=True)
class Fused:
    """A document: its score is the sum of the contributions of its lenses."""

    key: int
    score: float
    by_lens: Mapping[str, Seen]


@dataclass(frozen=True, eq=False, slots=True)
class Column:
    """What one lens says of each candidate: its score, NaN if it has none, and its rank, 0 if the lens did not return it.

    For `scale` and `exhausted` see `Candidates`.
    """

    scores: Scores
    ranks: NDArray[np.int64]
    scale: float = 1.0
    exhausted: bool = False


def fuse(fusion: Fusion, lenses: Mapping[str, Candidates], most: int | None = None) -> list[Fused]:
    """All candidates, or only the first `most`, best first, ties by the smaller key."""
    keys = np.array(sorted({key for one in lenses.values() for key in (*one.found, *one.filled)}), np.int64)
    return fuse_columns(fusion, keys, {name: _column(keys, one) for name, one in lenses.items()}, most)


def fuse_columns(fusion: Fusion, keys: NDArray[np.int64], lenses: Mapping[str, Column], most: int | None = None) -> list[Fused]:
    """As `fuse`, of candidates with these ascending keys."""
    fusion.require_lenses(list(lenses))
    counted = {name: _complete(fusion.missing, one) for name, one in lenses.items()}
    parts = _contributions(fusion, lenses, counted)
    scores = np.zeros(len(keys))
    for contributions in parts.values():
        scores += contributions
    best = np.argsort(-scores, kind="stable")[:most]
    by_lens: list[dict[str, Seen]] = [{} for _ in best]
    for name, one in lenses.items():
        columns = (column[best].tolist() for column in (counted[name], one.ranks, parts[name]))
        for seen, (score, rank, contribution) in zip(by_lens, zip(*columns, strict=True), strict=True):
            if not math.isnan(score):
                seen[name] = Seen(score, rank or None, contribution)
    return [Fused(*one) for one in zip(keys[best].tolist(), scores[best].tolist(), by_lens, strict=True)]


def _column(keys: NDArray[np.int64], lens: Candidates) -> Column:
    scores, ranks = np.full(len(keys), np.nan), np.zeros(len(keys), np.int64)
    for given in (lens.found, lens.filled):
        scores[np.searchsorted(keys, list(given))] = list(given.values())
    ranks[np.searchsorted(keys, list(lens.found))] = np.arange(1, len(lens.found) + 1)
    return Column(scores, ranks, lens.scale, lens.exhausted)


def _complete(missing: Missing, lens: Column) -> Scores:
    """The score of each candidate, as far as the lens has one for it by this rule.

    What a lens cannot score at all, such as a text without tokens, counts as its lowest.
    """
    returned = lens.ranks > 0
    scores = lens.scores if missing == "exact" else np.where(returned, lens.scores, np.nan)
    known = ~np.isnan(scores)
    if missing != "zero" and known.any() and (missing == "worst" or (known & ~returned).any()):
        return np.where(known, scores, scores[known].min())
    return scores


def _contributions(fusion: Fusion, lenses: Mapping[str, Column], counted: Mapping[str, Scores]) -> dict[str, Scores]:
    """What each lens gives each candidate, 0 where it has no score for it."""
    weights = lens_weights(fusion, list(lenses))
    if fusion.policy == "rrf":
        return {name: _by_rank(fusion, weights[name], one, counted[name]) for name, one in lenses.items()}
    normalise = NORMS[_norm(fusion)]
    found = {}
    for name, one in lenses.items():
        known = ~np.isnan(counted[name])
        found[name] = np.zeros(len(known))
        found[name][known] = weights[name] * normalise(counted[name][known] * one.scale)
    return found


def lens_weights(fusion: Fusion, names: Sequence[str]) -> dict[str, float]:
    """What each lens counts."""
    if fusion.policy == "convex":
        first = "dense" if "dense" in names else names[0]
        return {name: fusion.alpha if name == first else 1 - fusion.alpha for name in names}
    return {name: fusion.weights.get(name, 1.0) for name in names}


def _by_rank(fusion: Fusion, weight: float, lens: Column, counted: Scores) -> Scores:
    places, returned = lens.ranks, int(lens.ranks.max(initial=0))
    missed = (places == 0) & ~np.isnan(counted)
    if fusion.missing == "worst":
        places = np.where(missed, returned + 1, places)
    elif fusion.missing == "exact" and not lens.exhausted:
        places = places.copy()
        places[missed] = _behind(returned, counted[missed])
    given: Scores = np.zeros(len(places))
    np.divide(weight, fusion.k + places, out=given, where=places > 0)
    return given


def _behind(returned: int, missed: Scores) -> NDArray[np.int64]:
    """The ranks after so many of what was missed, by score; equal scores share a rank."""
    return returned + 1 + len(missed) - np.searchsorted(np.sort(missed), missed, side="right")


def _norm(fusion: Fusion) -> Norm:
    """How this policy makes scores comparable."""
    norms: dict[Policy, Norm] = {"weighted": "none", "minmax": "minmax", "zscore": "zscore", "convex": fusion.norm}
    return norms[fusion.policy]


def _minmax(scores: Scores) -> Scores:
    """From 0 to 1; where all are equal, all are the highest."""
    lowest, highest = scores.min(initial=np.inf), scores.max(initial=-np.inf)
    return (scores - lowest) / (highest - lowest) if highest > lowest else np.ones(len(scores))


def _zscore(scores: Scores) -> Scores:
    """In standard deviations from the mean; where all are equal, 0."""
    if not len(scores):
        return scores
    mean = math.fsum(scores.tolist()) / len(scores)
    deviation = math.sqrt(math.fsum(((scores - mean) ** 2).tolist()) / len(scores))
    return (scores - mean) / deviation if deviation > 0 else np.zeros(len(scores))


NORMS: dict[Norm, Callable[[Scores], Scores]] = {"minmax": _minmax, "zscore": _zscore, "none": np.copy}


def _require_number(name: str, value: object, least: float, most: float) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not least <= value <= most:  # type: ignore[arg-type, operator]
        expected = f"a number from {least:g} to {most:g}" if math.isfinite(most) else f"a number, at least {least:g}"
        raise BadInput(f"fusion {name} is {value!r}; expected {expected}")


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.12g}" if isinstance(value, float) else str(value)
