"""Documents in the order in which one lens sees them: rows grouped back to their documents, best passage first."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trilens.encode.encoder import Encoded
from trilens.store.snapshot import Snapshot


class Ranked(NamedTuple):
    """A document by its key, with its best passage: which row that is, its score, and where it lies in the text.

    A tuple, since a search makes hundreds of them for each query.
    """

    key: int
    row: int
    score: float
    start: int
    end: int


def rank_documents(
    snapshot: Snapshot,
    lens: str,
    queries: Encoded,
    k: int,
    where: Mapping[str, Any] | None = None,
    exact: bool = False,
    params: Any | None = None,
) -> list[list[Ranked]]:
    """The best k documents of each query; fewer only if no more match.

    Where documents have several passages, k rows may be fewer than k documents: more rows are fetched for the queries that
    need them until there are enough, so that the first k are exactly those with the best passages.
    """
    fetched = min(2 * k if snapshot.has_passages else k, snapshot.rows)
    top = snapshot.search(lens, queries, fetched, where, exact, params)
    ranked = group_rows(snapshot, top.rows, top.scores, k)
    asked = np.arange(len(ranked))
    while fetched < snapshot.rows:
        short = np.array([len(ranked[query]) < k for query in asked], np.bool_)
        asked = asked[short & (top.rows[:, -1] >= 0)]
        if not len(asked):
            break
        fetched = min(2 * fetched, snapshot.rows)
        top = snapshot.search(lens, queries.take(asked), fetched, where, exact, params)
        for query, documents in zip(asked, group_rows(snapshot, top.rows, top.scores, k), strict=True):
            ranked[query] = documents
    return ranked


def group_rows(
    snapshot: Snapshot, rows: NDArray[np.int64], scores: NDArray[np.float32], most: int | None = None
) -> list[list[Ranked]]:
    """The documents of the rows (queries, n) of each query, or the first `most`, best first as the rows are; -1 is no row."""
    places = snapshot.places(rows)
    columns = [column.tolist() for column in (places.keys, rows, scores, places.starts, places.ends)]
    return [_group(most, *one) for one in zip(*columns, strict=True)]


def _group(most: int | None, *columns: list[Any]) -> list[Ranked]:
    """The first row of each document."""
    best: dict[int, Ranked] = {}
    for one in map(Ranked, *columns):
        if one.row >= 0 and one.key not in best:
            if len(best) == most:
                break
            best[one.key] = one
    return list(best.values())
