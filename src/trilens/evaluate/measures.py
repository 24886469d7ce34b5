"""Evaluation measures by name and their per-query values: qrels measures by ir-measures, answer measures (Hit@k) by DPR's rule.

Rankings are those that trec_eval sees: scores are rounded to float32, and ties are broken by descending document id. The
providers behind ir-measures break ties in different ways, so they get ranks as scores, which have no ties.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from subprocess import CalledProcessError
from typing import Any

import numpy as np

from trilens.datasets.dataset import Split
from trilens.datasets.qrels import Qrels
from trilens.errors import BadInput
from trilens.evaluate.runs import Run

# Default measures of judged queries, and of queries with answers.
JUDGED = ("nDCG@10", "R@100", "AP", "RR@10")
ANSWERED = ("Hit@1", "Hit@5", "Hit@10", "Hit@20", "Hit@100")
HIT = re.compile(r"Hit@([1-9][0-9]{0,5})")
DEPTH = 100
INSTALL = "evaluation needs ir-measures: run `pip install 'trilens[eval]'`"

ByQuery = dict[str, dict[str, float]]
"""measure → query id → value"""


@dataclass(frozen=True, slots=True)
class HitMeasure:
    """Hit@k: whether one of the top k documents contains an answer."""

    cutoff: int

    def __str__(self) -> str:
        return f"Hit@{self.cutoff}"


def measure_library() -> Any:
    """The package ir_measures, which is optional."""
    try:
        import ir_measures
    except ImportError as error:
        raise BadInput(INSTALL) from error
    return ir_measures


def parse_measure(name: str) -> Any:
    """Parse the name of a measure: `Hit@k`, or a measure of ir-measures that is averaged over queries."""
    if hit := HIT.fullmatch(name.strip()):
        return HitMeasure(int(hit[1]))
    ir_measures = measure_library()
    message = f"measure is {name!r}; expected one such as nDCG@10, AP, RR@10, R@100, P@5, Success@5 or Hit@20"
    try:
        measure = ir_measures.parse_measure(name.strip())
        measure.validate_params()
    except (ValueError, NameError, AssertionError, TypeError) as error:
        raise BadInput(message) from error
    if not ir_measures.DefaultPipeline.supports(measure):
        raise BadInput(f"{message}: computing this measure needs software that is not installed")
    if not isinstance(measure.aggregator(), ir_measures.measures.MeanAgg) or cutoff_of(measure) < 0:
        raise BadInput(f"{message}: a measure averaged over queries, with a positive cutoff if it has one")
    return measure


def parse_measures(names: Sequence[str]) -> list[Any]:
    """Parse several measures and drop duplicates."""
    return list({str(measure): measure for measure in map(parse_measure, names)}.values())


def choose_measures(names: Sequence[str], split: Split) -> list[Any]:
    """Parse the named measures and check that the split supports them; without names, the default measures of the split."""
    defaults = (*(JUDGED if split.qrels else ()), *(ANSWERED if split.answered else ()))
    measures = parse_measures(names or defaults)
    for measure in measures:
        if isinstance(measure, HitMeasure) and not split.answered:
            raise BadInput(
                f"measure {measure} needs answers, but the queries of {split.name!r} have none: choose a measure over qrels"
            )
        if not isinstance(measure, HitMeasure) and not split.qrels:
            raise BadInput(f"measure {measure} needs judgements, but {split.name!r} has only answers: choose Hit@k")
    # Some providers accept only certain ids; evaluating one query detects that before any search.
    query_id, judgements = next(iter(split.qrels.items()), ("", {}))
    per_query(
        {query_id: dict.fromkeys(judgements, 1.0)},
        {query_id: judgements},
        [measure for measure in measures if not isinstance(measure, HitMeasure)] if query_id else [],
    )
    return measures


def depth_of(measures: Sequence[Any], least: int = DEPTH) -> int:
    """Number of documents that a search must return: the largest cutoff of the measures, but at least `least`."""
    return max(least, *(measure.cutoff if isinstance(measure, HitMeasure) else cutoff_of(measure) for measure in measures))


def cutoff_of(measure: Any) -> int:
    """Rank cutoff of a measure; 0 if it has none, -1 if it is not a positive integer."""
    cutoff = measure.params.get("cutoff", 0)
    return cutoff if isinstance(cutoff, int) and (cutoff > 0 or "cutoff" not in measure.params) else -1


def per_query(run: Run, qrels: Qrels, measures: Sequence[Any]) -> ByQuery:
    """Values of all judged queries; queries that are absent from the run, or have no results, have zero."""
    if not measures:
        return {}
    rankings = {query_id: ranks(scores) for query_id, scores in run.items() if query_id in qrels}
    try:
        metrics = measure_library().iter_calc(measures, qrels, rankings)
        values = {(str(metric.measure), metric.query_id): metric.value for metric in metrics}
    except CalledProcessError as error:  # a few measures run external scripts, which do not accept every id
        names = ", ".join(map(str, measures))
        raise BadInput(
            f"{names} cannot be computed for ids such as {next(iter(qrels))!r}: some measures require numeric query ids; "
            "choose others, such as nDCG@10 and AP"
        ) from error
    for measure in measures:
        name = str(measure)
        if missing := [query_id for query_id, ranking in rankings.items() if ranking and (name, query_id) not in values]:
            raise BadInput(f"{name} has no value for query {missing[0]!r}, which is judged and has results; choose another")
    return {
        str(measure): {query_id: float(values.get((str(measure), query_id), 0.0)) for query_id in qrels} for measure in measures
    }


def hits_per_query(first_ranks: Mapping[str, int | None], measures: Sequence[HitMeasure]) -> ByQuery:
    """Hit@k of each query from the rank of its first document that contains an answer (None: no document does)."""
    return {
        str(measure): {query_id: float(rank is not None and rank <= measure.cutoff) for query_id, rank in first_ranks.items()}
        for measure in measures
    }


def means(by_query: ByQuery, queries: Collection[str] | None = None) -> dict[str, float]:
    """Mean of each measure over `queries` (None: all). Measures without a value for any of them are omitted."""
    selected = {
        name: [value for query_id, value in values.items() if queries is None or query_id in queries]
        for name, values in by_query.items()
    }
    return {name: fmean(values) for name, values in selected.items() if values}


def ranks(scores: Mapping[str, float]) -> dict[str, float]:
    """Order documents as trec_eval does, best first, and replace their scores by distinct ones."""
    order = sorted(scores, key=lambda doc_id: (np.float32(scores[doc_id]), doc_id.encode()), reverse=True)
    return {doc_id: float(len(order) - rank) for rank, doc_id in enumerate(order)}
