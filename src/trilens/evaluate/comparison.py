"""Pairwise comparison of runs over judged queries: mean differences, confidence intervals, wins and significance."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from trilens.datasets.qrels import Qrels
from trilens.errors import BadInput
from trilens.evaluate.measures import HitMeasure, parse_measures, per_query
from trilens.evaluate.runs import Run
from trilens.evaluate.significance import SEED, TIE, bootstrap_interval, holm, randomisation_p
from trilens.kernels.array_types import Float64s

SIGNIFICANT = 0.05


@dataclass(frozen=True, slots=True)
class RunPair:
    """Paired comparison of two runs by one measure.

    difference          mean over the judged queries of first − second
    low, high           its 95 % bootstrap confidence interval
    wins, ties, losses  number of queries on which the first run is better, equal or worse
    p                   two-sided p-value of the paired randomisation test
    p_holm              the same, Holm-corrected over all pairs and measures of the comparison
    """

    measure: str
    first: str
    second: str
    difference: float
    low: float
    high: float
    wins: int
    ties: int
    losses: int
    p: float
    p_holm: float

    @property
    def significant(self) -> bool:
        """Whether the Holm-corrected p-value is below 0.05."""
        return self.p_holm < SIGNIFICANT

    @property
    def reversed(self) -> "RunPair":
        """The same comparison with the runs swapped."""
        return RunPair(
            self.measure,
            self.second,
            self.first,
            -self.difference,
            -self.high,
            -self.low,
            self.losses,
            self.ties,
            self.wins,
            self.p,
            self.p_holm,
        )


@dataclass(frozen=True, eq=False)
class Comparison:
    """Per-query values of several runs and the paired comparison of every two of them. The first measure is the primary one.

    values              run → measure → one value per query of `queries`
    absent              run → judged queries missing from the run; they count as zero
    unjudged            run → queries of the run without judgements; they are ignored
    nothing_relevant    judged queries without a relevant document; they count as zero for every run
    """

    queries: Sequence[str]
    measures: Sequence[str]
    values: Mapping[str, Mapping[str, Float64s]]
    pairs: Sequence[RunPair]
    absent: Mapping[str, Sequence[str]]
    unjudged: Mapping[str, Sequence[str]]
    nothing_relevant: Sequence[str]

    @property
    def names(self) -> list[str]:
        """Names of the runs, in input order."""
        return list(self.values)

    @property
    def ranking(self) -> list[str]:
        """Names of the runs by their mean of the primary measure, best first; ties keep the input order."""
        return sorted(self.names, key=lambda name: -self.mean(name))

    def mean(self, name: str, measure: str | None = None) -> float:
        """Mean over all judged queries; of the primary measure by default."""
        return float(self.values[name][measure or self.measures[0]].mean())

    def pair(self, first: str, second: str, measure: str | None = None) -> RunPair:
        """Comparison of two runs in this order; by the primary measure by default."""
        measure = measure or self.measures[0]
        for pair in self.pairs:
            if pair.measure == measure and {pair.first, pair.second} == {first, second}:
                return pair if pair.first == first else pair.reversed
        raise KeyError((first, second, measure))

    def to_json(self) -> dict[str, Any]:
        """The comparison as JSON-serialisable values."""
        return {
            "queries": len(self.queries),
            "measures": list(self.measures),
            "nothing_relevant": list(self.nothing_relevant),
            "runs": [
                {
                    "run": name,
                    **{measure: self.mean(name, measure) for measure in self.measures},
                    "absent_queries": list(self.absent[name]),
                    "unjudged_queries": list(self.unjudged[name]),
                }
                for name in self.names
            ],
            "pairs": [asdict(pair) | {"significant": pair.significant} for pair in self.pairs],
        }


def compare(
    runs: Mapping[str, Run], qrels: Qrels, measures: Sequence[str], seed: int = SEED, tested: Sequence[str] | None = None
) -> Comparison:
    """Compare every two runs over all judged queries; significance is tested for the measures `tested`, by default for all."""
    _require(runs, qrels)
    parsed = require_judged(measures)
    values = {name: _values(run, qrels, parsed) for name, run in runs.items()}
    return Comparison(
        list(qrels),
        [str(measure) for measure in parsed],
        values,
        _pairs(values, [str(measure) for measure in require_judged(tested or measures)], seed),
        {name: [query for query in qrels if query not in run] for name, run in runs.items()},
        {name: [query for query in run if query not in qrels] for name, run in runs.items()},
        [query for query, judged in qrels.items() if not _any_relevant(judged)],
    )


def require_judged(names: Sequence[str]) -> list[Any]:
    """Parse measures that need only qrels; Hit@k is refused because a run does not contain the text of its documents."""
    parsed = parse_measures(names)
    if hits := [str(measure) for measure in parsed if isinstance(measure, HitMeasure)]:
        raise BadInput(f"measure is {hits[0]!r}; expected a measure over qrels, such as nDCG@10 or AP")
    return parsed


def _values(run: Run, qrels: Qrels, measures: Sequence[Any]) -> dict[str, Float64s]:
    """measure → per-query values in the order of the qrels; queries without results have zero."""
    return {name: np.array(list(values.values()), np.float64) for name, values in per_query(run, qrels, measures).items()}


def _pairs(values: Mapping[str, Mapping[str, Float64s]], measures: Sequence[str], seed: int) -> list[RunPair]:
    if len(values) < 2:
        return []
    pairs = [(measure, first, second) for measure in measures for first, second in combinations(values, 2)]
    differences = np.stack([values[first][measure] - values[second][measure] for measure, first, second in pairs], axis=1)
    p_values = randomisation_p(differences, seed=seed).tolist()
    low, high = bootstrap_interval(differences, seed=seed)
    wins, losses = (differences > TIE).sum(axis=0), (differences < -TIE).sum(axis=0)
    return [
        RunPair(
            *pair,
            float(differences[:, column].mean()),
            float(low[column]),
            float(high[column]),
            int(wins[column]),
            len(differences) - int(wins[column]) - int(losses[column]),
            int(losses[column]),
            p_values[column],
            p_holm,
        )
        for column, (pair, p_holm) in enumerate(zip(pairs, holm(p_values), strict=True))
    ]


def _require(runs: Mapping[str, Run], qrels: Qrels) -> None:
    if not qrels:
        raise BadInput("the qrels are empty; expected judgements of at least one query")
    if not any(map(_any_relevant, qrels.values())):
        raise BadInput("no document is judged relevant; expected qrels with grades above 0")
    for name, run in runs.items():
        if not any(query in qrels for query in run):
            raise BadInput(
                f"run {name} has none of the {len(qrels)} judged queries; expected runs and qrels of the same dataset"
            )


def _any_relevant(judged: Mapping[str, int]) -> bool:
    return any(grade > 0 for grade in judged.values())
