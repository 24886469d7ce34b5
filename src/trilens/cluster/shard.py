"""`Shard`: a part of a collection that answers for the whole, with the statistics that it is given."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from trilens.encode.encoder import Encoded
from trilens.explain.explain import explain_search
from trilens.explain.explanation import Explanation
from trilens.kernels.array_types import Float64s, Int64s
from trilens.lenses.lens import FEWEST_ROWS, ScoreScale
from trilens.lenses.statistics import ScaleSums, Statistics
from trilens.search.candidates import Candidates
from trilens.search.fusion import RankedDoc
from trilens.search.hits import Hit
from trilens.search.hyde import Expanded
from trilens.search.options import SearchOptions
from trilens.search.search import NO_KEYS, Prepared, Search
from trilens.store.lens_set import LensSet
from trilens.store.snapshot import Snapshot


@dataclass(frozen=True, eq=False, slots=True)
class Request:
    """A batch of queries as shards get it: with resolved options, encoded queries and statistics of the whole collection."""

    queries: Sequence[str]
    options: SearchOptions
    expanded: Expanded
    statistics: Statistics
    scales: Mapping[str, ScoreScale] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, slots=True)
class Found:
    """What a shard returns for each query, and its part of the scales of the scores."""

    candidates: list[Candidates]
    sums: dict[str, ScaleSums]


@dataclass(frozen=True, eq=False, slots=True)
class Reranked:
    """The documents of one query by what re-ranks them, with rows and scores."""

    keys: Int64s
    rows: Int64s
    scores: Float64s


class Shard:
    """Answers the requests of a `JoinedSearch` from one open commit of a part of the collection."""

    def __init__(self, snapshot: Snapshot, lenses: LensSet) -> None:
        self._snapshot = snapshot
        self._lenses = lenses

    def statistics(self, encoded: Mapping[str, Encoded], params: Mapping[str, Any]) -> Statistics:
        """What the scores of queries depend on, counted in this part."""
        return self._snapshot.statistics(encoded, params)

    def find(self, request: Request, also: Iterable[int] = ()) -> Found:
        """The best documents of this part, with all scores that a fusion needs; nothing has re-ranked them yet.

        Those of the documents `also` that are here are candidates in any case.
        """
        search = self._search(request)
        if not self._snapshot.rows:
            return Found([Candidates(NO_KEYS, {}, {}, {}) for _ in request.queries], {})
        wanted = np.array(sorted(also), np.int64)
        here = wanted[np.unique(self._snapshot.rows_of(wanted)[1])]
        return Found(search.found(here.tolist()), self._scale_sums(request))

    def rerank(self, request: Request, rows: Sequence[Int64s]) -> list[Reranked]:
        """The documents of some rows of each query by what re-ranks them."""
        top = self._search(request).rerank(rows)
        counts = top.counts().tolist()
        columns = [(top.keys[query, :count], top.rows[query, :count]) for query, count in enumerate(counts)]
        scores = [top.scores[query, :count].astype(np.float64) for query, count in enumerate(counts)]
        return [Reranked(*both, single) for both, single in zip(columns, scores, strict=True)]

    def hits(self, request: Request, answers: Sequence[Sequence[RankedDoc]]) -> list[list[Hit]]:
        """The documents of this part as hits; the ranks are for the caller to set."""
        return self._search(request).hits_of(answers)

    def explain(self, request: Request, doc_id: str, candidates: Candidates | None) -> Explanation:
        """The explanation of a document of this part among the candidates of the whole collection."""
        snapshot = self._snapshot.given(request.statistics)
        return explain_search(snapshot, self._search(request), doc_id, candidates)

    def _search(self, request: Request) -> Search:
        snapshot = self._snapshot.given(request.statistics)
        return Search(snapshot, self._lenses, request.queries, request.options, Prepared(request.expanded, request.scales))

    def _scale_sums(self, request: Request) -> dict[str, ScaleSums]:
        options = request.options
        if request.statistics.rows < FEWEST_ROWS or not (options.details or (options.fusion and options.fusion.damp)):
            return {}
        snapshot, sums = self._snapshot.given(request.statistics), {}
        for name, encoded in request.expanded.encoded.items():
            of_lens = snapshot.searcher(name).scale_sums(encoded, options.params.get(name))
            if of_lens is not None:
                sums[name] = of_lens
        return sums


def in_shard(doc: RankedDoc, first_row: int) -> RankedDoc:
    """A document with its row as its shard numbers it."""
    return replace(doc, row=doc.row - first_row if doc.row >= 0 else -1)
