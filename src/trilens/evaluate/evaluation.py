"""Evaluation of search variants: run the queries of a split and compute measures over the results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import mean
from time import perf_counter
from typing import Any

from trilens.collection import Collection
from trilens.datasets.answers import AnswerKind, AnswerMatcher
from trilens.datasets.dataset import Split
from trilens.errors import BadInput
from trilens.evaluate.groups import GroupResult, Labels, measure_groups
from trilens.evaluate.measures import ByQuery, HitMeasure, choose_measures, depth_of, hits_per_query, means, per_query
from trilens.evaluate.runs import Run, strictly_decreasing
from trilens.evaluate.variants import Variant
from trilens.search.hits import Hit


@dataclass(frozen=True, slots=True)
class LensResult:
    """Results of one search variant; `lens` is its name.

    measures         means over all queries, by ir-measures name; queries without results count as zero
    ms_per_query     mean latency, including query encoding and reading the documents
    by_query         per-query values by measure
    nothing_found    number of queries without results
    """

    lens: str
    measures: dict[str, float]
    ms_per_query: float
    run: Run
    by_query: ByQuery = field(default_factory=dict)
    nothing_found: int = 0
    groups: list[GroupResult] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Task:
    """What to evaluate.

    split       the queries and their judgements or answers
    measures    names; empty for the default measures of the split
    answers     whether answers are strings or regular expressions
    depth       minimum number of documents per search; measures with a larger cutoff raise it
    groups      grouping → label → query ids, each group measured separately
    """

    split: Split
    measures: Sequence[str] = ()
    answers: AnswerKind = "string"
    depth: int = 100
    groups: dict[str, Labels] = field(default_factory=dict)


def evaluate(
    collection: Collection, task: Task, variants: Sequence[Variant], report: Callable[[int], None] = lambda queries: None
) -> list[LensResult]:
    """Evaluate each variant on all queries, one query per search, so that latencies are those of single queries."""
    measures = choose_measures(task.measures, task.split)
    hit_cutoffs = [measure.cutoff for measure in measures if isinstance(measure, HitMeasure)]
    matchers = _matchers(task) if hit_cutoffs else {}
    depth = depth_of(measures, task.depth)
    results = []
    for variant in variants:
        variant.search(collection, [next(iter(task.split.queries.values())).text], depth)  # warm-up: loads the model
        run: Run = {}
        first_ranks: dict[str, int | None] = {}
        seconds = []
        for query_id, query in task.split.queries.items():
            start = perf_counter()
            (hits,) = variant.search(collection, [query.text], depth)
            seconds.append(perf_counter() - start)
            run[query_id] = strictly_decreasing((hit.doc_id, hit.score) for hit in hits)
            if query_id in matchers:
                first_ranks[query_id] = first_answer(hits, matchers[query_id], max(hit_cutoffs))
            report(1)
        by_query = _by_query(measures, task.split, run, first_ranks)
        groups = [group for by, labels in task.groups.items() for group in measure_groups(by, labels, by_query)]
        nothing_found = sum(not scores for scores in run.values())
        if nothing_found == len(run):
            raise BadInput(
                f"{variant.name} found no documents for any of the {len(run)} queries; expected queries that match the corpus"
            )
        ms_per_query = 1000 * mean(seconds)
        results.append(LensResult(variant.name, means(by_query), ms_per_query, run, by_query, nothing_found, groups))
    return results


def first_answer(hits: Sequence[Hit], matcher: AnswerMatcher, within: int) -> int | None:
    """Rank of the first document whose text contains an answer, among the top `within`; titles are ignored, as in DPR."""
    ranked = enumerate(hits[:within], start=1)
    return next((rank for rank, hit in ranked if matcher.matches(hit.document.text)), None)


def _matchers(task: Task) -> dict[str, AnswerMatcher]:
    return {
        query_id: AnswerMatcher(query.answers, task.answers) for query_id, query in task.split.queries.items() if query.answers
    }


def _by_query(measures: Sequence[Any], split: Split, run: Run, first_ranks: dict[str, int | None]) -> ByQuery:
    """Per-query values, in the order of the measures."""
    hits = hits_per_query(first_ranks, [measure for measure in measures if isinstance(measure, HitMeasure)])
    judged = per_query(run, split.qrels, [measure for measure in measures if not isinstance(measure, HitMeasure)])
    return {str(measure): (hits | judged)[str(measure)] for measure in measures}
