"""`Search`: a batch of queries against one snapshot, from encoding to ranked documents."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from trilens.cancellation import require_wanted
from trilens.encode.encoder import Encoded
from trilens.errors import BadInput
from trilens.kernels.array_types import Float64s, Int64s
from trilens.lenses.lens import FEWEST_ROWS, ScoreScale
from trilens.search.candidates import Candidates, gather, score_missing
from trilens.search.details import Details
from trilens.search.expansion import ExpansionInfo, expand_queries
from trilens.search.fusion import FUSION, Fusion, RankedDoc, fuse, fused_scores, rank_alone, rank_by
from trilens.search.hits import Hit
from trilens.search.hyde import Expanded, expand_with_passages
from trilens.search.options import SearchOptions
from trilens.search.ranking import DocTopK, best_documents, best_passages, rank_rows
from trilens.search.rerankers import IndexedReranker, make_reranker
from trilens.store.lens_set import LensSet
from trilens.store.snapshot import Snapshot
from trilens.text.document import require_utf8

NO_KEYS: Int64s = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False, slots=True)
class Prepared:
    """What a search of a part of a collection takes over from the search of the whole: encoded queries, and their scales."""

    expanded: Expanded
    scales: Mapping[str, ScoreScale] = field(default_factory=dict)


class Search:
    """One batch of queries with the same options. Queries are encoded when results are first needed."""

    def __init__(
        self,
        snapshot: Snapshot,
        lenses: LensSet,
        queries: Sequence[str],
        options: SearchOptions,
        prepared: Prepared | None = None,
    ) -> None:
        """`options` may leave lenses and fusion open; they are resolved for this snapshot. `prepared` spares the encoding."""
        require_queries(queries)
        self._snapshot = snapshot
        self._lenses = lenses
        self._prepared = prepared
        self.queries = list(queries)
        self.options = options.resolve(lenses.names, snapshot.tuned, lambda: lenses.model.fusions)
        for name in self.names:
            _ = lenses[name]  # an unknown lens is an error even where there is nothing to search
        self.reranker = make_reranker(snapshot, lenses, self.queries, self.options, lambda name: self.encoded[name])

    @property
    def names(self) -> tuple[str, ...]:
        """The lenses that are searched."""
        return tuple(self.options.lenses or ())

    @property
    def fusion(self) -> Fusion:
        """How several lenses are fused."""
        return self.options.fusion or Fusion()

    @property
    def read_lenses(self) -> list[str]:
        """The lenses that encode the queries."""
        indexed = isinstance(self.reranker, IndexedReranker)
        return [name for name in self.options.used_lenses if indexed or name in self.names]

    @cached_property
    def expanded(self) -> Expanded:
        """The queries as each lens searches them, and what was added to them."""
        if self._prepared:
            return self._prepared.expanded
        expanded = Expanded(self._lenses.encode_queries(self.read_lenses, self.queries, self.options.params), {}, {})
        if self.options.hyde:
            unexpanded = (self._lenses, expanded.encoded, self.queries)
            expanded = expand_with_passages(*unexpanded, self.options.hyde, self.options.params)
        if self.options.expand:
            encoded, infos = expand_queries(self._snapshot, expanded.encoded, self.options)
            expanded = Expanded(encoded, expanded.texts, expanded.infos | infos)
        return expanded

    @property
    def encoded(self) -> Mapping[str, Encoded]:
        """The queries as each lens searches them, expanded if the options say so."""
        return self.expanded.encoded

    @property
    def expansions(self) -> Mapping[str, list[ExpansionInfo]]:
        """Expansion info of each query, by lens."""
        return self.expanded.infos

    def text(self, query: int, lens: str) -> str:
        """The text of a query as a lens searches it: with a generated passage if the options say so."""
        return self.expanded.texts.get(lens, self.queries)[query]

    def hits(self) -> list[list[Hit]]:
        """The best k documents of each query after the first `offset`."""
        if not self.queries or not self._snapshot.rows:
            return [[] for _ in self.queries]
        if self._alone:
            answers = rank_alone(self.names[0], self._best_documents(self.names[0], self.options.last_rank))
        else:
            answers = [self.ranked(candidates, self.options.last_rank) for candidates in self.candidates()]
        return self.hits_of([ranked[self.options.offset :] for ranked in answers])

    def hits_of(self, page: Sequence[Sequence[RankedDoc]]) -> list[list[Hit]]:
        """The hits of the documents of each query after the first `offset`."""
        hits = to_hits(self._snapshot, page, self.options.offset)
        if not self.options.details:
            return hits
        rows = [[doc.row for doc in ranked] for ranked in page]
        return [self.details.add(query, *pair) for query, pair in enumerate(zip(hits, rows, strict=True))]

    @cached_property
    def details(self) -> Details:
        """What adds details to hits."""
        return Details(self._snapshot, self.queries, self.encoded, self.options.params, self.scales)

    @cached_property
    def scales(self) -> Mapping[str, ScoreScale]:
        """What the scores of each lens mean, of those that can tell.

        In a collection of few passages none can: words as common as "how" are missing, and a random passage may be the match.
        """
        if self._prepared:
            return self._prepared.scales
        scales = {}
        for name, queries in self.encoded.items():
            searcher = self._snapshot.searcher(name)
            scale = searcher.scale(queries, self.options.params.get(name)) if searcher.rows >= FEWEST_ROWS else None
            if scale is not None:
                scales[name] = scale
        return scales

    def ranked(self, candidates: Candidates, most: int | None = None) -> list[RankedDoc]:
        """The candidates of one query in order: by what re-ranks them, the only lens, or the fusion."""
        if rerank := self.options.rerank:
            return rank_by(rerank.by, candidates, most, self.first_stage, rerank.first_weight)
        if self._alone:
            return rank_by(self.names[0], candidates, most)
        return fuse(self.fusion, candidates, most)

    @property
    def first_stage(self) -> str:
        """The name of what orders the candidates before they are re-ranked: the only lens, or the fusion."""
        return self.names[0] if len(self.names) == 1 else FUSION

    def candidates(self, also: Iterable[int] = ()) -> list[Candidates]:
        """The union of what the lenses return for each query; the documents `also` are candidates in any case.

        If the candidates are re-ranked, those that are not among the best of the first stage, nor in `also`, are left out.
        """
        if not self.queries or not self._snapshot.rows:
            return [Candidates(NO_KEYS, {}, {}, {}) for _ in self.queries]
        found = self.found(also)
        return self.reranked([self._kept(single, also) for single in found]) if self.reranker else found

    def found(self, also: Iterable[int] = ()) -> list[Candidates]:
        """The candidates as the lenses return them, before they are re-ranked."""
        returned = {name: self._best_documents(name, self.depth) for name in self.names}
        extra = np.array(sorted(set(also)), np.int64)
        candidates = gather(returned, extra)
        if self._alone:
            return candidates
        fills = self.fusion.missing == "exact" and self.options.fuses
        if fills or len(extra):
            score_missing(candidates, self.names, None if fills else extra, self.best_passages)
        return [self._scaled(single, query, self.depth) for query, single in enumerate(candidates)]

    @property
    def depth(self) -> int:
        """Number of documents that each lens returns."""
        return self.options.last_rank if self._alone else self.options.depth

    @property
    def _alone(self) -> bool:
        """Whether one lens alone decides."""
        return len(self.names) == 1 and not self.options.rerank

    def _best_documents(self, name: str, depth: int) -> DocTopK:
        options = self.options
        queries = (self.encoded[name], depth, options.filter, options.exact, options.params.get(name))
        return best_documents(self._snapshot, name, *queries)

    def best_passages(self, name: str, keys: Int64s, owners: Int64s) -> tuple[Int64s, Float64s]:
        """Row and score of the best passage of documents through a lens; see `ranking.best_passages`."""
        require_wanted()
        params = self.options.params.get(name)
        queries = (self.encoded[name], len(self.queries), keys, owners)
        return best_passages(self._snapshot, name, *queries, params, self.options.filter)

    def _kept(self, found: Candidates, also: Iterable[int]) -> Candidates:
        """The candidates of one query that are re-ranked, with their scores in the first stage if its order matters."""
        rerank = self.options.rerank
        if not rerank or not rerank.needs_order:
            return found
        scores = fused_scores(self.fusion, found)
        order = np.argsort(-scores, kind="stable")
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(1, len(order) + 1)
        most = len(order) if rerank.most is None else max(rerank.most, self.options.last_rank)
        positions = np.flatnonzero((ranks <= most) | np.isin(found.keys, np.array([*also], np.int64)))
        kept = found.take(positions)
        if self.first_stage == FUSION:
            kept.add(FUSION, ranks[positions], np.full(len(positions), -1, np.int64), scores[positions])
        return kept

    def reranked(self, candidates: Sequence[Candidates]) -> list[Candidates]:
        """The candidates of each query with the scores of the reranker; a document is scored by its best known passage."""
        assert self.options.rerank
        top = self.rerank([single.known_rows() for single in candidates])
        for query, (single, count) in enumerate(zip(candidates, top.counts().tolist(), strict=True)):
            single.put(self.options.rerank.by, top, query, count)
        return list(candidates)

    def rerank(self, rows: Sequence[Int64s]) -> DocTopK:
        """The documents of some rows of each query, by the scores of the reranker."""
        assert self.reranker
        require_wanted()
        grid = np.full((len(rows), max((len(some) for some in rows), default=0)), -1, np.int64)
        for query, some in enumerate(rows):
            grid[query, : len(some)] = some
        return rank_rows(self._snapshot, grid, self.reranker.score(grid))

    def _scaled(self, candidates: Candidates, query: int, depth: int) -> Candidates:
        """The candidates with what the fusion needs to know of each lens."""
        exhausted = frozenset(name for name in self.names if int(candidates.ranks[name].max(initial=0)) < depth)
        scales = {name: 1 / (mass[query] or 1.0) for name, mass in self._token_mass.items()}
        spans = {name: scale.span(query) for name, scale in self.scales.items()} if self.fusion.damp else {}
        return Candidates(candidates.keys, candidates.ranks, candidates.scores, candidates.rows, scales, exhausted, spans)

    @cached_property
    def _token_mass(self) -> dict[str, Float64s]:
        if not self.fusion.per_token:
            return {}
        masses = {name: self._snapshot.searcher(name).token_mass(self.encoded[name]) for name in self.names}
        return {name: mass for name, mass in masses.items() if mass is not None}


def to_hits(snapshot: Snapshot, answers: Sequence[Sequence[RankedDoc]], offset: int = 0) -> list[list[Hit]]:
    """The hits of all queries; their documents are fetched together."""
    documents = snapshot.documents(list({doc.key for ranked in answers for doc in ranked}))
    places = snapshot.places(np.array([doc.row for ranked in answers for doc in ranked], np.int64))
    spans = zip(places.starts.tolist(), places.ends.tolist(), strict=True)
    return [
        [
            Hit(documents[doc.key].doc_id, rank, doc.score, documents[doc.key], doc.by_lens, *next(spans))
            for rank, doc in enumerate(ranked, start=offset + 1)
        ]
        for ranked in answers
    ]


def require_queries(queries: Sequence[str]) -> None:
    """Refuse queries that are not a list of texts."""
    if isinstance(queries, str):
        raise BadInput("queries is one string; expected a list of them: put it into a list")
    for number, query in enumerate(queries, start=1):
        require_query(f"query {number}", query)


def require_query(what: str, query: str) -> None:
    """Refuse a query that is not text."""
    if not isinstance(query, str):
        raise BadInput(f"{what} is {type(query).__name__}; expected a string")
    require_utf8(what, query)
    if not query.strip():
        raise BadInput(f"{what} is empty; expected some text")
