"""Weights of a fusion, chosen on judged queries: candidates and exact scores are fetched once, policies are tried in memory.

What a choice is worth is told by cross-validation: the same search on four fifths of the queries, measured on
the fifth that it has not seen. The distance between that and the value on the queries it was chosen on is over-fitting. Queries
of several collections count by collection: the mean over collections of the means over their queries is what is raised.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import ir_measures
import numpy as np
from numpy.typing import NDArray

from trilens.collection import Collection
from trilens.errors import BadInput
from trilens.evaluate.measures import Hit, parse_measure
from trilens.evaluate.soundness import examine
from trilens.evaluate.weights import STEPS, Weights, best_weights
from trilens.search.fusion import Candidates, Fusion, Policy, fuse
from trilens.text.dataset import Dataset, Split, with_judgements
from trilens.text.qrels import Qrels

POLICIES: tuple[Policy, ...] = ("zscore", "minmax", "rrf", "weighted")
RRF_KS = (10.0, 30.0, 60.0, 100.0)
FOLDS = 5
FEWEST = 2 * FOLDS  # queries
SEED = 1234
AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Asked:
    """The judged queries of a split, which must not be the test split, and the collection that they are put to."""

    collection: Collection
    dataset: Dataset
    split: str


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

    `dataset` and `split` name what was tuned on, in the same order where that is several. `warnings` tell what is odd about the
    queries that weights were chosen on.
    """

    measure: str
    dataset: str
    split: str
    queries: int
    lenses: list[str]
    baselines: dict[str, float]
    results: list[PolicyResult]
    warnings: list[str]

    @property
    def best(self) -> PolicyResult:
        """By what it is worth on unseen queries; the first of equals."""
        return max(self.results, key=lambda result: result.unseen)

    def record(self) -> dict[str, Any]:
        """What a collection keeps of it."""
        return {
            "fusion": str(self.best.fusion),
            "measure": self.measure,
            "chosen_on": round(self.best.chosen_on, 6),
            "unseen": round(self.best.unseen, 6),
            "dataset": self.dataset,
            "split": self.split,
            "queries": self.queries,
        }


def tune(
    asked: Sequence[Asked],
    lenses: Sequence[str],
    measure: str = "nDCG@10",
    policies: Sequence[Policy] = POLICIES,
    depth: int = 100,
    most: int | None = None,
    report: Callable[[int], None] = lambda queries: None,
) -> Tuning:
    """The best weights of each policy for these lenses; of more than `most` queries of a split that many are drawn."""
    parsed = _require(asked, lenses, measure, policies, most)
    splits = [_drawn(one, most) for one in asked]
    warnings = [line for one, split in zip(asked, splits, strict=True) for line in _odd(one, split, named=len(asked) > 1)]
    judged = [gather(one.collection, split.texts(), lenses, depth, report) for one, split in zip(asked, splits, strict=True)]
    bench = Bench(judged, list(lenses), [split.qrels for split in splits], parsed)
    baselines = {name: bench.mean(bench.alone(name)) for name in lenses}
    baselines["rrf"] = bench.mean(bench.values(Fusion(depth=depth)))
    results = [_tune_policy(bench, policy, depth) for policy in policies]
    return Tuning(
        measure=str(parsed),
        dataset=", ".join(one.dataset.name for one in asked),
        split=", ".join(one.split for one in asked),
        queries=len(bench),
        lenses=list(lenses),
        baselines=baselines,
        results=results,
        warnings=warnings,
    )


def _drawn(one: Asked, most: int | None) -> Split:
    """The queries that weights are chosen on, with their judgements."""
    found = with_judgements(one.dataset, one.split)
    chosen = list(found.queries)
    if len(chosen) < FEWEST:
        name, split = one.dataset.name, one.split
        raise BadInput(f"{name} has {len(chosen)} judged queries in split {split!r}; expected at least {FEWEST}")
    if most is not None and len(chosen) > most:
        chosen = [chosen[at] for at in np.sort(np.random.default_rng(SEED).choice(len(chosen), most, replace=False))]
    kept = {query: found.queries[query] for query in chosen}
    return replace(found, queries=kept, qrels={query: found.qrels[query] for query in chosen})


def _odd(one: Asked, split: Split, named: bool) -> list[str]:
    """What there is to say about the queries, under the name of the dataset if so wanted."""
    found = [*examine(split, one.collection).lines(), *_also_tested(one.dataset, set(split.queries))]
    return [f"{one.dataset.name}: {line}" for line in found] if named else found


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
    """Measures fusions over gathered candidates, of one or several collections; what was measured once is remembered."""

    def __init__(self, judged: Sequence[Sequence[Judged]], lenses: list[str], qrels: Sequence[Qrels], measure: Any) -> None:
        self.lenses = lenses
        self.sizes = [len(some) for some in judged]
        self._judged = [one for some in judged for one in some]
        self._of = np.repeat(np.arange(len(judged)), self.sizes)  # which collection a query belongs to
        self._measure = measure
        # By place: collections may have ids in common, and some tools behind ir-measures want numbers.
        own = [known[one.query_id] for known, some in zip(qrels, judged, strict=True) for one in some]
        self._evaluator = ir_measures.evaluator([measure], {str(at): judgements for at, judgements in enumerate(own)})
        self._known: dict[str, NDArray[np.float64]] = {}
        self._units: dict[str, list[tuple[list[str], NDArray[np.float64]]]] = {}

    def __len__(self) -> int:
        return len(self._judged)

    def mean(self, values: NDArray[np.float64], queries: NDArray[np.int64] | None = None) -> float:
        """Of the measures of queries (None: of all), in which every collection counts alike."""
        of, chosen = (self._of, values) if queries is None else (self._of[queries], values[queries])
        return float(np.mean([chosen[of == collection].mean() for collection in np.unique(of)]))

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
            str(at): {doc_id: float(len(ranking) - rank) for rank, doc_id in enumerate(ranking)}
            for at, ranking in enumerate(rankings)
        }
        found = {metric.query_id: metric.value for metric in self._evaluator.iter_calc(run)}
        return np.array([found.get(str(at), 0.0) for at in range(len(self))])


def _tune_policy(bench: Bench, policy: Policy, depth: int) -> PolicyResult:
    # A fold has its share of every collection, and the same queries where collections are asked the same.
    folds = np.concatenate([np.random.default_rng(SEED).permutation(size) % FOLDS for size in bench.sizes])
    chosen = _choose(bench, policy, depth)
    unseen, fusions = np.zeros(len(folds)), []
    for fold in range(FOLDS):
        fusion = _choose(bench, policy, depth, np.flatnonzero(folds != fold))
        unseen[folds == fold] = bench.values(fusion)[folds == fold]
        fusions.append(fusion)
    return PolicyResult(chosen, bench.mean(bench.values(chosen)), bench.mean(unseen), fusions)


def _choose(bench: Bench, policy: Policy, depth: int, queries: NDArray[np.int64] | None = None) -> Fusion:
    """The best fusion of a policy by the mean over some of the queries (None: all)."""
    ks = RRF_KS if policy == "rrf" else (Fusion().k,)
    found: list[tuple[float, Fusion]] = []
    for k in ks:
        plain = Fusion(policy, k=k, depth=depth)

        def value(weights: Weights, plain: Fusion = plain) -> float:
            return bench.mean(bench.values(_weighted(plain, bench.lenses, weights)), queries)

        best, score = best_weights(value, len(bench.lenses))
        found.append((score, _weighted(plain, bench.lenses, best)))
    return max(found, key=lambda pair: pair[0])[1]


def _weighted(plain: Fusion, lenses: Sequence[str], weights: Weights) -> Fusion:
    return replace(plain, weights={name: weight / STEPS for name, weight in zip(lenses, weights, strict=True)})


def _require(asked: Sequence[Asked], lenses: Sequence[str], measure: str, policies: Sequence[str], most: int | None) -> Any:
    if not asked:
        raise BadInput("there is nothing to tune on; expected a collection with judged queries")
    if most is not None and most < FEWEST:
        raise BadInput(f"most is {most}; expected at least {FEWEST} queries to choose weights on")
    for one in asked:
        if "test" in one.split.lower():
            raise BadInput(
                f"split is {one.split!r}; weights chosen on test queries say nothing of others: expected another, such as dev"
            )
    if len(lenses) < 2 or len(set(lenses)) != len(lenses):
        raise BadInput(f"lenses are {', '.join(lenses)}; expected two or more different ones to fuse")
    for one in asked:
        if lacking := [name for name in lenses if name not in one.collection.lenses]:
            raise BadInput(
                f"the collection {one.collection.path} has no {', '.join(lacking)}; expected every collection to have all of "
                f"{', '.join(lenses)}: choose among its lenses with --lens, or index it again"
            )
    if not policies or any(policy not in POLICIES for policy in policies):
        raise BadInput(f"policies are {', '.join(policies) or 'none'}; expected some of {', '.join(POLICIES)}")
    parsed = parse_measure(measure)
    if isinstance(parsed, Hit):
        raise BadInput(f"measure is {measure!r}; expected one of judgements, such as nDCG@10 or AP")
    return parsed
