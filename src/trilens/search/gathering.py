"""The candidates of several lenses: the union of what they return, and what each says of those that it missed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trilens.search.ranking import Best

Ints = NDArray[np.int64]
UNRANKED = np.iinfo(np.int64).max
Fill = Callable[[str, Ints, Ints], tuple[Ints, NDArray[np.float64]]]
"""Rows and scores of the best passages through a lens, of documents by key, each for the query that wants it."""


@dataclass(frozen=True, eq=False, slots=True)
class Gathered:
    """The candidates of one query, by ascending key, and by lens: rank (0 where it did not return them), score, best row."""

    keys: Ints
    ranks: dict[str, Ints]
    scores: dict[str, NDArray[np.float64]]
    rows: dict[str, Ints]

    def best_rows(self, keys: Sequence[int]) -> list[int]:
        """For some of the candidates the row by which the lens that ranks them highest saw them, -1 if none did."""
        at = np.searchsorted(self.keys, keys)
        rows, lowest = np.full(len(at), -1, np.int64), np.full(len(at), UNRANKED)
        for name in self.rows:
            ranks, seen = self.ranks[name][at], self.rows[name][at]
            ranks = np.where(ranks > 0, ranks, UNRANKED)
            better = (seen >= 0) & ((rows < 0) | (ranks < lowest))
            rows, lowest = np.where(better, seen, rows), np.where(better, ranks, lowest)
        return [int(row) for row in rows]


def gather(found: Mapping[str, Best], also: Ints) -> list[Gathered]:
    """The candidates of each query; `also` are documents (ascending keys) that are candidates of all."""
    counts = {name: best.counts().tolist() for name, best in found.items()}
    queries = range(len(next(iter(counts.values()))))
    return [_gather_one({name: (best, counts[name][query]) for name, best in found.items()}, query, also) for query in queries]


def _gather_one(found: Mapping[str, tuple[Best, int]], query: int, also: Ints) -> Gathered:
    keys = np.unique(np.concatenate([also, *(best.keys[query, :count] for best, count in found.values())]))
    gathered = Gathered(keys, {}, {}, {})
    for name, (best, count) in found.items():
        at = np.searchsorted(keys, best.keys[query, :count])
        ranks, rows, scores = np.zeros(len(keys), np.int64), np.full(len(keys), -1, np.int64), np.full(len(keys), np.nan)
        ranks[at], rows[at], scores[at] = np.arange(1, count + 1), best.rows[query, :count], best.scores[query, :count]
        gathered.ranks[name], gathered.rows[name], gathered.scores[name] = ranks, rows, scores
    return gathered


def fill_missing(gathered: Sequence[Gathered], names: Sequence[str], only: Ints | None, fill: Fill) -> None:
    """Let each lens score the candidates that it did not return: all of them, or only some documents."""
    for name in names:
        lacking = [np.flatnonzero(one.ranks[name] == 0) for one in gathered]
        if only is not None:
            lacking = [at[np.isin(one.keys[at], only)] for one, at in zip(gathered, lacking, strict=True)]
        keys = np.concatenate([one.keys[at] for one, at in zip(gathered, lacking, strict=True)])
        ends = np.cumsum([len(at) for at in lacking])
        rows, scores = fill(name, keys, np.repeat(np.arange(len(lacking)), [len(at) for at in lacking]))
        for one, at, end in zip(gathered, lacking, ends.tolist(), strict=True):
            one.rows[name][at], one.scores[name][at] = rows[end - len(at) : end], scores[end - len(at) : end]
