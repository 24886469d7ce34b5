"""Joins what the shards of a collection return for one query to what the whole collection returns."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from trilens.kernels.array_types import Float64s, Int64s
from trilens.search.candidates import Candidates


def join_candidates(
    parts: Sequence[Candidates], first_rows: Sequence[int], names: Sequence[str], depth: int, also: Iterable[int] = ()
) -> Candidates:
    """The candidates of the whole collection: the best `depth` documents of each lens among those of all shards.

    Each shard returns as many, so none is missed; ties go to the smaller key, as in one collection. `first_rows` are what the
    rows of each shard are numbered from. The documents `also` are kept in any case.
    """
    found = [(part, first) for part, first in zip(parts, first_rows, strict=True) if part.ranks]
    if not found:
        return Candidates(np.empty(0, np.int64), {}, {}, {})
    order = np.argsort(np.concatenate([part.keys for part, _ in found]), kind="stable")
    keys = np.concatenate([part.keys for part, _ in found])[order]
    joined = Candidates(keys, {}, {}, {}, found[0][0].scales)
    kept = np.isin(keys, np.array(sorted(also), np.int64))
    for name in names:
        scores = np.concatenate([part.scores[name] for part, _ in found])[order]
        returned = np.flatnonzero(np.concatenate([part.ranks[name] for part, _ in found])[order])
        best = returned[np.argsort(-scores[returned], kind="stable")][:depth]
        rows = np.concatenate([np.where(part.rows[name] < 0, -1, part.rows[name] + first) for part, first in found])[order]
        _put(joined, name, best, rows, scores)
        kept |= joined.ranks[name] > 0
    return _take(joined, np.flatnonzero(kept))


def with_ranking(candidates: Candidates, lens: str, keys: Int64s, rows: Int64s, scores: Float64s) -> Candidates:
    """The candidates with the order that a reranker gives some of them; ties go to the smaller key."""
    order = np.argsort(keys)
    places = np.searchsorted(candidates.keys, keys[order])
    all_rows, all_scores = np.full(len(candidates.keys), -1, np.int64), np.full(len(candidates.keys), np.nan)
    all_rows[places], all_scores[places] = rows[order], scores[order]
    joined = _take(candidates, np.arange(len(candidates.keys)))
    _put(joined, lens, places[np.argsort(-all_scores[places], kind="stable")], all_rows, all_scores)
    return joined


def within(candidates: Candidates, first_row: int, end: int) -> Candidates:
    """The candidates with the rows of one shard numbered as it numbers them, and those of the others unknown."""
    joined = _take(candidates, np.arange(len(candidates.keys)))
    for name, rows in candidates.rows.items():
        joined.rows[name] = np.where((rows >= first_row) & (rows < end), rows - first_row, -1)
    return joined


def _put(candidates: Candidates, name: str, best: Int64s, rows: Int64s, scores: Float64s) -> None:
    """Set what a lens says of the candidates, of which it returns `best`."""
    ranks = np.zeros(len(candidates.keys), np.int64)
    ranks[best] = np.arange(1, len(best) + 1)
    candidates.ranks[name], candidates.rows[name], candidates.scores[name] = ranks, rows, scores


def _take(candidates: Candidates, places: Int64s) -> Candidates:
    """Some of the candidates, in arrays that may be changed."""

    def at(column: Mapping[str, Any]) -> dict[str, Any]:
        return {name: values[places] for name, values in column.items()}

    ranks, scores, rows = at(candidates.ranks), at(candidates.scores), at(candidates.rows)
    return replace(candidates, keys=candidates.keys[places], ranks=ranks, scores=scores, rows=rows)
