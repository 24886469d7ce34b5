"""Documents in the order in which one lens sees them: rows grouped back to their documents, best passage first."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trilens.encode.encoder import Encoded
from trilens.kernels.topk import first_of_each
from trilens.store.snapshot import Snapshot


class Ranked(NamedTuple):
    """A document by its key, with its best passage: which row that is, its score, and where it lies in the text."""

    key: int
    row: int
    score: float
    start: int
    end: int


@dataclass(frozen=True, eq=False, slots=True)
class Best:
    """The documents of each query, best first, by key and by the row of their best passage.

    All arrays are (queries, n), padded with 0, -1 and -inf.
    """

    keys: NDArray[np.int64]
    rows: NDArray[np.int64]
    scores: NDArray[np.float32]

    @staticmethod
    def none(queries: int, most: int) -> "Best":
        """Room for so many documents."""
        shape = (queries, most)
        return Best(np.zeros(shape, np.int64), np.full(shape, -1, np.int64), np.full(shape, -np.inf, np.float32))

    def counts(self) -> NDArray[np.int64]:
        """How many documents each query has."""
        counts: NDArray[np.int64] = (self.rows >= 0).sum(axis=1)
        return counts

    def put(self, queries: NDArray[np.int64], other: "Best") -> None:
        """Take over what another search found for these queries; it found no fewer."""
        width = other.rows.shape[1]
        self.keys[queries, :width], self.rows[queries, :width] = other.keys, other.rows
        self.scores[queries, :width] = other.scores

    def ranked(self, snapshot: Snapshot) -> list[list[Ranked]]:
        """The documents as a list for each query."""
        places = snapshot.places(self.rows)
        columns = [column.tolist() for column in (self.keys, self.rows, self.scores, places.starts, places.ends)]
        return [[one for one in map(Ranked, *lines) if one.row >= 0] for lines in zip(*columns, strict=True)]


def best_documents(
    snapshot: Snapshot,
    lens: str,
    queries: Encoded,
    k: int,
    where: Mapping[str, Any] | None = None,
    exact: bool = False,
    params: Any | None = None,
) -> Best:
    """The best k documents of each query; fewer only if no more match.

    Where documents have several passages, k rows may be fewer than k documents: more rows are fetched for the queries that
    need them until there are enough, so that the first k are exactly those with the best passages.
    """
    fetched = min(2 * k if snapshot.has_passages else k, snapshot.rows)
    top = snapshot.search(lens, queries, fetched, where, exact, params)
    found = group_best(snapshot, top.rows, top.scores, k)
    asked = np.arange(len(top.rows))
    best = Best.none(len(asked), min(k, snapshot.rows))
    best.put(asked, found)
    while fetched < snapshot.rows:
        asked = asked[(found.counts() < k) & (top.rows[:, -1] >= 0)]
        if not len(asked):
            break
        fetched = min(2 * fetched, snapshot.rows)
        top = snapshot.search(lens, queries.take(asked), fetched, where, exact, params)
        found = group_best(snapshot, top.rows, top.scores, k)
        best.put(asked, found)
    return best


def group_rows(snapshot: Snapshot, rows: NDArray[np.int64], scores: NDArray[np.float32]) -> list[list[Ranked]]:
    """The documents of the rows (queries, n) of each query, best first as the rows are, as lists; -1 is no row."""
    return group_best(snapshot, rows, scores, rows.shape[1]).ranked(snapshot)


def group_best(snapshot: Snapshot, rows: NDArray[np.int64], scores: NDArray[np.float32], most: int) -> Best:
    """The first `most` documents of the rows (queries, n) of each query, best first as the rows are; -1 is no row."""
    keys = snapshot.keys_of(rows)
    places = first_of_each(keys, rows, most)
    here, lines = places >= 0, np.arange(len(rows))[:, None]
    return Best(
        np.where(here, keys[lines, places], 0),
        np.where(here, rows[lines, places], -1),
        np.where(here, scores[lines, places], np.float32(-np.inf)),
    )
