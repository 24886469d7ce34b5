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

from trilens.errors import BadInput

Policy = Literal["rrf", "weighted", "minmax", "zscore", "convex"]
Missing = Literal["exact", "worst", "zero"]
Norm = Literal["minmax", "zscore", "none"]

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
    per_token  `multi` counts by the mean over the query's tokens, not by the sum, as in BGE-M3
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


Scores = dict[int, float]


def fuse(fusion: Fusion, lenses: Mapping[str, Candidates], most: int | None = None) -> list[Fused]:
    """All candidates, or only the first `most`, best first, ties by the smaller key."""
    fusion.require_lenses(list(lenses))
    keys = {key for one in lenses.values() for key in (*one.found, *one.filled)}
    counted = {name: _complete(fusion.missing, one, keys) for name, one in lenses.items()}
    ranks = {name: {key: rank for rank, key in enumerate(one.found, start=1)} for name, one in lenses.items()}
    parts = _contributions(fusion, lenses, counted, ranks)
    scores = dict.fromkeys(keys, 0.0)
    for contributions in parts.values():
        for key, contribution in contributions.items():
            scores[key] += contribution
    best = sorted(keys, key=lambda key: (-scores[key], key))[:most]
    return [
        Fused(
            key,
            scores[key],
            {
                name: Seen(counted[name][key], ranks[name].get(key), parts[name].get(key, 0.0))
                for name in lenses
                if key in counted[name]
            },
        )
        for key in best
    ]


def _complete(missing: Missing, lens: Candidates, keys: set[int]) -> Scores:
    """The score of each candidate, as far as the lens has one for it by this rule.

    What a lens cannot score at all, such as a text without tokens, counts as its lowest.
    """
    scores = dict(lens.found)
    if missing == "exact":
        scores |= lens.filled
    if missing != "zero" and scores and (missing == "worst" or lens.filled):
        lowest = min(scores.values())
        scores |= dict.fromkeys(keys - scores.keys(), lowest)
    return scores


def _contributions(
    fusion: Fusion, lenses: Mapping[str, Candidates], counted: Mapping[str, Scores], ranks: Mapping[str, Mapping[int, int]]
) -> dict[str, Scores]:
    weights = lens_weights(fusion, list(lenses))
    if fusion.policy == "rrf":
        return {name: _by_rank(fusion, weights[name], one, counted[name], ranks[name]) for name, one in lenses.items()}
    normalise = NORMS[_norm(fusion)]
    found = {}
    for name, one in lenses.items():
        scaled = {key: score * one.scale for key, score in counted[name].items()}
        found[name] = {key: weights[name] * value for key, value in normalise(scaled).items()}
    return found


def lens_weights(fusion: Fusion, names: Sequence[str]) -> dict[str, float]:
    """What each lens counts."""
    if fusion.policy == "convex":
        first = "dense" if "dense" in names else names[0]
        return {name: fusion.alpha if name == first else 1 - fusion.alpha for name in names}
    return {name: fusion.weights.get(name, 1.0) for name in names}


def _by_rank(fusion: Fusion, weight: float, lens: Candidates, counted: Scores, ranks: Mapping[int, int]) -> Scores:
    places = dict(ranks)
    if fusion.missing == "worst":
        places |= dict.fromkeys(counted.keys() - ranks.keys(), len(ranks) + 1)
    elif fusion.missing == "exact" and not lens.exhausted:
        places |= _behind(len(ranks), {key: score for key, score in counted.items() if key not in ranks})
    return {key: weight / (fusion.k + place) for key, place in places.items()}


def _behind(returned: int, missed: Scores) -> dict[int, int]:
    """The ranks after so many of what was missed, by score; equal scores share a rank."""
    first: dict[float, int] = {}
    for place, score in enumerate(sorted(missed.values(), reverse=True), start=returned + 1):
        first.setdefault(score, place)
    return {key: first[score] for key, score in missed.items()}


def _norm(fusion: Fusion) -> Norm:
    """How this policy makes scores comparable."""
    norms: dict[Policy, Norm] = {"weighted": "none", "minmax": "minmax", "zscore": "zscore", "convex": fusion.norm}
    return norms[fusion.policy]


def _minmax(scores: Scores) -> Scores:
    """From 0 to 1; where all are equal, all are the highest."""
    lowest, highest = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    spread = highest - lowest
    return {key: (score - lowest) / spread if spread > 0 else 1.0 for key, score in scores.items()}


def _zscore(scores: Scores) -> Scores:
    """In standard deviations from the mean; where all are equal, 0."""
    if not scores:
        return {}
    mean = math.fsum(scores.values()) / len(scores)
    deviation = math.sqrt(math.fsum((score - mean) ** 2 for score in scores.values()) / len(scores))
    return {key: (score - mean) / deviation if deviation > 0 else 0.0 for key, score in scores.items()}


NORMS: dict[Norm, Callable[[Scores], Scores]] = {"minmax": _minmax, "zscore": _zscore, "none": dict}


def _require_number(name: str, value: object, least: float, most: float) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not least <= value <= most:  # type: ignore[arg-type, operator]
        expected = f"a number from {least:g} to {most:g}" if math.isfinite(most) else f"a number, at least {least:g}"
        raise BadInput(f"fusion {name} is {value!r}; expected {expected}")


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.12g}" if isinstance(value, float) else str(value)
