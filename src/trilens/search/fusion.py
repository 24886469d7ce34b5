"""Fusion of several rankings: named policies over the scores that the lenses give the same candidates.

`rrf`       Σ w / (k + rank): needs no comparable scores (Cormack et al. 2009)
`weighted`  Σ w · score, of raw scores (BGE-M3: dense + 0.3 · sparse + multi)
`minmax`    Σ w · (score − lowest) / (highest − lowest)
`zscore`    Σ w · (score − mean) / standard deviation

Lowest, highest, mean and deviation are over the scores that the lens gives the candidates of this query. The candidates are
the union of the documents that the lenses return; `missing` says how a lens counts a candidate that it did not return. The
weights w may depend on the query: see `damp`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from trilens.errors import BadInput
from trilens.kernels.array_types import Float64s, Int64s
from trilens.search.candidates import Candidates
from trilens.search.hits import LensScore
from trilens.search.ranking import DocTopK

Policy = Literal["zscore", "minmax", "rrf", "weighted"]
POLICIES: tuple[Policy, ...] = get_args(Policy)
Missing = Literal["exact", "worst", "zero"]

FUSION = "fusion"
"""The name of what several lenses say together."""
RRF_K = 60.0
DEPTH = 100
MOST_DEPTH = 100_000


@dataclass(frozen=True)
class Fusion:
    """How the rankings of several lenses become one. Its string form is read by `parse_fusion`.

    weights    by lens; a lens without a weight has weight 1. A search that names no lenses searches the weighted ones
    k          rrf: the larger, the less the first ranks stand out
    missing    exact: the lens scores every candidate, by the document's best passage; worst: a candidate that it did not return
               gets its lowest score; zero: it contributes nothing (with zscore that is an average document). With rrf, missed
               candidates rank behind the returned ones, by score or, with `worst`, all at the same rank
    depth      minimum number of documents that each lens returns
    damp       the weight of a lens whose best candidate is a weak match is multiplied by the strength of that match
    per_token  scores that are sums over query tokens (MaxSim) count by their weighted mean over the tokens, as in BGE-M3
    """

    policy: Policy = "rrf"
    weights: Mapping[str, float] = field(default_factory=dict)
    k: float = RRF_K
    missing: Missing = "exact"
    depth: int = DEPTH
    damp: bool = False
    per_token: bool = False

    def __post_init__(self) -> None:
        for name, value, known in (("policy", self.policy, POLICIES), ("missing", self.missing, get_args(Missing))):
            if value not in known:
                raise BadInput(f"fusion {name} is {value!r}; expected one of {', '.join(known)}")
        _require_number("k", self.k)
        if not isinstance(self.depth, int) or isinstance(self.depth, bool) or not 1 <= self.depth <= MOST_DEPTH:
            raise BadInput(f"fusion depth is {self.depth!r}; expected a whole number from 1 to {MOST_DEPTH}")
        for name, flag in (("damp", self.damp), ("per_token", self.per_token)):
            if not isinstance(flag, bool):
                raise BadInput(f"fusion {name} is {flag!r}; expected true or false")
        for lens, weight in self.weights.items():
            _require_number(f"weight of {lens}", weight)
        if self.policy != "rrf" and self.k != RRF_K:
            raise BadInput(f"fusion k is {self.k:g}, but the policy is {self.policy}; k applies to rrf: leave it out")
        if self.policy == "rrf" and self.per_token:
            raise BadInput("fusion per_token is true, but rrf uses ranks, not scores; leave it out, or choose another policy")
        if self.weights and not any(self.weights.values()):
            raise BadInput(f"fusion weights of {', '.join(self.weights)} are all 0; expected at least one above 0")

    def __str__(self) -> str:
        default = Fusion()
        options = [f"{lens}={_to_text(weight)}" for lens, weight in self.weights.items()]
        for name in ("k", "missing", "depth", "damp", "per_token"):
            value = getattr(self, name)
            if value != getattr(default, name):
                options.append(f"{name}={_to_text(value)}")
        return f"{self.policy}:{','.join(options)}" if options else self.policy

    def weight(self, lens: str) -> float:
        """The weight of a lens."""
        return self.weights.get(lens, 1.0)

    def weight_for(self, candidates: Candidates, lens: str) -> float:
        """The weight of a lens for the query of these candidates."""
        strongest = candidates.strongest(lens) if self.damp else None
        return self.weight(lens) if strongest is None else self.weight(lens) * min(1.0, max(0.0, strongest))

    def require_lenses(self, names: Sequence[str]) -> None:
        """Refuse to fuse lenses that the weights do not fit."""
        if unknown := [lens for lens in self.weights if lens not in names]:
            raise BadInput(
                f"fusion {self} gives a weight to {unknown[0]}, but the lenses searched are {', '.join(names)}; "
                "leave the weight out, or search that lens as well"
            )
        if not any(self.weight(name) for name in names):
            raise BadInput(f"fusion {self} gives every lens the weight 0; expected at least one above 0")


@dataclass(frozen=True, slots=True)
class RankedDoc:
    """A document by key. Its score is the sum of the contributions of its lenses; `row` is its best passage, -1 if unknown."""

    key: int
    row: int
    score: float
    by_lens: Mapping[str, LensScore]


def fuse(fusion: Fusion, candidates: Candidates, most: int | None = None) -> list[RankedDoc]:
    """The candidates, or only the first `most`, best first; ties go to the smaller key."""
    fusion.require_lenses(list(candidates.ranks))
    counted = {name: _complete(fusion.missing, candidates, name) for name in candidates.ranks}
    contributions = {name: _contributions(fusion, candidates, name, scores) for name, scores in counted.items()}
    total = add_up(contributions, len(candidates.keys))
    best = np.argsort(-total, kind="stable")[:most]
    by_lens: list[dict[str, LensScore]] = [{} for _ in best]
    for name, scores in counted.items():
        columns = (column[best].tolist() for column in (scores, candidates.ranks[name], contributions[name], _standard(scores)))
        for lens_scores, (score, rank, contribution, standard) in zip(by_lens, zip(*columns, strict=True), strict=True):
            if not math.isnan(score):
                lens_scores[name] = LensScore(score, rank or None, contribution, standard)
    rows = candidates.best_rows(best)
    return [RankedDoc(*doc) for doc in zip(candidates.keys[best].tolist(), rows, total[best].tolist(), by_lens, strict=True)]


def fused_scores(fusion: Fusion, candidates: Candidates) -> Float64s:
    """The score of each candidate by the fusion or, through a single lens, by the lens."""
    counted = {name: _complete(fusion.missing, candidates, name) for name in candidates.ranks}
    if len(counted) == 1:
        return np.nan_to_num(next(iter(counted.values())))  # NaN if the lens scores none
    contributions = {name: _contributions(fusion, candidates, name, scores) for name, scores in counted.items()}
    return add_up(contributions, len(candidates.keys))


def add_up(contributions: Mapping[str, Float64s], count: int) -> Float64s:
    """The score of each of `count` candidates from the contributions of the lenses."""
    total = np.zeros(count)
    for contribution in contributions.values():
        total += contribution
    return total


def rank_by(
    name: str, candidates: Candidates, most: int | None = None, first: str = "", weight: float = 0.0
) -> list[RankedDoc]:
    """The candidates that a lens or a cross-encoder scored, by its score; the scores of the others are reported only.

    With a `weight`, by the sum of its standard score and the weighted standard score of the `first` stage.
    """
    returned = np.flatnonzero(candidates.ranks[name])
    contributions = {other: np.zeros(len(returned)) for other in candidates.ranks}
    contributions[name] = candidates.scores[name][returned]
    standards: dict[str, Float64s] = {}
    if weight:
        scores = {part: np.nan_to_num(_complete("exact", candidates, part)) for part in (name, first)}
        standards = {part: _zscore(values[returned]) for part, values in scores.items()}
        contributions |= {name: standards[name], first: weight * standards[first]}
    total = add_up(contributions, len(returned))
    best = np.lexsort((candidates.ranks[name][returned], -total))[:most]
    by_lens: list[dict[str, LensScore]] = [{} for _ in best]
    for other, contribution in contributions.items():
        standard = standards.get(other)
        for lens_scores, place in zip(by_lens, best.tolist(), strict=True):
            score, rank = candidates.scores[other][returned[place]], candidates.ranks[other][returned[place]]
            if rank or contribution[place]:
                deviations = None if standard is None else float(standard[place])
                lens_scores[other] = LensScore(float(score), int(rank) or None, float(contribution[place]), deviations)
    keys, rows = candidates.keys[returned[best]].tolist(), candidates.rows[name][returned[best]].tolist()
    return [RankedDoc(*doc) for doc in zip(keys, rows, total[best].tolist(), by_lens, strict=True)]


def rank_alone(lens: str, top: DocTopK) -> list[list[RankedDoc]]:
    """The documents of each query as one lens returned them."""
    columns = zip(top.keys.tolist(), top.rows.tolist(), top.scores.tolist(), strict=True)
    return [
        [
            RankedDoc(key, row, score, {lens: LensScore(score, rank, score)})
            for rank, (key, row, score) in enumerate(zip(keys, rows, scores, strict=True), start=1)
            if row >= 0
        ]
        for keys, rows, scores in columns
    ]


def _complete(missing: Missing, candidates: Candidates, name: str) -> Float64s:
    """The score that a lens counts for each candidate; NaN for none.

    A candidate that a lens cannot score, such as a text without tokens, gets its lowest score.
    """
    scores, returned = candidates.scores[name], candidates.ranks[name] > 0
    if missing != "exact":
        scores = np.where(returned, scores, np.nan)
    known = ~np.isnan(scores)
    if missing != "zero" and known.any() and (missing == "worst" or (known & ~returned).any()):
        return np.where(known, scores, scores[known].min())
    return scores


def _contributions(fusion: Fusion, candidates: Candidates, name: str, scores: Float64s) -> Float64s:
    """The contribution of a lens to each candidate, 0 where it has no score."""
    if fusion.policy == "rrf":
        return _by_rank(fusion, candidates, name, scores)
    known = ~np.isnan(scores)
    contributions = np.zeros(len(known))
    scale = candidates.scales.get(name, 1.0)
    contributions[known] = fusion.weight_for(candidates, name) * NORMALISE[fusion.policy](scores[known] * scale)
    return contributions


def _by_rank(fusion: Fusion, candidates: Candidates, name: str, scores: Float64s) -> Float64s:
    ranks = candidates.ranks[name]
    returned = int(ranks.max(initial=0))
    missed = (ranks == 0) & ~np.isnan(scores)
    if fusion.missing == "worst":
        ranks = np.where(missed, returned + 1, ranks)
    elif fusion.missing == "exact" and name not in candidates.exhausted:
        ranks = ranks.copy()
        ranks[missed] = _ranks_behind(returned, scores[missed])
    contributions: Float64s = np.zeros(len(ranks))
    np.divide(fusion.weight_for(candidates, name), fusion.k + ranks, out=contributions, where=ranks > 0)
    return contributions


def _ranks_behind(returned: int, missed: Float64s) -> Int64s:
    """The ranks of missed candidates behind the returned ones, by score; equal scores share a rank."""
    ranks: Int64s = returned + 1 + len(missed) - np.searchsorted(np.sort(missed), missed, side="right")
    return ranks


def _minmax(scores: Float64s) -> Float64s:
    """Scaled to 0 … 1; 1 where all scores are equal."""
    lowest, highest = scores.min(initial=np.inf), scores.max(initial=-np.inf)
    return (scores - lowest) / (highest - lowest) if highest > lowest else np.ones(len(scores))


def _zscore(scores: Float64s) -> Float64s:
    """Standard deviations from the mean; 0 where all scores are equal."""
    if not len(scores):
        return scores
    mean = math.fsum(scores.tolist()) / len(scores)
    deviation = math.sqrt(math.fsum(((scores - mean) ** 2).tolist()) / len(scores))
    return (scores - mean) / deviation if deviation > 0 else np.zeros(len(scores))


def _standard(scores: Float64s) -> Float64s:
    """The standard scores of the candidates; NaN where a lens has no score."""
    standard = np.full(len(scores), np.nan)
    known = ~np.isnan(scores)
    standard[known] = _zscore(scores[known])
    return standard


NORMALISE: dict[Policy, Callable[[Float64s], Float64s]] = {"weighted": np.copy, "minmax": _minmax, "zscore": _zscore}


def _require_number(name: str, value: object) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value < 0:  # type: ignore[arg-type, operator]
        raise BadInput(f"fusion {name} is {value!r}; expected a number, at least 0")


def _to_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.12g}" if isinstance(value, float) else str(value)
