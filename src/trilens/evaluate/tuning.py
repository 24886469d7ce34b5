"""Tune the weights of a fusion on judged queries: candidates and exact scores are fetched once, fusions are tried in memory.

Cross-validation estimates the quality of the result: weights are chosen on four fifths of the queries and measured on the
remaining fifth. The difference to the value on the queries that they were chosen on is over-fitting. With several
collections, the objective is the mean over collections of the means over their queries.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trilens.collection import Collection
from trilens.datasets.dataset import Dataset, Split, with_judgements
from trilens.datasets.qrels import Qrels
from trilens.errors import BadInput
from trilens.evaluate.measures import HitMeasure, measure_library, parse_measure
from trilens.evaluate.soundness import examine
from trilens.evaluate.weights import STEPS, Weights, best_weights
from trilens.kernels.array_types import Float64s, Int64s
from trilens.search.candidates import Candidates
from trilens.search.fusion import POLICIES, Fusion, Policy, fuse, rank_by
from trilens.search.fusion_presets import parse_fusion
from trilens.search.options import fused_name

RRF_KS = (10.0, 30.0, 60.0, 100.0)
FOLDS = 5
FEWEST = 2 * FOLDS  # queries
SEED = 1234
AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class TuningSet:
    """The judged queries of a split, which must not be the test split, and the collection that they search."""

    collection: Collection
    dataset: Dataset
    split: str


@dataclass(frozen=True, slots=True)
class JudgedCandidates:
    """The candidates of one judged query with the scores of every lens, and the ids of the documents by key."""

    query_id: str
    candidates: Candidates
    doc_ids: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class PolicyResult:
    """The best weights of a policy; `chosen_on` is the mean over all queries, `unseen` that of cross-validation.

    `folds` are the fusions that the folds chose: weights that differ widely are not reliable.
    """

    fusion: Fusion
    chosen_on: float
    unseen: float
    folds: list[Fusion]


@dataclass(frozen=True, slots=True)
class Tuning:
    """The result of tuning. `baselines` are the measure of each lens alone, of unweighted reciprocal ranks (`rrf`) and of the
    model's fusion of these lenses, if it has one (`model`).

    `dataset` and `split` name the tuning sets, in the same order. `warnings` are problems of the data.
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
        """The best result on unseen queries; the first of equals."""
        return max(self.results, key=lambda result: result.unseen)

    def record(self) -> dict[str, Any]:
        """The record stored in the catalog."""
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
    tuning_sets: Sequence[TuningSet],
    lenses: Sequence[str],
    measure: str = "nDCG@10",
    policies: Sequence[Policy] = POLICIES,
    depth: int = 100,
    most: int | None = None,
    report: Callable[[int], None] = lambda queries: None,
) -> Tuning:
    """The best weights of each policy for these lenses; at most `most` queries of each split are used, drawn at random."""
    parsed = _require(tuning_sets, lenses, measure, policies, most)
    splits = [_drawn(tuning_set, most) for tuning_set in tuning_sets]
    pairs, named = list(zip(tuning_sets, splits, strict=True)), len(tuning_sets) > 1
    warnings = [line for tuning_set, split in pairs for line in _problems(tuning_set, split, named)]
    judged = [gather(tuning_set.collection, split.texts(), lenses, depth, report) for tuning_set, split in pairs]
    bench = Bench(judged, list(lenses), [split.qrels for split in splits], parsed)
    baselines = {name: bench.mean(bench.alone(name)) for name in lenses}
    baselines["rrf"] = bench.mean(bench.values(Fusion(depth=depth)))
    if of_model := _of_model(tuning_sets[0].collection, lenses):
        baselines["model"] = bench.mean(bench.values(replace(parse_fusion(of_model), depth=depth)))
    results = [_tune_policy(bench, policy, depth) for policy in policies]
    return Tuning(
        measure=str(parsed),
        dataset=", ".join(tuning_set.dataset.name for tuning_set in tuning_sets),
        split=", ".join(tuning_set.split for tuning_set in tuning_sets),
        queries=len(bench),
        lenses=list(lenses),
        baselines=baselines,
        results=results,
        warnings=warnings,
    )


def _of_model(collection: Collection, lenses: Sequence[str]) -> str | None:
    """The fusion of these lenses that the model of a collection ships, if any."""
    return collection.model.fusions.get(fused_name(lenses)) if collection.config.heads else None


def _drawn(tuning_set: TuningSet, most: int | None) -> Split:
    """The queries that weights are chosen on, with their judgements."""
    split_queries = with_judgements(tuning_set.dataset, tuning_set.split)
    query_ids = list(split_queries.queries)
    if len(query_ids) < FEWEST:
        name, split = tuning_set.dataset.name, tuning_set.split
        raise BadInput(f"{name} has {len(query_ids)} judged queries in split {split!r}; expected at least {FEWEST}")
    if most is not None and len(query_ids) > most:
        query_ids = [query_ids[i] for i in np.sort(np.random.default_rng(SEED).choice(len(query_ids), most, replace=False))]
    kept = {query: split_queries.queries[query] for query in query_ids}
    return replace(split_queries, queries=kept, qrels={query: split_queries.qrels[query] for query in query_ids})


def _problems(tuning_set: TuningSet, split: Split, named: bool) -> list[str]:
    """Problems of the queries, each with the name of the dataset if `named`."""
    problems = [*examine(split, tuning_set.collection).lines(), *_also_tested(tuning_set.dataset, set(split.queries))]
    return [f"{tuning_set.dataset.name}: {line}" for line in problems] if named else problems


def _also_tested(dataset: Dataset, queries: set[str]) -> list[str]:
    """Warnings about queries that are in a test split as well."""
    tested = [name for name in dataset.splits() if "test" in name.lower()]
    shared = {name: len(queries & set(dataset.split(name).queries)) for name in tested}
    return [
        f"{count} of the queries are in the split {name!r} too: measures there will be optimistic"
        for name, count in shared.items()
        if count
    ]


def gather(
    collection: Collection, queries: Mapping[str, str], lenses: Sequence[str], depth: int, report: Callable[[int], None]
) -> list[JudgedCandidates]:
    """The candidates of each query with the scores of every lens."""
    judged = []
    ids, texts = list(queries), list(queries.values())
    for start in range(0, len(ids), AT_ONCE):
        batch = texts[start : start + AT_ONCE]
        by_query = collection.candidates(batch, lenses, depth)
        for query_id, candidates in zip(ids[start : start + AT_ONCE], by_query, strict=True):
            judged.append(JudgedCandidates(query_id, *candidates))
        report(len(batch))
    return judged


class Bench:
    """Measures fusions over the candidates of one or several collections; measured values are cached."""

    def __init__(
        self, judged: Sequence[Sequence[JudgedCandidates]], lenses: list[str], qrels: Sequence[Qrels], measure: Any
    ) -> None:
        self.lenses = lenses
        self.sizes = [len(queries) for queries in judged]
        self._judged = [query for queries in judged for query in queries]
        self.of: Int64s = np.repeat(np.arange(len(judged)), self.sizes)  # the collection of each query
        self._measure = measure
        # By position: collections may share query ids, and some tools behind ir-measures need numbers.
        judgements = [known[query.query_id] for known, queries in zip(qrels, judged, strict=True) for query in queries]
        self._evaluator = measure_library().evaluator([measure], {str(i): labels for i, labels in enumerate(judgements)})
        self.measured: list[Fusion] = []
        self._known: dict[str, Float64s] = {}
        self._units: dict[str, list[tuple[list[str], Float64s]]] = {}

    def __len__(self) -> int:
        return len(self._judged)

    def mean(self, values: Float64s, queries: Int64s | None = None) -> float:
        """The mean over some queries (None: all), in which every collection has the same weight."""
        of, values = (self.of, values) if queries is None else (self.of[queries], values[queries])
        return float(np.mean([values[of == collection].mean() for collection in np.unique(of)]))

    def values(self, fusion: Fusion) -> Float64s:
        """The measure of each query."""
        name = str(fusion)
        if name not in self._known:
            weights = np.array([fusion.weights.get(lens, 1.0) for lens in self.lenses])
            rankings = []
            for doc_ids, units in self._contributions(replace(fusion, weights={})):
                order = np.argsort(-(units * weights).sum(axis=1), kind="stable")
                rankings.append([doc_ids[place] for place in order[: self._depth].tolist()])
            self._known[name] = self._measured(rankings)
            self.measured.append(fusion)
        return self._known[name]

    def alone(self, lens: str) -> Float64s:
        """The measure of each query by one lens."""
        rankings = []
        for query in self._judged:
            ranked = rank_by(lens, query.candidates) if len(query.candidates.keys) else []
            rankings.append([query.doc_ids[doc.key] for doc in ranked])
        return self._measured(rankings)

    @property
    def _depth(self) -> int | None:
        """The cutoff of the measure; None if it has none."""
        cutoff: int | None = self._measure.params.get("cutoff")
        return cutoff

    def _contributions(self, plain: Fusion) -> list[tuple[list[str], Float64s]]:
        """The documents of each query by key, and the contribution of each lens at weight 1.

        Under every policy the contribution of a lens is proportional to its weight.
        """
        name = str(plain)
        if name not in self._units:
            contributions = []
            for query in self._judged:
                fused = sorted(fuse(plain, query.candidates), key=lambda doc: doc.key) if len(query.candidates.keys) else []
                parts = [
                    [doc.by_lens[lens].contribution if lens in doc.by_lens else 0.0 for lens in self.lenses] for doc in fused
                ]
                contributions.append(([query.doc_ids[doc.key] for doc in fused], np.array(parts).reshape(-1, len(self.lenses))))
            self._units[name] = contributions
        return self._units[name]

    def _measured(self, rankings: Sequence[Sequence[str]]) -> Float64s:
        """The measure of each query; ranks serve as scores, so that ties are broken as in a search."""
        run = {
            str(i): {doc_id: float(len(ranking) - rank) for rank, doc_id in enumerate(ranking)}
            for i, ranking in enumerate(rankings)
        }
        values = {metric.query_id: metric.value for metric in self._evaluator.iter_calc(run)}
        return np.array([values.get(str(i), 0.0) for i in range(len(self))])


def _tune_policy(bench: Bench, policy: Policy, depth: int) -> PolicyResult:
    # Every fold has its share of every collection, and the same queries where collections share them.
    folds = np.concatenate([np.random.default_rng(SEED).permutation(size) % FOLDS for size in bench.sizes])
    tried = variants_of(Fusion(policy, depth=depth))
    best = choose(bench, tried)
    unseen, fusions = np.zeros(len(folds)), []
    for fold in range(FOLDS):
        fusion = choose(bench, tried, np.flatnonzero(folds != fold))
        unseen[folds == fold] = bench.values(fusion)[folds == fold]
        fusions.append(fusion)
    return PolicyResult(best, bench.mean(bench.values(best)), bench.mean(unseen), fusions)


def variants_of(plain: Fusion) -> list[Fusion]:
    """The settings of a policy that are tried: constants of reciprocal ranks, scores without and with damping."""
    return [replace(plain, k=k) for k in RRF_KS] if plain.policy == "rrf" else [plain, replace(plain, damp=True)]


def choose(bench: Bench, variants: Sequence[Fusion], queries: Int64s | None = None) -> Fusion:
    """One of these fusions, with weights, that is best by the mean over some of the queries (None: all)."""
    tried: list[tuple[float, Fusion]] = []
    for like in variants:

        def value(weights: Weights, like: Fusion = like) -> float:
            return bench.mean(bench.values(_weighted(like, bench.lenses, weights)), queries)

        best, score = best_weights(value, len(bench.lenses))
        tried.append((score, _weighted(like, bench.lenses, best)))
    return max(tried, key=lambda pair: pair[0])[1]


def _weighted(plain: Fusion, lenses: Sequence[str], weights: Weights) -> Fusion:
    return replace(plain, weights={name: weight / STEPS for name, weight in zip(lenses, weights, strict=True)})


def _require(
    tuning_sets: Sequence[TuningSet], lenses: Sequence[str], measure: str, policies: Sequence[str], most: int | None
) -> Any:
    if not tuning_sets:
        raise BadInput("there is nothing to tune on; expected a collection with judged queries")
    if most is not None and most < FEWEST:
        raise BadInput(f"most is {most}; expected at least {FEWEST} queries to choose weights on")
    for tuning_set in tuning_sets:
        if "test" in tuning_set.split.lower():
            raise BadInput(
                f"split is {tuning_set.split!r}; weights must not be chosen on test queries: expected another, such as dev"
            )
    if len(lenses) < 2 or len(set(lenses)) != len(lenses):
        raise BadInput(f"lenses are {', '.join(lenses)}; expected two or more different ones to fuse")
    for tuning_set in tuning_sets:
        if lacking := [name for name in lenses if name not in tuning_set.collection.lenses]:
            raise BadInput(
                f"the collection {tuning_set.collection.path} has no {', '.join(lacking)}; expected every collection to have "
                f"all of {', '.join(lenses)}: choose among its lenses with --lens, or index it again"
            )
    if not policies or any(policy not in POLICIES for policy in policies):
        raise BadInput(f"policies are {', '.join(policies) or 'none'}; expected some of {', '.join(POLICIES)}")
    parsed = parse_measure(measure)
    if isinstance(parsed, HitMeasure):
        raise BadInput(f"measure is {measure!r}; expected a measure of relevance judgements, such as nDCG@10 or AP")
    return parsed
