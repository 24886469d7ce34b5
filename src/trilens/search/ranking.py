"""Documents in the order in which one lens sees them: rows grouped back to their documents, best passage first."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trilens.encode.encoder import Encoded
from trilens.store.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Ranked:
    """A document by its key, with its best passage: which row that is, its score, and where it lies in the text."""

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

    Where documents have several passages, k rows may be fewer than k documents: more rows are fetched until there are
    enough, so that the first k are exactly those with the best passages.
    """
    fetched = min(2 * k if snapshot.has_passages else k, snapshot.rows)
    while True:
        top = snapshot.search(lens, queries, fetched, where, exact, params)
        ranked = group_rows(snapshot, top.rows, top.scores)
        short = any(len(documents) < k and top.rows[query, -1] >= 0 for query, documents in enumerate(ranked))
        if not short or fetched == snapshot.rows:
            return [documents[:k] for documents in ranked]
        fetched = min(2 * fetched, snapshot.rows)


def group_rows(snapshot: Snapshot, rows: NDArray[np.int64], scores: NDArray[np.float32]) -> list[list[Ranked]]:
    """The documents of the rows (queries, n) of each query, best first as the rows are; -1 stands for no row."""
    places = snapshot.places(rows)
    columns = (rows, scores, places.keys, places.starts, places.ends)
    return [_group(*(column[query] for column in columns)) for query in range(len(rows))]


def _group(*columns: Any) -> list[Ranked]:
    """The first row of each document."""
    best: dict[int, Ranked] = {}
    for row, score, key, start, end in zip(*(column.tolist() for column in columns), strict=True):
        if row >= 0 and key not in best:
            best[key] = Ranked(key, row, score, start, end)
    return list(best.values())
