"""The candidates of some lenses, put in order by another one that is better but slower."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from trilens.encode.encoder import Encoded
from trilens.errors import BadInput
from trilens.index.lens import RowScorer
from trilens.search.ranking import Ranked, group_rows
from trilens.store.snapshot import Snapshot


def rerank_documents(
    snapshot: Snapshot, lens: str, queries: Encoded, candidates: Sequence[Sequence[Ranked]], params: Any | None = None
) -> list[list[Ranked]]:
    """The candidates of each query by their exact score through a lens, ties by the smaller row.

    A candidate is a passage; of several passages of one document the best counts. What the lens cannot score comes last and
    is left out.
    """
    scorer = snapshot.searcher(lens)
    if not isinstance(scorer, RowScorer):
        raise BadInput(f"lens {lens!r} cannot score what others found; expected another lens")
    most = max((len(found) for found in candidates), default=0)
    rows = np.full((len(candidates), most), -1, np.int64)
    for query, found in enumerate(candidates):
        passages = sorted({passage.row for passage in found})
        rows[query, : len(passages)] = passages
    scores = scorer.score(queries, rows, params)
    order = np.argsort(-scores, axis=1, kind="stable")
    rows, scores = np.take_along_axis(rows, order, 1), np.take_along_axis(scores, order, 1)
    return group_rows(snapshot, np.where(np.isfinite(scores), rows, -1), scores)
