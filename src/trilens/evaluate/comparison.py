"""Runs compared query by query: wins, mean differences with intervals, and whether they are more than luck."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from trilens.errors import BadInput
from trilens.evaluate.measures import Hit, parse_measures, per_query
from trilens.evaluate.runs import Run
from trilens.evaluate.significance import SEED, TIE, Values, bootstrap_interval, holm, randomisation_p
from trilens.text.qrels import Qrels

SIGNIFICANT = 0.05


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs by one measure. `difference` is the mean of first − second; `low` and `high` hold it with 95 % confidence.

    `p` is that of the randomisation test, `p_holm` as it counts among all pairs and measures of the comparison.
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
        """At 5 %, after Holm's correction."""
        return self.p_holm < SIGNIFICANT

    @property
    def turned(self) -> "Pair":
        """The same from the side of the second run."""
        return Pair(
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
    """`values` are by run and measure, one for each of `queries`; the first measure is the one that verdicts are about.

    `absent` are judged queries that a run does not have, which count as zero; `unjudged` those of a run that nobody judged,
    which cannot count. Both by run. `nothing_relevant` are queries for which nothing can be found; they count as zero.
    """

    queries: Sequence[str]
    measures: Sequence[str]
    values: Mapping[str, Mapping[str, Values]]
    pairs: Sequence[Pair]
    absent: Mapping[str, Sequence[str]]
    unjudged: Mapping[str, Sequence[str]]
    nothing_relevant: Sequence[str]

    @property
    def names(self) -> list[str]:
        """The runs, in the order given."""
        return list(self.values)

    @property
    def ranking(self) -> list[str]:
        """The runs by the mean of the first measure, best first; equals in the order given."""
        return sorted(self.names, key=lambda name: -self.mean(name))

    def mean(self, name: str, measure: str | None = None) -> float:
        """Over all judged queries; of the first measure unless another is named."""
        return float(self.values[name][measure or self.measures[0]].mean())

    def pair(self, first: str, second: str, measure: str | None = None) -> Pair:
        """Two runs in this order; by the first measure unless another is named."""
        wanted = measure or self.measures[0]
        for pair in self.pairs:
            if pair.measure == wanted and {pair.first, pair.second} == {first, second}:
                return pair if pair.first == first else pair.turned
        raise KeyError((first, second, wanted))

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
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
    """Compare every two runs over all judged queries; `tested` are the measures with pairs, all unless some are named."""
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
    """Measures by name, of judgements alone: a run does not tell what stands in its documents."""
    parsed = parse_measures(names)
    if hits := [str(measure) for measure in parsed if isinstance(measure, Hit)]:
        raise BadInput(f"measure is {hits[0]!r}; expected measures of judgements, such as nDCG@10 or AP")
    return parsed


def _values(run: Run, qrels: Qrels, measures: Sequence[Any]) -> dict[str, Values]:
    """By measure the value of every judged query, in the order of the judgements; one that found nothing has zero."""
    return {name: np.array(list(found.values()), np.float64) for name, found in per_query(run, qrels, measures).items()}


def _pairs(values: Mapping[str, Mapping[str, Values]], measures: Sequence[str], seed: int) -> list[Pair]:
    if len(values) < 2:
        return []
    asked = [(measure, first, second) for measure in measures for first, second in combinations(values, 2)]
    differences = np.stack([values[first][measure] - values[second][measure] for measure, first, second in asked], axis=1)
    p_values = randomisation_p(differences, seed=seed).tolist()
    low, high = bootstrap_interval(differences, seed=seed)
    wins, losses = (differences > TIE).sum(axis=0), (differences < -TIE).sum(axis=0)
    return [
        Pair(
            *one,
            float(differences[:, place].mean()),
            float(low[place]),
            float(high[place]),
            int(wins[place]),
            len(differences) - int(wins[place]) - int(losses[place]),
            int(losses[place]),
            p_values[place],
            corrected,
        )
        for place, (one, corrected) in enumerate(zip(asked, holm(p_values), strict=True))
    ]


def _require(runs: Mapping[str, Run], qrels: Qrels) -> None:
    if not qrels:
        raise BadInput("there are no judgements; expected some")
    if not any(map(_any_relevant, qrels.values())):
        raise BadInput("no document is judged relevant; expected grades above 0: nothing can be measured")
    for name, run in runs.items():
        if not any(query in qrels for query in run):
            raise BadInput(
                f"run {name} has none of the {len(qrels)} judged queries; expected runs and judgements of one dataset"
            )


def _any_relevant(judged: Mapping[str, int]) -> bool:
    return any(grade > 0 for grade in judged.values())
