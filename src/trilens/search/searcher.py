"""Queries through lenses to hits."""

from collections.abc import Mapping, Sequence
from typing import Any

from trilens.errors import BadInput
from trilens.search.fusion import reciprocal_rank_fusion
from trilens.search.hits import Hit, LensScore
from trilens.search.late import encode_and_rank
from trilens.search.ranking import Ranked, rank_documents
from trilens.search.reranking import rerank_documents
from trilens.store.filters import to_sql
from trilens.store.lenses import Lenses
from trilens.store.snapshot import Snapshot
from trilens.text.document import require_utf8

FUSION_DEPTH = 100  # documents of each lens that take part in a fusion, at least
MOST_HITS = 1_000_000


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
) -> list[list[Hit]]:
    """The best k documents of each query: by the score of a single lens, or by the fused ranks of several.

    With `rerank`, the candidates of all lenses are put in order by the score of that lens. If the collection does not hold it
    but its model can make it, the candidates are encoded there and then.
    """
    _require(queries, k, names)
    late = lenses.late_head(rerank) if rerank else None
    used = list(dict.fromkeys([*names, rerank])) if rerank and not late else list(names)
    for name in used:
        _ = lenses[name]  # an unknown one is an error even when there is nothing to search
    if where:
        to_sql(where)  # a bad filter too
    if not queries or not snapshot.rows:
        return [[] for _ in queries]
    depth = k if not rerank and len(names) == 1 else max(k, FUSION_DEPTH)
    settings = params or {}
    encoded = lenses.encode_queries(used, list(queries), settings)
    by_lens = {name: rank_documents(snapshot, name, encoded[name], depth, where, exact, settings.get(name)) for name in names}
    if rerank:
        candidates = [[found for ranking in by_lens.values() for found in ranking[query]] for query in range(len(queries))]
        by_lens[rerank] = (
            encode_and_rank(snapshot, lenses, late, queries, candidates)
            if late
            else rerank_documents(snapshot, rerank, encoded[rerank], candidates)
        )
    rankings = ({name: ranking[query] for name, ranking in by_lens.items()} for query in range(len(queries)))
    return [_hits(snapshot, found, k, rerank) for found in rankings]


def _hits(snapshot: Snapshot, rankings: Mapping[str, list[Ranked]], k: int, decides: str | None) -> list[Hit]:
    if decides or len(rankings) == 1:
        deciding = rankings[decides] if decides else next(iter(rankings.values()))
        order = [(found.key, found.score) for found in deciding]
    else:
        order = reciprocal_rank_fusion({name: [found.key for found in ranking] for name, ranking in rankings.items()})
    places = {
        name: {found.key: (rank, found) for rank, found in enumerate(ranking, start=1)} for name, ranking in rankings.items()
    }
    documents = snapshot.documents([key for key, _ in order[:k]])
    hits = []
    for rank, (key, score) in enumerate(order[:k], start=1):
        seen = {name: found[key] for name, found in places.items() if key in found}
        _, best = min(seen.values(), key=lambda item: item[0])
        by_lens = {name: LensScore(found.score, place) for name, (place, found) in seen.items()}
        hits.append(Hit(documents[key].doc_id, rank, score, documents[key], by_lens, best.start, best.end))
    return hits


def _require(queries: Sequence[str], k: int, names: Sequence[str]) -> None:
    if isinstance(queries, str):
        raise BadInput("queries is one string; expected a list of them: put it into a list")
    if not 1 <= k <= MOST_HITS:
        raise BadInput(f"k is {k}; expected from 1 to {MOST_HITS}")
    if isinstance(names, str) or not names:
        raise BadInput(f"lenses are {names!r}; expected a list with at least one name")
    if len(set(names)) != len(names):
        raise BadInput(f"lenses are {', '.join(names)}; expected each of them once")
    for number, query in enumerate(queries, start=1):
        if not isinstance(query, str):
            raise BadInput(f"query {number} is {type(query).__name__}; expected a string")
        require_utf8(f"query {number}", query)
        if not query.strip():
            raise BadInput(f"query {number} is empty; expected some text")
