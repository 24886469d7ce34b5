"""Run the queries of a judged collection through lenses and measure what comes back."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean
from time import perf_counter

import ir_measures
from ir_measures import AP, RR, R, nDCG

from trilens.collection import Collection
from trilens.errors import BadInput
from trilens.evaluate.runs import Run
from trilens.evaluate.variants import parse_variant
from trilens.text.beir import Beir

MEASURES = (nDCG @ 10, R @ 100, AP, RR @ 10)
DEPTH = 100


@dataclass(frozen=True, slots=True)
class LensResult:
    """`measures` by the names that ir-measures prints; `ms_per_query` includes encoding the query and reading the hits."""

    lens: str
    measures: dict[str, float]
    ms_per_query: float
    run: Run


def evaluate(
    collection: Collection,
    dataset: Beir,
    split: str,
    lenses: Sequence[str],
    report: Callable[[int], None] = lambda queries: None,
) -> list[LensResult]:
    """Measure each lens alone over the judged queries of a split, one query at a time, as a user would ask them.

    Each of `lenses` may be any text that `parse_variant` reads: a lens with settings, or a fusion.
    """
    queries, qrels = dataset.queries(split), dataset.qrels(split)
    if not queries:
        raise BadInput(f"{dataset.name} has no judged queries in split {split!r}; expected at least one")
    variants = [parse_variant(lens, collection.lenses) for lens in lenses]
    results = []
    for variant in variants:
        variant.search(collection, [next(iter(queries.values()))], DEPTH)  # loading a model is not answering
        run: Run = {}
        times = []
        for query_id, text in queries.items():
            start = perf_counter()
            (hits,) = variant.search(collection, [text], DEPTH)
            times.append(perf_counter() - start)
            run[query_id] = {hit.doc_id: hit.score for hit in hits}
            report(1)
        results.append(LensResult(variant.name, measure(qrels, run), 1000 * mean(times), run))
    return results


def measure(qrels: dict[str, dict[str, int]], run: Run) -> dict[str, float]:
    """Means over all judged queries; one that found nothing counts as zero."""
    values = ir_measures.calc_aggregate(MEASURES, qrels, run)
    return {str(measure): float(values[measure]) for measure in MEASURES}
