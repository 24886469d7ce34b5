"""`JoinedSearch`: a search of a collection whose parts are elsewhere; every score is the one that the whole would give.

One round of requests finds the candidates of all shards with their scores, one fetches the documents of the best. One before
them counts the terms of the queries (`Statistics`), and a re-ranking lens takes one more.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, cast

import numpy as np

from trilens.cluster.join import join_candidates, with_ranking, within
from trilens.cluster.shard import Found, Request, Reranked, in_shard
from trilens.errors import BadInput
from trilens.explain.explanation import Explanation
from trilens.lenses.lens import ScoreScale
from trilens.lenses.statistics import ScaleSums, Statistics
from trilens.search.candidates import Candidates
from trilens.search.fusion import RankedDoc
from trilens.search.hits import Hit
from trilens.search.options import SearchOptions
from trilens.search.search import Search
from trilens.store.lens_set import LensSet
from trilens.store.snapshot import Snapshot

Ask = Callable[[str, Mapping[int, tuple[Any, ...]]], dict[int, Any]]
"""Calls a method of some shards, with the arguments of each, and returns what each answers."""


@dataclass(frozen=True, eq=False, slots=True)
class JoinedCommit:
    """One commit of a collection in shards: its tuned fusions, and the number of rows of each shard, deleted ones included."""

    tuned: Mapping[str, Any]
    shard_rows: Sequence[int]

    @property
    def first_rows(self) -> list[int]:
        """What the rows of each shard are numbered from; the last one is the number of rows of all."""
        return [0, *np.cumsum(self.shard_rows).tolist()]

    @property
    def rows(self) -> int:
        """Number of rows of all shards."""
        return sum(self.shard_rows)


class JoinedSearch(Search):
    """One batch of queries with the same options, answered by shards."""

    def __init__(self, commit: JoinedCommit, ask: Ask, lenses: LensSet, queries: Sequence[str], options: SearchOptions) -> None:
        super().__init__(cast(Snapshot, commit), lenses, queries, options)  # of a snapshot only `tuned` and `rows` are read
        self._commit = commit
        self._ask = ask
        self._shards = [shard for shard, rows in enumerate(commit.shard_rows) if rows]
        _require_joinable(self.options, lenses)

    def hits(self) -> list[list[Hit]]:
        """The best k documents of each query after the first `offset`."""
        if not self.queries or not self._commit.rows:
            return [[] for _ in self.queries]
        answers = [self.ranked(candidates, self.options.last_rank) for candidates in self.candidates()]
        return self.hits_of([ranked[self.options.offset :] for ranked in answers])

    def candidates(self, also: Iterable[int] = ()) -> list[Candidates]:
        """The candidates of each query among the documents of all shards."""
        if not self.queries or not self._commit.rows:
            return super().candidates(also)
        also = sorted(set(also))
        found = self._found(tuple(also))
        joined = [
            join_candidates([part.candidates[query] for part in found], self._first_rows, self.names, self.depth, also)
            for query in range(len(self.queries))
        ]
        if self._alone:
            return joined
        spanned = [self._with_spans(single, query) for query, single in enumerate(joined)]
        return self.reranked([self._kept(single, also) for single in spanned]) if self.reranker else spanned

    def hits_of(self, page: Sequence[Sequence[RankedDoc]]) -> list[list[Hit]]:
        """The hits of the documents of each query, each from its shard."""
        bounds = self._commit.first_rows
        request = replace(self._request, scales=self.scales)
        places, calls = {}, {}
        for shard in self._shards:
            first, end = bounds[shard], bounds[shard + 1]
            here = [[number for number, doc in enumerate(ranked) if first <= doc.row < end] for ranked in page]
            if any(here):
                docs = [
                    [in_shard(ranked[number], first) for number in numbers] for ranked, numbers in zip(page, here, strict=True)
                ]
                places[shard], calls[shard] = here, (request, docs)
        hits: list[list[Hit | None]] = [[None] * len(ranked) for ranked in page]
        for shard, answered in self._ask("hits", calls).items():
            for query, numbers in enumerate(places[shard]):
                for number, hit in zip(numbers, answered[query], strict=True):
                    hits[query][number] = replace(hit, rank=self.options.offset + 1 + number)
        return [[hit for hit in single if hit] for single in hits]

    def explain(self, doc_id: str, key: int, shard: int) -> Explanation:
        """Why this search gives a document of a shard its score."""
        rerank = self.options.rerank
        candidates: Candidates | None = None
        if rerank.first_weight if rerank else not self._alone:
            first, end = self._commit.first_rows[shard : shard + 2]
            candidates = within(self.candidates(also=[key])[0], first, end)
        request = replace(self._request, scales=self.scales)
        explanation: Explanation = self._ask("explain", {shard: (request, doc_id, candidates)})[shard]
        return explanation

    @cached_property
    def scales(self) -> Mapping[str, ScoreScale]:
        """What the scores of each lens mean, from the random passages of all shards."""
        found = [part.sums for part in self._found(())] if self._commit.rows else []
        names = dict.fromkeys(name for sums in found for name in sums)
        return {
            name: ScoreScale.of(reduce(ScaleSums.__add__, [sums[name] for sums in found if name in sums])) for name in names
        }

    @cached_property
    def _request(self) -> Request:
        calls = {shard: (self.encoded, self.options.params) for shard in self._shards}
        counted = self._ask("statistics", calls)
        return Request(self.queries, self.options, self.expanded, Statistics.join(list(counted.values())))

    @cached_property
    def _rounds(self) -> dict[tuple[int, ...], list[Found]]:
        return {}

    def _found(self, also: tuple[int, ...]) -> list[Found]:
        """What the shards find; any earlier round serves for the scales."""
        if not also and self._rounds:
            return next(iter(self._rounds.values()))
        if also not in self._rounds:
            answers = self._ask("find", {shard: (self._request, also) for shard in self._shards})
            self._rounds[also] = [answers[shard] for shard in self._shards]
        return self._rounds[also]

    @property
    def _first_rows(self) -> list[int]:
        first_rows = self._commit.first_rows
        return [first_rows[shard] for shard in self._shards]

    def reranked(self, candidates: Sequence[Candidates]) -> list[Candidates]:
        """The candidates of each query with the scores of the reranker, which each shard computes for its own passages."""
        assert self.options.rerank
        bounds, rows = self._commit.first_rows, [single.known_rows() for single in candidates]
        calls = {
            shard: (self._request, [r[(r >= bounds[shard]) & (r < bounds[shard + 1])] - bounds[shard] for r in rows])
            for shard in self._shards
        }
        answers: dict[int, list[Reranked]] = self._ask("rerank", calls)
        result = []
        for query, single in enumerate(candidates):
            parts = [(shard, answers[shard][query]) for shard in answers]
            keys, scores = (np.concatenate([getattr(part, name) for _, part in parts]) for name in ("keys", "scores"))
            known = np.concatenate([part.rows + bounds[shard] for shard, part in parts])
            result.append(with_ranking(single, self.options.rerank.by, keys, known, scores))
        return result

    def _with_spans(self, candidates: Candidates, query: int) -> Candidates:
        """The candidates with what the fusion needs to know of each lens."""
        exhausted = frozenset(name for name, ranks in candidates.ranks.items() if int(ranks.max(initial=0)) < self.depth)
        spans = {name: scale.span(query) for name, scale in self.scales.items()} if self.fusion.damp else {}
        return replace(candidates, exhausted=exhausted, spans=spans)


def _require_joinable(options: SearchOptions, lenses: LensSet) -> None:
    """Refuse what depends on the other passages of a collection in more than their statistics."""
    if options.expand:
        raise BadInput("expand is given, but the collection is in shards, which cannot expand queries; leave it out")
    for name in options.lenses or ():
        if not lenses[name].is_separable(options.params.get(name)):
            raise BadInput(
                f"params.{name} lets scores depend on all passages of a collection, but this one is in shards; leave it out"
            )
