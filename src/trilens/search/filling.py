"""Scores of documents that a lens did not return itself: each is asked for its best passage by that lens."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trilens.encode.encoder import Encoded
from trilens.errors import BadInput
from trilens.index.lens import RowScorer
from trilens.search.ranking import Ranked
from trilens.store.snapshot import Snapshot


def fill_scores(
    snapshot: Snapshot,
    lens: str,
    queries: Encoded,
    wanted: Sequence[Iterable[int]],
    params: Any | None = None,
    where: Mapping[str, Any] | None = None,
) -> list[dict[int, Ranked]]:
    """For each query the wanted documents (keys) by their best passage through a lens; ties go to the smaller row.

    A document that the lens cannot score, such as one without tokens, is left out.
    """
    sorted_keys = [sorted(keys) for keys in wanted]
    keys = np.array([key for some in sorted_keys for key in some], np.int64)
    owners = np.repeat(np.arange(len(sorted_keys)), [len(some) for some in sorted_keys])
    rows, scores = best_rows(snapshot, lens, queries, len(sorted_keys), keys, owners, params, where)
    places = snapshot.places(rows)
    filled: list[dict[int, Ranked]] = [{} for _ in sorted_keys]
    columns = [column.tolist() for column in (owners, keys, rows, scores, places.starts, places.ends)]
    for query, *one in zip(*columns, strict=True):
        ranked = Ranked(*one)
        if ranked.row >= 0:
            filled[query][ranked.key] = ranked
    return filled


def best_rows(
    snapshot: Snapshot,
    lens: str,
    queries: Encoded,
    count: int,
    keys: NDArray[np.int64],
    owners: NDArray[np.int64],
    params: Any | None = None,
    where: Mapping[str, Any] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Row and score of the best passage of each document for the query that wants it; -1 and NaN where it has no score.

    `owners` is the number of that query among `count`, ascending; the keys of one query ascend.
    """
    chosen, best = np.full(len(keys), -1, np.int64), np.full(len(keys), np.nan)
    rows, places = snapshot.rows_of(keys)
    if not len(rows):
        return chosen, best
    scorer = snapshot.searcher(lens)
    if not isinstance(scorer, RowScorer):
        raise BadInput(f"lens {lens!r} cannot score what others found; fuse with missing=worst or missing=zero")
    order = np.argsort(owners[places], kind="stable")  # the rows of each query ascend
    rows, places = rows[order], places[order]
    queries_of = owners[places]
    columns = np.arange(len(rows)) - np.searchsorted(queries_of, queries_of)
    asked = np.full((count, int(columns.max()) + 1), -1, np.int64)
    asked[queries_of, columns] = rows
    found = scorer.score(queries, asked, params, snapshot.mask(where) if where else None)[queries_of, columns]
    order = np.argsort(-found, kind="stable")[::-1]  # the best of a document comes last, and stays
    order = order[np.isfinite(found[order])]
    chosen[places[order]], best[places[order]] = rows[order], found[order]
    return chosen, best
