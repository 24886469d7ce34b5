"""Run the queries of a split through lenses and fusions and measure what comes back."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import mean
from time import perf_counter
from typing import Any

from trilens.collection import Collection
from trilens.errors import BadInput
from trilens.evaluate.groups import Group, Labels, measure_groups
from trilens.evaluate.measures import ByQuery, Hit, choose_measures, depth_of, hits_per_query, means, per_query
from trilens.evaluate.runs import Run, strictly
from trilens.evaluate.variants import Variant
from trilens.search.hits import Hit as Found
from trilens.text.answers import AnswerKind, AnswerMatcher
from trilens.text.dataset import Split


@dataclass(frozen=True, slots=True)
class LensResult:
    """What one lens, or one fusion, is worth.

    measures         means over all queries, by the names that ir-measures prints; a query that found nothing counts as zero
    ms_per_query     includes encoding the query and reading the hits
    by_query         the value of each query by measure
    nothing_found    how many queries found nothing
    """

    lens: str
    measures: dict[str, float]
    ms_per_query: float
    run: Run
    by_query: ByQuery = field(default_factory=dict)
    nothing_found: int = 0
    groups: list[Group] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Task:
    """What is measured: the queries of a split by some measures; `groups` of queries by what they have in common.

    Without measures, the usual ones for judgements and for answers. `answers` are strings or regular expressions. `depth` is
    how many documents a search returns at least; measures that look further get more.
    """

    split: Split
    measures: Sequence[str] = ()
    answers: AnswerKind = "string"
    depth: int = 100
    groups: dict[str, Labels] = field(default_factory=dict)


def evaluate(
    collection: Collection, task: Task, variants: Sequence[Variant], report: Callable[[int], None] = lambda queries: None
) -> list[LensResult]:
    """Measure each variant over the queries, one query at a time, as a user would ask them."""
    measures = choose_measures(task.measures, task.split)
    hits = [measure for measure in measures if isinstance(measure, Hit)]
    matchers = _matchers(task) if hits else {}
    depth = depth_of(measures, task.depth)
    results = []
    for variant in variants:
        variant.search(collection, [next(iter(task.split.queries.values())).text], depth)  # loading a model is not answering
        run: Run = {}
        first: dict[str, int | None] = {}
        times = []
        for query_id, query in task.split.queries.items():
            start = perf_counter()
            (found,) = variant.search(collection, [query.text], depth)
            times.append(perf_counter() - start)
            run[query_id] = strictly((hit.doc_id, hit.score) for hit in found)
            if query_id in matchers:
                first[query_id] = first_answer(found, matchers[query_id], max(hit.cutoff for hit in hits))
            report(1)
        by_query = _by_query(measures, task.split, run, first)
        groups = [group for by, labels in task.groups.items() for group in measure_groups(by, labels, by_query)]
        nothing = sum(not found for found in run.values())
        if nothing == len(run):
            raise BadInput(
                f"{variant.name} found nothing for any of the {nothing} queries; expected queries that fit the corpus"
            )
        results.append(LensResult(variant.name, means(by_query), 1000 * mean(times), run, by_query, nothing, groups))
    return results


def first_answer(found: Sequence[Found], matcher: AnswerMatcher, within: int) -> int | None:
    """The rank of the first document whose text holds an answer; titles do not count, as in DPR."""
    ranked = enumerate(found[:within], start=1)
    return next((rank for rank, hit in ranked if matcher.matches(hit.document.text)), None)


def _matchers(task: Task) -> dict[str, AnswerMatcher]:
    return {
        query_id: AnswerMatcher(query.answers, task.answers) for query_id, query in task.split.queries.items() if query.answers
    }


def _by_query(measures: Sequence[Any], split: Split, run: Run, first: dict[str, int | None]) -> ByQuery:
    """In the order in which the measures were named."""
    hits = hits_per_query(first, [measure for measure in measures if isinstance(measure, Hit)])
    judged = per_query(run, split.qrels, [measure for measure in measures if not isinstance(measure, Hit)])
    return {str(measure): (hits | judged)[str(measure)] for measure in measures}
