"""Queries that tell runs apart: a relevant document, where each run put it, and which words put it there."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trilens.evaluate.comparison import Comparison
from trilens.evaluate.measures import ranks as ranks_of
from trilens.evaluate.runs import Run
from trilens.evaluate.significance import TIE
from trilens.explain.explanation import Explanation
from trilens.text.qrels import Qrels

NOTABLE = 0.01  # of the largest difference that a word makes
Explain = Callable[[str, str], Explanation]
"""The text of a query and a doc_id → why the document has its score."""


@dataclass(frozen=True, eq=False)
class Why:
    """What one lens saw in the relevant document and, if there is one, in the document that the loser preferred to it."""

    lens: str
    wanted: Explanation
    rival: Explanation | None

    @property
    def gains(self) -> list[tuple[str, float]]:
        """By word what the relevant document got more than the rival, or less; the largest first, without the negligible."""
        sums: dict[str, float] = defaultdict(float)
        for part in self.wanted.parts:
            sums[part.label] += part.score
        for part in self.rival.parts if self.rival else ():
            sums[part.label] -= part.score
        least = NOTABLE * max(map(abs, sums.values()), default=0.0)
        told = [(word, value) for word, value in sums.items() if abs(value) > max(least, TIE)]
        return sorted(told, key=lambda one: (-abs(one[1]), one[0]))

    def to_json(self) -> dict[str, Any]:
        """Scores, and the words that made the difference."""
        return {
            "lens": self.lens,
            "score": self.wanted.score,
            "rival_score": self.rival.score if self.rival else None,
            "gains": [{"word": word, "gain": gain} for word, gain in self.gains],
        }


@dataclass(frozen=True, eq=False)
class Example:
    """A query that `winner` answered better than `loser`.

    `doc_id` is the relevant document that gained most from that, `ranks` where every run put it (None: not returned);
    `rival` is the first document without relevance that the loser put above it, if there is one.
    """

    query_id: str
    query: str | None
    values: Mapping[str, float]
    winner: str
    loser: str
    doc_id: str
    ranks: Mapping[str, int | None]
    rival: str | None
    whys: Sequence[Why] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "query_id": self.query_id,
            "query": self.query,
            "values": dict(self.values),
            "winner": self.winner,
            "loser": self.loser,
            "relevant": self.doc_id,
            "ranks": dict(self.ranks),
            "rival": self.rival,
            "why": [why.to_json() for why in self.whys],
        }


@dataclass(frozen=True, eq=False)
class Finder:
    """Finds examples in compared runs; `texts` are queries by id, as far as they are known."""

    comparison: Comparison
    runs: Mapping[str, Run]
    qrels: Qrels
    texts: Mapping[str, str]

    def largest_differences(self, most: int) -> list[Example]:
        """The queries whose best and worst run lie furthest apart by the first measure."""
        values = self._values()
        names = self.comparison.names
        ends = [(names[best], names[worst]) for best, worst in zip(values.argmax(axis=0), values.argmin(axis=0), strict=True)]
        return self._examples(values.max(axis=0) - values.min(axis=0), ends, most)

    def wins_of(self, name: str, others: Sequence[str], most: int) -> list[Example]:
        """The queries that a run answered better than all others, the largest lead first; the first of them is the loser."""
        values = self._values()
        row, *rows = (self.comparison.names.index(one) for one in (name, *others))
        lead = values[row] - values[rows].max(axis=0)
        return self._examples(lead, [(name, others[0])] * len(lead), most)

    def _values(self) -> NDArray[np.float64]:
        """(runs, queries) by the first measure."""
        return np.stack([self.comparison.values[name][self.comparison.measures[0]] for name in self.comparison.names])

    def _examples(self, lead: NDArray[np.float64], ends: Sequence[tuple[str, str]], most: int) -> list[Example]:
        found: list[Example] = []
        for place in np.argsort(-lead, kind="stable").tolist():
            if len(found) == most or lead[place] <= TIE:
                break
            found += self._example(place, *ends[place])
        return found

    def _example(self, place: int, winner: str, loser: str) -> list[Example]:
        """None where a measure tells runs apart that have no relevant document to show."""
        query, measure = self.comparison.queries[place], self.comparison.measures[0]
        values = {name: float(self.comparison.values[name][measure][place]) for name in self.comparison.names}
        rankings = {name: list(ranks_of(run.get(query, {}))) for name, run in self.runs.items()}
        relevant = {doc_id: grade for doc_id, grade in self.qrels[query].items() if grade > 0}
        shown = [doc_id for doc_id in rankings[winner] if doc_id in relevant]
        if not shown:
            return []
        places = {name: {doc_id: rank for rank, doc_id in enumerate(found, start=1)} for name, found in rankings.items()}
        wanted = max(
            shown, key=lambda doc: relevant[doc] * (_discount(places[winner].get(doc)) - _discount(places[loser].get(doc)))
        )
        ranks = {name: found.get(wanted) for name, found in places.items()}
        limit = ranks[loser]
        above = rankings[loser] if limit is None else rankings[loser][: limit - 1]
        rival = next((doc_id for doc_id in above if doc_id not in relevant), None)
        return [Example(query, self.texts.get(query), values, winner, loser, wanted, ranks, rival)]


def with_reasons(example: Example, lenses: Mapping[str, Explain]) -> Example:
    """The example with what each of these lenses says of the relevant document and its rival."""
    assert example.query is not None
    whys = []
    for lens, explain in lenses.items():
        rival = explain(example.query, example.rival) if example.rival else None
        whys.append(Why(lens, explain(example.query, example.doc_id), rival))
    return replace(example, whys=whys)


def _discount(rank: int | None) -> float:
    """That of nDCG."""
    return 1 / math.log2(rank + 1) if rank else 0.0
