"""Measures by name, and their value for each query: judgements by ir-measures, answers by DPR's rule.

Rankings are those that trec_eval would see: it keeps scores in 32 bits and puts the larger document id first among equals. The
tools behind ir-measures differ in that, so they are given ranks, and there are no equals left to disagree about.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from subprocess import CalledProcessError
from typing import Any

import ir_measures
import numpy as np

from trilens.errors import BadInput
from trilens.evaluate.runs import Run
from trilens.text.dataset import Split
from trilens.text.qrels import Qrels

JUDGED = ("nDCG@10", "R@100", "AP", "RR@10")
ANSWERED = ("Hit@1", "Hit@5", "Hit@10", "Hit@20", "Hit@100")
HIT = re.compile(r"Hit@([1-9][0-9]{0,5})")
DEPTH = 100

ByQuery = dict[str, dict[str, float]]
"""measure → query id → value"""


@dataclass(frozen=True, slots=True)
class Hit:
    """Whether one of the first `cutoff` documents holds an answer."""

    cutoff: int

    def __str__(self) -> str:
        return f"Hit@{self.cutoff}"


def parse_measure(name: str) -> Any:
    """A measure of ir-measures that is a mean over queries, or `Hit@k`."""
    if hit := HIT.fullmatch(name.strip()):
        return Hit(int(hit[1]))
    says = f"measure is {name!r}; expected one such as nDCG@10, AP, RR@10, R@100, P@5, Success@5 or Hit@20"
    try:
        found = ir_measures.parse_measure(name.strip())
        found.validate_params()
    except (ValueError, NameError, AssertionError, TypeError) as error:
        raise BadInput(says) from error
    if not ir_measures.DefaultPipeline.supports(found):
        raise BadInput(f"{says}: that one needs software that is not installed")
    if not isinstance(found.aggregator(), ir_measures.measures.MeanAgg) or cutoff_of(found) < 0:
        raise BadInput(f"{says}: a mean over queries, with a positive cutoff if it has one")
    return found


def parse_measures(names: Sequence[str]) -> list[Any]:
    """Several, each once."""
    return list({str(measure): measure for measure in map(parse_measure, names)}.values())


def choose_measures(names: Sequence[str], split: Split) -> list[Any]:
    """Those named, which the data must allow; else the usual ones for what the data has."""
    usual = (*(JUDGED if split.qrels else ()), *(ANSWERED if split.answered else ()))
    chosen = parse_measures(names or usual)
    for measure in chosen:
        if isinstance(measure, Hit) and not split.answered:
            raise BadInput(f"measure {measure} looks for answers, and the queries of {split.name!r} have none: choose another")
        if not isinstance(measure, Hit) and not split.qrels:
            raise BadInput(f"measure {measure} needs judgements, and {split.name!r} has answers alone: choose Hit@k")
    # One query tells before any search whether a measure takes such ids.
    query, judged = next(iter(split.qrels.items()), ("", {}))
    per_query(
        {query: dict.fromkeys(judged, 1.0)},
        {query: judged},
        [one for one in chosen if not isinstance(one, Hit)] if query else [],
    )
    return chosen


def depth_of(measures: Sequence[Any], least: int = DEPTH) -> int:
    """How many documents a search must return for all measures to be what they say."""
    return max(least, *(measure.cutoff if isinstance(measure, Hit) else cutoff_of(measure) for measure in measures))


def cutoff_of(measure: Any) -> int:
    """0 where there is none; -1 where it is no number of documents."""
    cutoff = measure.params.get("cutoff", 0)
    return cutoff if isinstance(cutoff, int) and (cutoff > 0 or "cutoff" not in measure.params) else -1


def per_query(run: Run, qrels: Qrels, measures: Sequence[Any]) -> ByQuery:
    """The value of every judged query; one that found nothing, or is not in the run, has zero."""
    if not measures:
        return {}
    ranked = {query: ranks(found) for query, found in run.items() if query in qrels}
    try:
        known = {(str(one.measure), one.query_id): one.value for one in ir_measures.iter_calc(measures, qrels, ranked)}
    except CalledProcessError as error:  # a few measures are scripts of others, which do not take every id
        names = ", ".join(map(str, measures))
        raise BadInput(
            f"{names} cannot be computed for ids such as {next(iter(qrels))!r}: some want query ids that are numbers; "
            "choose measures that take any, such as nDCG@10 and AP"
        ) from error
    for measure in measures:
        if lost := [query for query, found in ranked.items() if found and (str(measure), query) not in known]:
            raise BadInput(
                f"{measure} has no value for query {lost[0]!r}, which was judged and answered; choose another measure"
            )
    return {str(measure): {query: float(known.get((str(measure), query), 0.0)) for query in qrels} for measure in measures}


def hits_per_query(first: Mapping[str, int | None], measures: Sequence[Hit]) -> ByQuery:
    """`first` is the rank of the first document of each query that holds an answer, None if there is none."""
    return {
        str(measure): {query: float(rank is not None and rank <= measure.cutoff) for query, rank in first.items()}
        for measure in measures
    }


def means(by_query: ByQuery, queries: Collection[str] | None = None) -> dict[str, float]:
    """Over all queries, or some. A measure that none of them has a value of is left out."""
    chosen = {
        name: [value for query, value in values.items() if queries is None or query in queries]
        for name, values in by_query.items()
    }
    return {name: fmean(values) for name, values in chosen.items() if values}


def ranks(found: Mapping[str, float]) -> dict[str, float]:
    """Documents as trec_eval orders them, best first, with scores that are all different."""
    order = sorted(found, key=lambda doc_id: (np.float32(found[doc_id]), doc_id.encode()), reverse=True)
    return {doc_id: float(len(order) - rank) for rank, doc_id in enumerate(order)}
