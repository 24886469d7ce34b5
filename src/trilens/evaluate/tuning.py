"""Weights of a fusion, chosen on judged queries: candidates and exact scores are fetched once, policies are tried in memory.

With two lenses all weights on a grid are tried; with more, mass is moved between pairs of lenses as long as that helps, from
several starts. What a choice is worth is told by cross-validation: the same search on four fifths of the queries, measured on
the fifth that it has not seen. The distance between that and the value on the queries it was chosen on is over-fitting.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import ir_measures
import numpy as np
from numpy.typing import NDArray

from trilens.collection import Collection
from trilens.errors import BadInput
from trilens.evaluate.measures import Hit, parse_measure
from trilens.evaluate.soundness import examine
from trilens.search.fusion import Candidates, Fusion, Policy, fuse
from trilens.text.dataset import Dataset, with_judgements
from trilens.text.qrels import Qrels

POLICIES: tuple[Policy, ...] = ("zscore", "minmax", "rrf", "weighted")
RRF_KS = (10.0, 30.0, 60.0, 100.0)
STEPS = 20  # weights are multiples of 1/20
MOVES = (4, 2, 1)
RANDOM_STARTS = 3
FOLDS = 5
SEED = 1234
AT_ONCE = 64

Weights = tuple[int, ...]
"""Of the lenses in order, in steps; their sum is STEPS."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The candidates of one query as every lens sees them, the ids of the documents, and the judgements."""

    query_id: str
    lenses: Mapping[str, Candidates]
    doc_ids: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class PolicyResult:
    """The best weights that a policy found; `chosen_on` is the mean on all queries, `unseen` that of cross-validation.

    `folds` are the fusions that the folds chose: weights that differ widely mean little.
    """

    fusion: Fusion
    chosen_on: float
    unseen: float
    folds: list[Fusion]


@dataclass(frozen=True, slots=True)
class Tuning:
    """What tuning found. `baselines` are the measure of each lens alone and of the default fusion.

    `warnings` tell what is odd about the queries that weights were chosen on.
    """

    measure: str
    queries: int
    lenses: list[str]
    baselines: dict[str, float]
    results: list[PolicyResult]
    warnings: list[str]

    @property
    def best(self) -> PolicyResult:
        """By what it is worth on unseen queries; the first of equals."""
        return max(self.results, key=lambda result: result.unseen)

    def record(self, dataset: str, split: str) -> dict[str, Any]:
        """What a collection keeps of it."""
        return {
            "fusion": str(self.best.fusion),
            "measure": self.measure,
            "chosen_on": round(self.best.chosen_on, 6),
            "unseen": round(self.best.unseen, 6),
            "dataset": dataset,
            "split": split,
            "queries": self.queries,
        }


def tune(
    collection: Collection,
    dataset: Dataset,
    split: str,
    lenses: Sequence[str],
    measure: str = "nDCG@10",
    policies: Sequence[Policy] = POLICIES,
    depth: int = 100,
    report: Callable[[int], None] = lambda queries: None,
) -> Tuning:
    """The best weights of each policy for these lenses on the judged queries of a split, which must not be the test split."""
    parsed = _require(split, lenses, measure, policies)
    chosen = with_judgements(dataset, split)
    queries, qrels = chosen.texts(), chosen.qrels
    warnings = [*examine(chosen, collection).lines(), *_also_tested(dataset, set(queries))]
    if len(queries) < 2 * FOLDS:
        raise BadInput(f"{dataset.name} has {len(queries)} judged queries in split {split!r}; expected at least {2 * FOLDS}")
    judged = gather(collection, queries, lenses, depth, report)
    bench = Bench(judged, list(lenses), {query: qrels[query] for query in queries}, parsed)
    baselines = {name: float(bench.alone(name).mean()) for name in lenses}
    baselines["rrf"] = float(bench.values(Fusion(depth=depth)).mean())
    results = [_tune_policy(bench, policy, depth) for policy in policies]
    return Tuning(str(parsed), len(queries), list(lenses), baselines, results, warnings)


def _also_tested(dataset: Dataset, queries: set[str]) -> list[str]:
    """Queries of a split called something else that are test queries all the same."""
    tested = [name for name in dataset.splits() if "test" in name.lower()]
    shared = {name: len(queries & set(dataset.split(name).queries)) for name in tested}
    return [
        f"{count} of the queries are in the split {name!r} too: measures there will flatter"
        for name, count in shared.items()
        if count
    ]


def gather(
    collection: Collection, queries: Mapping[str, str], lenses: Sequence[str], depth: int, report: Callable[[int], None]
) -> list[Judged]:
    """What the lenses return for each query, and what each says of the documents that only others returned."""
    judged = []
    ids, texts = list(queries), list(queries.values())
    for start in range(0, len(ids), AT_ONCE):
        some = texts[start : start + AT_ONCE]
        for query_id, found in zip(ids[start : start + AT_ONCE], collection.candidates(some, lenses, depth), strict=True):
            judged.append(Judged(query_id, *found))
        report(len(some))
    return judged


class Bench:
    """Measures fusions over gathered candidates; what was measured once is remembered."""

    def __init__(self, judged: Sequence[Judged], lenses: list[str], qrels: Qrels, measure: Any) -> None:
        self.lenses = lenses
        self.queries = [one.query_id for one in judged]
        self._judged = judged
        self._measure = measure
        self._evaluator = ir_measures.evaluator([measure], qrels)
        self._known: dict[str, NDArray[np.float64]] = {}
        self._units: dict[str, list[tuple[list[str], NDArray[np.float64]]]] = {}

    def values(self, fusion: Fusion) -> NDArray[np.float64]:
        """The measure of each query."""
        name = str(fusion)
        if name not in self._known:
            weights = np.array([fusion.weights.get(lens, 1.0) for lens in self.lenses])
            rankings = []
            for doc_ids, units in self._contributions(replace(fusion, weights={})):
                order = np.argsort(-(units * weights).sum(axis=1), kind="stable")
                rankings.append([doc_ids[place] for place in order[: self._depth].tolist()])
            self._known[name] = self._measured(rankings)
        return self._known[name]

    def alone(self, lens: str) -> NDArray[np.float64]:
        """The measure of each query by one lens."""
        return self._measured([[one.doc_ids[key] for key in one.lenses[lens].found] for one in self._judged])

    @property
    def _depth(self) -> int | None:
        """How many documents of a ranking the measure looks at; None for all."""
        cutoff: int | None = self._measure.params.get("cutoff")
        return cutoff

    def _contributions(self, plain: Fusion) -> list[tuple[list[str], NDArray[np.float64]]]:
        """The documents of each query in the order of their keys, and what each lens gives them at weight 1.

        What a lens gives is in proportion to its weight, whatever the policy.
        """
        name = str(plain)
        if name not in self._units:
            made = []
            for one in self._judged:
                fused = sorted(fuse(plain, one.lenses), key=lambda found: found.key)
                parts = [
                    [found.by_lens[lens].contribution if lens in found.by_lens else 0.0 for lens in self.lenses]
                    for found in fused
                ]
                made.append(([one.doc_ids[found.key] for found in fused], np.array(parts).reshape(-1, len(self.lenses))))
            self._units[name] = made
        return self._units[name]

    def _measured(self, rankings: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        """The measure of each query; ranks are given as scores, so that ties stay broken as a search breaks them."""
        run = {
            query: {doc_id: float(len(ranking) - rank) for rank, doc_id in enumerate(ranking)}
            for query, ranking in zip(self.queries, rankings, strict=True)
        }
        found = {metric.query_id: metric.value for metric in self._evaluator.iter_calc(run)}
        return np.array([found.get(query, 0.0) for query in self.queries])


def _tune_policy(bench: Bench, policy: Policy, depth: int) -> PolicyResult:
    everything = np.arange(len(bench.queries))
    folds = np.random.default_rng(SEED).permutation(len(everything)) % FOLDS
    chosen = _choose(bench, policy, depth, everything)
    unseen, fusions = np.zeros(len(everything)), []
    for fold in range(FOLDS):
        fusion = _choose(bench, policy, depth, np.flatnonzero(folds != fold))
        unseen[folds == fold] = bench.values(fusion)[folds == fold]
        fusions.append(fusion)
    return PolicyResult(chosen, float(bench.values(chosen).mean()), float(unseen.mean()), fusions)


def _choose(bench: Bench, policy: Policy, depth: int, queries: NDArray[np.int64]) -> Fusion:
    """The best fusion of a policy by the mean over some of the queries."""
    ks = RRF_KS if policy == "rrf" else (Fusion().k,)
    found: list[tuple[float, Fusion]] = []
    for k in ks:
        plain = Fusion(policy, k=k, depth=depth)

        def value(weights: Weights, plain: Fusion = plain) -> float:
            return float(bench.values(_weighted(plain, bench.lenses, weights))[queries].mean())

        best, score = _search(value, len(bench.lenses))
        found.append((score, _weighted(plain, bench.lenses, best)))
    return max(found, key=lambda pair: pair[0])[1]


def _weighted(plain: Fusion, lenses: Sequence[str], weights: Weights) -> Fusion:
    return replace(plain, weights={name: weight / STEPS for name, weight in zip(lenses, weights, strict=True)})


def _search(value: Callable[[Weights], float], lenses: int) -> tuple[Weights, float]:
    """The weights of the highest value; the first found of equals."""
    tried = _grid() if lenses == 2 else (_climb(value, start) for start in _starts(lenses))
    best: Weights = ()
    highest = -np.inf
    for weights in tried:
        score = value(weights)
        if score > highest:
            best, highest = weights, score
    return best, highest


def _grid() -> Iterable[Weights]:
    """All weights of two lenses, the most even first, so that among equals the less extreme wins."""
    return sorted(((first, STEPS - first) for first in range(STEPS + 1)), key=lambda pair: (abs(pair[0] - pair[1]), pair))


def _climb(value: Callable[[Weights], float], start: Weights) -> Weights:
    """Move weight from one lens to another, in smaller and smaller portions, as long as that helps."""
    best, highest = start, value(start)
    for move in MOVES:
        improved = True
        while improved:
            improved = False
            for source, target in permutations(range(len(best)), 2):
                if best[source] < move:
                    continue
                moved = list(best)
                moved[source] -= move
                moved[target] += move
                score = value(tuple(moved))
                if score > highest + 1e-12:
                    best, highest, improved = tuple(moved), score, True
    return best


def _starts(lenses: int) -> list[Weights]:
    """All alike, each lens ahead of the others, and some at random."""
    random = np.random.default_rng(SEED)
    shares = [np.ones(lenses)]
    shares += [np.where(np.arange(lenses) == first, 2.0 * lenses, 1.0) for first in range(lenses)]
    shares += [random.dirichlet(np.ones(lenses)) for _ in range(RANDOM_STARTS)]
    return list(dict.fromkeys(_rounded(share) for share in shares))


def _rounded(shares: NDArray[np.float64]) -> Weights:
    """Whole steps in these proportions, with the right sum: what rounding lost goes where it lost most."""
    exact = shares / shares.sum() * STEPS
    steps = np.floor(exact).astype(int)
    for place in np.argsort(steps - exact, kind="stable")[: STEPS - int(steps.sum())]:
        steps[place] += 1
    return tuple(steps.tolist())


def _require(split: str, lenses: Sequence[str], measure: str, policies: Sequence[str]) -> Any:
    if "test" in split.lower():
        raise BadInput(
            f"split is {split!r}; weights chosen on test queries say nothing of others: expected another one, such as dev"
        )
    if len(lenses) < 2 or len(set(lenses)) != len(lenses):
        raise BadInput(f"lenses are {', '.join(lenses)}; expected two or more different ones to fuse")
    if not policies or any(policy not in POLICIES for policy in policies):
        raise BadInput(f"policies are {', '.join(policies) or 'none'}; expected some of {', '.join(POLICIES)}")
    parsed = parse_measure(measure)
    if isinstance(parsed, Hit):
        raise BadInput(f"measure is {measure!r}; expected one of judgements, such as nDCG@10 or AP")
    return parsed
