"""Candidates of a cheap index, encoded at search time and put in order by what the model makes of them.

With the token index this is late-parametric search: the collection was never encoded, only the best candidates are.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from trilens.encode.folder import Head
from trilens.index.exact import exact_dense, exact_multi, exact_sparse
from trilens.index.topk import TopK
from trilens.index.weighing import weigh_docs, weigh_queries
from trilens.search.ranking import Ranked, group_rows
from trilens.store.lenses import Lenses
from trilens.store.snapshot import Snapshot

EXACT: dict[Head, Callable[[Any, Any, int], TopK]] = {
    "dense": exact_dense,
    "sparse": exact_sparse,
    "lexical": exact_sparse,
    "multi": exact_multi,
}
WEIGHED: tuple[Head, ...] = ("sparse", "lexical")


def encode_and_rank(
    snapshot: Snapshot, lenses: Lenses, head: Head, queries: Sequence[str], candidates: Sequence[Sequence[Ranked]]
) -> list[list[Ranked]]:
    """The candidates of each query by their exact score through a head of the model, ties by the smaller row."""
    rows = np.array(sorted({passage.row for found in candidates for passage in found}), np.int64)
    if not len(rows):
        return [[] for _ in queries]
    asked, passages = encode_both(lenses, head, queries, [text for _, _, text in snapshot.passages_at(rows)])
    found = []
    for query, wanted in enumerate(candidates):
        chosen = np.searchsorted(rows, sorted({passage.row for passage in wanted}))
        top = EXACT[head](asked.take(np.array([query])), passages.take(chosen), max(1, len(chosen)))
        met = np.isfinite(top.scores) & (top.rows >= 0)
        found += group_rows(snapshot, np.where(met, rows[chosen[top.rows]] if len(chosen) else -1, -1), top.scores)
    return found


def encode_both(lenses: Lenses, head: Head, queries: Sequence[str], texts: Sequence[str]) -> tuple[Any, Any]:
    """What is compared: queries and passages as a head of the model makes them, weighed as a lens of the collection would.

    But not by rarity: how many rows hold a term is known only of what the collection holds.
    """
    encoded = lenses.model.encode_queries(queries, [head])
    docs = lenses.model.encode_docs(texts, heads=[head])
    asked, passages = getattr(encoded, head), getattr(docs, head)
    if head in WEIGHED:
        passages = weigh_docs(docs, head, lenses.weighing)
        asked = weigh_queries(asked, encoded.bag, lenses.weighing) if head == "sparse" else asked
    return asked, passages
