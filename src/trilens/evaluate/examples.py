"""Example queries on which runs differ: a relevant document, its rank in each run, and the words responsible."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trilens.datasets.qrels import Qrels
from trilens.evaluate.comparison import Comparison
from trilens.evaluate.measures import ranks as ranks_of
from trilens.evaluate.runs import Run
from trilens.evaluate.significance import TIE
from trilens.explain.explanation import Explanation
from trilens.kernels.array_types import Float64s

NOTABLE = 0.01  # words below this fraction of the largest gain are omitted
Explain = Callable[[str, str], Explanation]
"""(query text, doc_id) → explanation of the document's score"""


@dataclass(frozen=True, eq=False)
class Reason:
    """Explanations by one lens of the scores of the relevant document and of its rival, if there is one."""

    lens: str
    relevant: Explanation
    rival: Explanation | None

    @property
    def gains(self) -> list[tuple[str, float]]:
        """Score of the relevant document minus that of the rival, by word; largest first, negligible ones omitted."""
        sums: dict[str, float] = defaultdict(float)
        for part in self.relevant.parts:
            sums[part.label] += part.score
        for part in self.rival.parts if self.rival else ():
            sums[part.label] -= part.score
        threshold = max(NOTABLE * max(map(abs, sums.values()), default=0.0), TIE)
        gains = [(word, gain) for word, gain in sums.items() if abs(gain) > threshold]
        return sorted(gains, key=lambda item: (-abs(item[1]), item[0]))

    def to_json(self) -> dict[str, Any]:
        """Both scores and the gains by word, as JSON-serialisable values."""
        return {
            "lens": self.lens,
            "score": self.relevant.score,
            "rival_score": self.rival.score if self.rival else None,
            "gains": [{"word": word, "gain": gain} for word, gain in self.gains],
        }


@dataclass(frozen=True, eq=False)
class QueryExample:
    """A query on which run `winner` scores higher than run `loser`.

    query       text of the query; None if unknown
    values      run → value of the primary measure
    doc_id      the relevant document with the largest gain in discounted rank from loser to winner
    ranks       run → rank of that document; None if it was not retrieved
    rival       the top-ranked non-relevant document that the loser ranks above it, if any
    reasons     explanations of both documents by lens
    """

    query_id: str
    query: str | None
    values: Mapping[str, float]
    winner: str
    loser: str
    doc_id: str
    ranks: Mapping[str, int | None]
    rival: str | None
    reasons: Sequence[Reason] = ()

    def to_json(self) -> dict[str, Any]:
        """The example as JSON-serialisable values."""
        return {
            "query_id": self.query_id,
            "query": self.query,
            "values": dict(self.values),
            "winner": self.winner,
            "loser": self.loser,
            "relevant": self.doc_id,
            "ranks": dict(self.ranks),
            "rival": self.rival,
            "why": [reason.to_json() for reason in self.reasons],
        }


@dataclass(frozen=True, eq=False)
class ExampleFinder:
    """Selects example queries of compared runs; `texts` maps query ids to query texts, where known."""

    comparison: Comparison
    runs: Mapping[str, Run]
    qrels: Qrels
    texts: Mapping[str, str]

    def largest_differences(self, limit: int) -> list[QueryExample]:
        """Queries with the largest difference between best and worst run in the primary measure."""
        values = self._values()
        names = self.comparison.names
        best, worst = values.argmax(axis=0), values.argmin(axis=0)
        opponents = [(names[winner], names[loser]) for winner, loser in zip(best, worst, strict=True)]
        return self._examples(values.max(axis=0) - values.min(axis=0), opponents, limit)

    def wins_of(self, name: str, others: Sequence[str], limit: int) -> list[QueryExample]:
        """Queries on which a run beats all others, largest lead first; the first of the others is shown as the loser."""
        values = self._values()
        row, *rows = (self.comparison.names.index(run) for run in (name, *others))
        leads = values[row] - values[rows].max(axis=0)
        return self._examples(leads, [(name, others[0])] * len(leads), limit)

    def _values(self) -> Float64s:
        """Values of the primary measure, (runs, queries)."""
        return np.stack([self.comparison.values[name][self.comparison.measures[0]] for name in self.comparison.names])

    def _examples(self, leads: Float64s, opponents: Sequence[tuple[str, str]], limit: int) -> list[QueryExample]:
        """Examples by descending lead; `opponents` are the winner and loser of each query. Ties are omitted."""
        examples: list[QueryExample] = []
        for index in np.argsort(-leads, kind="stable").tolist():
            if len(examples) == limit or leads[index] <= TIE:
                break
            if example := self._example(index, *opponents[index]):
                examples.append(example)
        return examples

    def _example(self, index: int, winner: str, loser: str) -> QueryExample | None:
        """None if the winner retrieved no relevant document, which some measures allow."""
        query_id, measure = self.comparison.queries[index], self.comparison.measures[0]
        values = {name: float(self.comparison.values[name][measure][index]) for name in self.comparison.names}
        rankings = {name: list(ranks_of(run.get(query_id, {}))) for name, run in self.runs.items()}
        relevant = {doc_id: grade for doc_id, grade in self.qrels[query_id].items() if grade > 0}
        retrieved = [doc_id for doc_id in rankings[winner] if doc_id in relevant]
        if not retrieved:
            return None
        by_run = {name: {doc_id: rank for rank, doc_id in enumerate(ids, start=1)} for name, ids in rankings.items()}

        def gain(doc_id: str) -> float:
            return relevant[doc_id] * (_discount(by_run[winner].get(doc_id)) - _discount(by_run[loser].get(doc_id)))

        doc_id = max(retrieved, key=gain)
        ranks = {name: by_doc.get(doc_id) for name, by_doc in by_run.items()}
        loser_rank = ranks[loser]
        above = rankings[loser] if loser_rank is None else rankings[loser][: loser_rank - 1]
        rival = next((other for other in above if other not in relevant), None)
        return QueryExample(query_id, self.texts.get(query_id), values, winner, loser, doc_id, ranks, rival)


def with_reasons(example: QueryExample, lenses: Mapping[str, Explain]) -> QueryExample:
    """Add the explanations of the relevant document and its rival by each of these lenses."""
    assert example.query is not None
    reasons = []
    for lens, explain in lenses.items():
        rival = explain(example.query, example.rival) if example.rival else None
        reasons.append(Reason(lens, explain(example.query, example.doc_id), rival))
    return replace(example, reasons=reasons)


def _discount(rank: int | None) -> float:
    """Rank discount of nDCG; 0 for a document that was not retrieved."""
    return 1 / math.log2(rank + 1) if rank else 0.0
