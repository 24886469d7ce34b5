"""Scores of documents that a lens did not return itself: each is asked for its best passage by that lens."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from trilens.encode.encoder import Encoded
from trilens.errors import BadInput
from trilens.index.lens import RowScorer
from trilens.search.ranking import Ranked, group_rows
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
    rows_of = [snapshot.rows_of(np.array(sorted(keys), np.int64))[0] for keys in wanted]
    most = max((len(rows) for rows in rows_of), default=0)
    if not most:
        return [{} for _ in wanted]
    scorer = snapshot.searcher(lens)
    if not isinstance(scorer, RowScorer):
        raise BadInput(f"lens {lens!r} cannot score what others found; fuse with missing=worst or missing=zero")
    rows = np.full((len(rows_of), most), -1, np.int64)
    for query, found in enumerate(rows_of):
        rows[query, : len(found)] = np.sort(found)
    scores = scorer.score(queries, rows, params, snapshot.mask(where) if where else None)
    order = np.argsort(-scores, axis=1, kind="stable")
    rows, scores = np.take_along_axis(rows, order, 1), np.take_along_axis(scores, order, 1)
    ranked = group_rows(snapshot, np.where(np.isfinite(scores), rows, -1), scores)
    return [{one.key: one for one in documents} for documents in ranked]
