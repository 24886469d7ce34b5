"""`DocTopK`: the best documents by one lens; rows are grouped by document, which ranks by its best passage."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trilens.encode.encoder import Encoded
from trilens.kernels.array_types import Float32s, Float64s, Int64s
from trilens.kernels.topk import first_of_each
from trilens.store.snapshot import Snapshot


@dataclass(frozen=True, eq=False, slots=True)
class DocTopK:
    """The documents of each query, best first, by key and by the row of their best passage.

    All arrays are (queries, n), padded with 0, -1 and -inf.
    """

    keys: Int64s
    rows: Int64s
    scores: Float32s

    @staticmethod
    def empty(queries: int, most: int) -> "DocTopK":
        """Room for `most` documents per query."""
        shape = (queries, most)
        return DocTopK(np.zeros(shape, np.int64), np.full(shape, -1, np.int64), np.full(shape, -np.inf, np.float32))

    def counts(self) -> Int64s:
        """Number of documents of each query."""
        counts: Int64s = (self.rows >= 0).sum(axis=1)
        return counts

    def put(self, queries: Int64s, other: "DocTopK") -> None:
        """Replace the documents of some queries by those of a deeper search."""
        width = other.rows.shape[1]
        self.keys[queries, :width], self.rows[queries, :width] = other.keys, other.rows
        self.scores[queries, :width] = other.scores


def best_documents(
    snapshot: Snapshot,
    lens: str,
    queries: Encoded,
    k: int,
    filter: Mapping[str, Any] | None = None,
    exact: bool = False,
    params: Any = None,
) -> DocTopK:
    """The k best documents of each query; fewer only if no more match.

    Where documents have several passages, k rows may belong to fewer than k documents: more rows are fetched for those
    queries until there are enough, so that the first k are exactly the documents with the best passages.
    """
    fetched = min(2 * k if snapshot.has_passages else k, snapshot.rows)
    top = snapshot.search(lens, queries, fetched, filter, exact, params)
    grouped = group_by_document(snapshot, top.rows, top.scores, k)
    unfinished = np.arange(len(top.rows))
    best = DocTopK.empty(len(unfinished), min(k, snapshot.rows))
    best.put(unfinished, grouped)
    while fetched < snapshot.rows:
        unfinished = unfinished[(grouped.counts() < k) & (top.rows[:, -1] >= 0)]
        if not len(unfinished):
            break
        fetched = min(2 * fetched, snapshot.rows)
        top = snapshot.search(lens, queries.take(unfinished), fetched, filter, exact, params)
        grouped = group_by_document(snapshot, top.rows, top.scores, k)
        best.put(unfinished, grouped)
    return best


def group_by_document(snapshot: Snapshot, rows: Int64s, scores: Float32s, most: int | None = None) -> DocTopK:
    """The first `most` documents of the rows (queries, n) of each query, which are ordered best first; -1 is no row."""
    keys = snapshot.keys_of(rows)
    first = first_of_each(keys, rows, rows.shape[1] if most is None else most)
    present, lines = first >= 0, np.arange(len(rows))[:, None]
    return DocTopK(
        np.where(present, keys[lines, first], 0),
        np.where(present, rows[lines, first], -1),
        np.where(present, scores[lines, first], np.float32(-np.inf)),
    )


def rank_rows(snapshot: Snapshot, rows: Int64s, scores: Float32s) -> DocTopK:
    """The documents of the rows (queries, n) by their scores; ties go to the earlier row, rows without a score are dropped."""
    order = np.argsort(-scores, axis=1, kind="stable")
    rows, scores = np.take_along_axis(rows, order, 1), np.take_along_axis(scores, order, 1)
    return group_by_document(snapshot, np.where(np.isfinite(scores), rows, -1), scores)


def best_passages(
    snapshot: Snapshot,
    lens: str,
    queries: Encoded,
    count: int,
    keys: Int64s,
    owners: Int64s,
    params: Any = None,
    filter: Mapping[str, Any] | None = None,
) -> tuple[Int64s, Float64s]:
    """Row and score of the best passage of given documents through a lens; -1 and NaN where the lens has no score.

    `owners` is the query of each document, ascending, among `count` queries; the keys of one query ascend. Ties go to the
    smaller row.
    """
    best_rows, best_scores = np.full(len(keys), -1, np.int64), np.full(len(keys), np.nan)
    rows, positions = snapshot.rows_of(keys)
    if not len(rows):
        return best_rows, best_scores
    order = np.argsort(owners[positions], kind="stable")  # the rows of each query ascend
    rows, positions = rows[order], positions[order]
    queries_of = owners[positions]
    columns = np.arange(len(rows)) - np.searchsorted(queries_of, queries_of)
    grid = np.full((count, int(columns.max()) + 1), -1, np.int64)
    grid[queries_of, columns] = rows
    allowed = snapshot.mask(filter) if filter else None
    scores = snapshot.searcher(lens).score(queries, grid, params, allowed)[queries_of, columns]
    order = np.argsort(-scores, kind="stable")[::-1]  # the best of a document is written last
    order = order[np.isfinite(scores[order])]
    best_rows[positions[order]], best_scores[positions[order]] = rows[order], scores[order]
    return best_rows, best_scores
