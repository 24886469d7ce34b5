"""`Search`: a batch of queries against one snapshot, from encoding to ranked documents."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from trilens.cancellation import require_wanted
from trilens.encode.encoder import Encoded
from trilens.errors import BadInput
from trilens.kernels.array_types import Float32s, Float64s, Int64s
from trilens.lenses.lens import FEWEST_ROWS, Lens, ScoreScale
from trilens.lenses.registry import lens_type
from trilens.search.candidates import Candidates, gather, score_missing
from trilens.search.details import Details
from trilens.search.expansion import ExpansionInfo, expand_queries
from trilens.search.fusion import Fusion, RankedDoc, fuse, rank_alone, rank_by
from trilens.search.hits import Hit
from trilens.search.hyde import expand_with_passages
from trilens.search.options import SearchOptions
from trilens.search.ranking import DocTopK, best_documents, best_passages, rank_rows
from trilens.store.lens_set import LensSet
from trilens.store.snapshot import Snapshot
from trilens.text.document import require_utf8

NO_KEYS: Int64s = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False, slots=True)
class Prepared:
    """What a search of a part of a collection takes over from the search of the whole: encoded queries, and their scales."""

    encoded: Mapping[str, Encoded]
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
        _require_queries(queries)
        self._snapshot = snapshot
        self._lenses = lenses
        self._prepared = prepared
        self.queries = list(queries)
        self.options = options.resolve(lenses.names, snapshot.tuned, lambda: lenses.model.fusions)
        self.late: Lens | None = lenses.late(self.options.rerank) if self.options.rerank else None
        if self.late and self.options.rerank in self.options.params:
            raise BadInput(
                f"params are given for {self.options.rerank}, which encodes the candidates at query time; leave them out"
            )
        for name in self.read_lenses:
            _ = lenses[name]  # an unknown lens is an error even where there is nothing to search

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
        return [name for name in self.options.used_lenses if name != self.options.rerank or not self.late or name in self.names]

    @cached_property
    def _encoded(self) -> tuple[dict[str, Encoded], dict[str, list[ExpansionInfo]]]:
        if self._prepared:
            return dict(self._prepared.encoded), {}
        encoded = self._lenses.encode_queries(self.read_lenses, self.queries, self.options.params)
        infos: dict[str, list[ExpansionInfo]] = {}
        if self.options.hyde:
            encoded, infos = expand_with_passages(self._lenses, encoded, self.queries, self.options.hyde)
        if self.options.expand:
            encoded, feedback_infos = expand_queries(self._snapshot, encoded, self.options)
            infos = infos | feedback_infos
        return encoded, infos

    @property
    def encoded(self) -> Mapping[str, Encoded]:
        """The queries as each lens searches them, expanded if the options say so."""
        return self._encoded[0]

    @property
    def expansions(self) -> Mapping[str, list[ExpansionInfo]]:
        """Expansion info of each query, by lens."""
        return self._encoded[1]

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
        """The candidates of one query in order: by the re-ranking lens, the only lens, or the fusion."""
        if self.options.rerank or self._alone:
            return rank_by(self.options.rerank or self.names[0], candidates, most)
        return fuse(self.fusion, candidates, most)

    def candidates(self, also: Iterable[int] = ()) -> list[Candidates]:
        """The union of what the lenses return for each query; the documents `also` are candidates in any case."""
        if not self.queries or not self._snapshot.rows:
            return [Candidates(NO_KEYS, {}, {}, {}) for _ in self.queries]
        returned = self.returned()
        extra = np.array(sorted(set(also)), np.int64)
        if self.options.rerank:
            rows = [np.concatenate([top.rows[query] for top in returned.values()]) for query in range(len(self.queries))]
            returned[self.options.rerank] = self.rerank([np.unique(single[single >= 0]) for single in rows])
            return gather(returned, NO_KEYS)
        candidates = gather(returned, extra)
        if self._alone:
            return candidates
        fills = self.fusion.missing == "exact"
        if fills or len(extra):
            score_missing(candidates, self.names, None if fills else extra, self.best_passages)
        return [self._scaled(single, query, self.depth) for query, single in enumerate(candidates)]

    def returned(self) -> dict[str, DocTopK]:
        """The best documents of each query by each lens that is searched."""
        return {name: self._best_documents(name, self.depth) for name in self.names}

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

    def rerank(self, rows: Sequence[Int64s]) -> DocTopK:
        """The documents of the candidate rows of each query, by their exact scores through the re-ranking lens."""
        assert self.options.rerank
        require_wanted()
        grid = np.full((len(rows), max((len(single) for single in rows), default=0)), -1, np.int64)
        for query, single in enumerate(rows):
            grid[query, : len(single)] = single
        if self.late:
            scores = self._late_scores(self.late, grid)
        else:
            searcher = self._snapshot.searcher(self.options.rerank)
            scores = searcher.score(self.encoded[self.options.rerank], grid, self.rerank_params)
        return rank_rows(self._snapshot, grid, scores)

    @property
    def rerank_params(self) -> Any:
        """The parameters of the re-ranking lens, if they change exact scores."""
        name = self.options.rerank
        return self.options.params.get(name) if name and lens_type(name).score_params else None

    def _late_scores(self, lens: Lens, grid: Int64s) -> Float32s:
        """Scores of rows, computed by the re-ranking lens at query time."""
        rows = np.unique(grid[grid >= 0])
        scores = np.full(grid.shape, -np.inf, np.float32)
        if len(rows):
            texts = [text for _, _, text in self._snapshot.passages_at(rows)]
            all_scores = lens.score_texts(self.queries, texts)
            columns = np.searchsorted(rows, np.maximum(grid, rows[0]))
            scores = np.where(grid >= 0, np.take_along_axis(all_scores, columns, 1), scores)
        return scores

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


def _require_queries(queries: Sequence[str]) -> None:
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
