"""Pseudo-relevance feedback: RM3 for BM25, mean of feedback vectors for sparse lenses.

A first search finds the feedback passages; each lens that can be expanded interpolates the query with terms of its passages
(`Searcher.expand`). Other lenses search the original query.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from trilens.encode.encoder import Encoded
from trilens.lenses.feedback import Expansion, FeedbackPassages
from trilens.lenses.registry import lens_type, lenses_with
from trilens.search.options import SearchOptions
from trilens.search.ranking import DocTopK, best_documents
from trilens.store.snapshot import Snapshot

ExpansionInfo = dict[str, Any]
"""What was added to one query: `method`, `original_weight`, `docs` and the weighted `terms`, or the `passage` of HyDE."""


def expand_queries(
    snapshot: Snapshot, encoded: Mapping[str, Encoded], options: SearchOptions
) -> tuple[dict[str, Encoded], dict[str, list[ExpansionInfo]]]:
    """The expanded queries, and for each lens that was expanded what was added to each query."""
    assert options.expand
    expanded: dict[str, Encoded] = dict(encoded)
    infos: dict[str, list[ExpansionInfo]] = {}
    for name in options.lenses or ():
        if name not in lenses_with("expansion"):
            continue
        params = options.params.get(name)
        top = best_documents(snapshot, name, encoded[name], options.expand.docs, options.filter, params=params)
        feedback = [_passages(snapshot, top, query, int(count)) for query, count in enumerate(top.counts())]
        expanded[name], added = snapshot.searcher(name).expand(encoded[name], feedback, options.expand, params)
        keys = [top.keys[query, : len(passages.rows)].tolist() for query, passages in enumerate(feedback)]
        method = lens_type(name).expansion
        infos[name] = [_info(method, options.expand, *pair, snapshot) for pair in zip(added, keys, strict=True)]
    return expanded, infos


def _passages(snapshot: Snapshot, top: DocTopK, query: int, count: int) -> FeedbackPassages:
    rows = top.rows[query, :count]

    def texts() -> list[str]:
        return [text for _, _, text in snapshot.passages_at(np.asarray(rows, np.int64))]

    return FeedbackPassages(rows.tolist(), top.scores[query, :count].tolist(), texts)


def _info(method: str, expansion: Expansion, terms: Mapping[str, float], keys: list[int], snapshot: Snapshot) -> ExpansionInfo:
    documents = snapshot.documents(keys)
    return {
        "method": method,
        "original_weight": expansion.weight,
        "docs": [documents[key].doc_id for key in keys],
        "terms": dict(sorted(terms.items(), key=lambda item: (-item[1], item[0]))),
    }
