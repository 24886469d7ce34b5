"""Queries through lenses to hits."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trilens.encode.encoder import Encoded
from trilens.encode.folder import Head
from trilens.errors import BadInput
from trilens.index.sparse_params import SparseParams
from trilens.search.expansion import Feedback, Told, expand_queries
from trilens.search.filling import best_rows
from trilens.search.fusion import Candidates, Column, Fused, Fusion, Scores, Seen, fuse_columns
from trilens.search.gathering import Gathered, Ints, fill_missing, gather
from trilens.search.hits import Hit, LensScore
from trilens.search.hyde import Hyde, expand_with_passages
from trilens.search.late import encode_and_rank
from trilens.search.ranking import Ranked, best_documents
from trilens.search.reranking import rerank_documents
from trilens.store.filters import to_sql
from trilens.store.lenses import Lenses
from trilens.store.snapshot import Snapshot
from trilens.text.document import require_utf8

MOST_HITS = 1_000_000
DEFAULT = Fusion()


@dataclass(frozen=True, slots=True)
class Plan:
    """How queries are answered: see `search`."""

    names: Sequence[str]
    k: int
    where: Mapping[str, Any] | None = None
    exact: bool = False
    rerank: str | None = None
    params: Mapping[str, Any] | None = None
    fusion: Fusion = DEFAULT
    feedback: Feedback | None = None
    hyde: Hyde | None = None

    @property
    def depth(self) -> int:
        """How many documents each of several lenses returns."""
        return max(self.k, self.fusion.depth)

    def settings(self, lens: str) -> Any | None:
        """The params of one lens."""
        return (self.params or {}).get(lens)

    @property
    def rerank_settings(self) -> SparseParams | None:
        """A bag of tokens stays one; but what re-ranks scores in full, however a search of its own would approximate."""
        settings = self.settings(self.rerank) if self.rerank else None
        return settings if isinstance(settings, SparseParams) else None


@dataclass(frozen=True, slots=True)
class Answer:
    """The candidates of one query in order, and the row of the best passage of each, -1 if no lens saw one.

    The best passage is that of the lens that ranks the document highest.
    """

    order: list[Fused]
    rows: list[int]


def search(
    snapshot: Snapshot,
    lenses: Lenses,
    queries: Sequence[str],
    k: int,
    names: Sequence[str],
    where: Mapping[str, Any] | None = None,
    exact: bool = False,
    rerank: str | None = None,
    params: Mapping[str, Any] | None = None,
    fusion: Fusion = DEFAULT,
    feedback: Feedback | None = None,
    hyde: Hyde | None = None,
) -> list[list[Hit]]:
    """The best k documents of each query: by the score of a single lens, or by the fusion of several.

    With `rerank`, the candidates of all lenses are put in order by the score of that lens. If the collection does not hold it
    but a lens that it holds has the same head (`sparse` over `tokens`), the candidates are encoded there and then.
    `feedback` and `hyde` expand the queries first.
    """
    plan = Plan(names, k, where, exact, rerank or fusion.rerank, params, fusion, feedback, hyde)
    _require(queries, plan)
    late = late_head(lenses, plan)
    if not queries or not snapshot.rows:
        return [[] for _ in queries]
    encoded, _ = encode_and_expand(snapshot, lenses, queries, plan, used_lenses(plan, late))
    answers = find(snapshot, lenses, queries, encoded, plan, late, most=k)
    return _hits(snapshot, answers)


def candidates(
    snapshot: Snapshot, lenses: Lenses, queries: Sequence[str], plan: Plan
) -> list[tuple[dict[str, Candidates], dict[int, str]]]:
    """What the lenses of a plan say of the candidates of each query, before any fusion, and the ids of the documents."""
    _require(queries, plan)
    late_head(lenses, plan)
    if not queries or not snapshot.rows:
        return [({name: Candidates({}) for name in plan.names}, {}) for _ in queries]
    answers = find(snapshot, lenses, queries, lenses.encode_queries(plan.names, list(queries), plan.params), plan)
    found = []
    for answer in answers:
        by_lens = {}
        for name in plan.names:
            seen = {one.key: one.by_lens[name] for one in answer.order if name in one.by_lens}
            ranked = sorted((one.rank, key) for key, one in seen.items() if one.rank is not None)
            filled = {key: one.score for key, one in seen.items() if one.rank is None}
            by_lens[name] = Candidates({key: seen[key].score for _, key in ranked}, filled, exhausted=len(ranked) < plan.depth)
        documents = snapshot.documents([one.key for one in answer.order])
        found.append((by_lens, {key: document.doc_id for key, document in documents.items()}))
    return found


def encode_and_expand(
    snapshot: Snapshot, lenses: Lenses, queries: Sequence[str], plan: Plan, names: Sequence[str]
) -> tuple[dict[str, Encoded], dict[str, list[Told]]]:
    """The queries as each lens wants them, expanded if the plan says so, and by lens what was added to each query."""
    encoded = lenses.encode_queries(names, list(queries), plan.params)
    told: dict[str, list[Told]] = {}
    if plan.hyde:
        encoded, told = expand_with_passages(lenses, encoded, queries, names, plan.hyde)
    if plan.feedback:
        encoded, more = expand_queries(snapshot, lenses, encoded, plan.names, plan.feedback, plan.where, plan.params)
        told |= more
    return encoded, told


def find(
    snapshot: Snapshot,
    lenses: Lenses,
    queries: Sequence[str],
    encoded: Mapping[str, Encoded],
    plan: Plan,
    late: Head | None = None,
    also: Iterable[int] = (),
    most: int | None = None,
) -> list[Answer]:
    """All candidates of each query, or the first `most`; `also` are documents that count as candidates whoever returns them."""
    alone = len(plan.names) == 1 and not plan.rerank
    depth = plan.k if alone else plan.depth
    found = {
        name: best_documents(snapshot, name, encoded[name], depth, plan.where, plan.exact, plan.settings(name))
        for name in plan.names
    }
    if plan.rerank or alone:
        ranked = {name: best.ranked(snapshot) for name, best in found.items()}
        if plan.rerank:
            candidates = [[one for ranking in ranked.values() for one in ranking[query]] for query in range(len(queries))]
            ranked[plan.rerank] = rerank_candidates(snapshot, lenses, queries, encoded, candidates, plan, late)
        by = plan.rerank or plan.names[0]
        return [_decided({name: ranking[query] for name, ranking in ranked.items()}, by, most) for query in range(len(queries))]

    def fill(name: str, keys: Ints, owners: Ints) -> tuple[Ints, Scores]:
        asked = (encoded[name], len(queries), keys, owners, plan.settings(name), plan.where)
        return best_rows(snapshot, name, *asked)

    extra = np.array(sorted(set(also)), np.int64)
    gathered = gather(found, extra)
    fills = plan.fusion.missing == "exact"
    if fills or len(extra):
        fill_missing(gathered, plan.names, None if fills else extra, fill)
    return [_fused(plan, encoded, query, one, most) for query, one in enumerate(gathered)]


def rerank_candidates(
    snapshot: Snapshot,
    lenses: Lenses,
    queries: Sequence[str],
    encoded: Mapping[str, Encoded],
    candidates: Sequence[Sequence[Ranked]],
    plan: Plan,
    late: Head | None,
) -> list[list[Ranked]]:
    """The candidates of each query in the order of the plan's re-ranking lens."""
    assert plan.rerank
    if late:
        return encode_and_rank(snapshot, lenses, late, queries, candidates)
    return rerank_documents(snapshot, plan.rerank, encoded[plan.rerank], candidates, plan.rerank_settings)


def _decided(rankings: Mapping[str, list[Ranked]], by: str, most: int | None) -> Answer:
    """The order of one lens, whose score is the score; the others are told."""
    passages = {name: {one.key: one for one in ranking} for name, ranking in rankings.items()}
    ranks = {name: {one.key: rank for rank, one in enumerate(ranking, start=1)} for name, ranking in rankings.items()}
    order, rows = [], []
    for one in rankings[by][:most]:
        seen = {
            name: Seen(places[one.key].score, ranks[name][one.key], one.score if name == by else 0.0)
            for name, places in passages.items()
            if one.key in places
        }
        order.append(Fused(one.key, one.score, seen))
        rows.append(passages[min(seen, key=lambda name: ranks[name][one.key])][one.key].row)
    return Answer(order, rows)


def _fused(plan: Plan, encoded: Mapping[str, Encoded], query: int, gathered: Gathered, most: int | None) -> Answer:
    columns = {
        name: Column(
            gathered.scores[name],
            gathered.ranks[name],
            _scale(plan.fusion, name, encoded[name], query),
            exhausted=int(gathered.ranks[name].max(initial=0)) < plan.depth,
        )
        for name in plan.names
    }
    order = fuse_columns(plan.fusion, gathered.keys, columns, most)
    return Answer(order, gathered.best_rows([one.key for one in order]))


def _scale(fusion: Fusion, lens: str, encoded: Encoded, query: int) -> float:
    """What makes MaxSim, a sum over the query's tokens, their mean; tokens that have weights count by them."""
    if not fusion.per_token or lens != "multi" or encoded.multi is None:
        return 1.0
    return 1 / (float(encoded.multi.take(np.array([query])).sizes()[0]) or 1.0)


def _hits(snapshot: Snapshot, answers: Sequence[Answer]) -> list[list[Hit]]:
    """The documents of all queries are fetched together."""
    documents = snapshot.documents(list({one.key for answer in answers for one in answer.order}))
    places = snapshot.places(np.array([row for answer in answers for row in answer.rows], np.int64))
    spans = zip(places.starts.tolist(), places.ends.tolist(), strict=True)
    return [
        [
            Hit(documents[one.key].doc_id, rank, one.score, documents[one.key], _told(one), *next(spans))
            for rank, one in enumerate(answer.order, start=1)
        ]
        for answer in answers
    ]


def _told(one: Fused) -> dict[str, LensScore]:
    return {name: LensScore(seen.score, seen.rank, seen.contribution) for name, seen in one.by_lens.items()}


def used_lenses(plan: Plan, late: Head | None) -> list[str]:
    """The lenses that have to read the queries."""
    return list(dict.fromkeys([*plan.names, *([plan.rerank] if plan.rerank and not late else [])]))


def late_head(lenses: Lenses, plan: Plan) -> Head | None:
    """The head that makes the re-ranking lens, if the collection does not hold it. Refuses what the collection cannot do."""
    late = lenses.late_head(plan.rerank) if plan.rerank else None
    for name in used_lenses(plan, late):
        _ = lenses[name]  # an unknown one is an error even when there is nothing to search
    if len(plan.names) > 1:
        plan.fusion.require_lenses(plan.names)
    if plan.where:
        to_sql(plan.where)  # a bad filter too
    return late


def _require(queries: Sequence[str], plan: Plan) -> None:
    if isinstance(queries, str):
        raise BadInput("queries is one string; expected a list of them: put it into a list")
    if not 1 <= plan.k <= MOST_HITS:
        raise BadInput(f"k is {plan.k}; expected from 1 to {MOST_HITS}")
    names = plan.names
    if isinstance(names, str) or not names:
        raise BadInput(f"lenses are {names!r}; expected a list with at least one name")
    if len(set(names)) != len(names):
        raise BadInput(f"lenses are {', '.join(names)}; expected each of them once")
    for number, query in enumerate(queries, start=1):
        require_query(f"query {number}", query)


def require_query(what: str, query: str) -> None:
    """Refuse what is no text."""
    if not isinstance(query, str):
        raise BadInput(f"{what} is {type(query).__name__}; expected a string")
    require_utf8(what, query)
    if not query.strip():
        raise BadInput(f"{what} is empty; expected some text")
