"""`Candidates`: the documents that several lenses return for one query, with the rank, score and best passage of each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from trilens.kernels.array_types import Float64s, Int64s
from trilens.search.ranking import DocTopK

UNRANKED = np.iinfo(np.int64).max
ScoreDocs = Callable[[str, Int64s, Int64s], tuple[Int64s, Float64s]]
"""Rows and scores of the best passages through a lens: (lens, document keys, query of each) → (rows, scores)."""


@dataclass(frozen=True, eq=False, slots=True)
class Candidates:
    """The candidates of one query by ascending key, and for each lens aligned arrays over them.

    ranks      0 where the lens did not return the candidate
    scores     NaN where the lens has no score for it
    rows       its best passage, -1 where unknown
    scales     by lens, what its scores are multiplied by before they are compared
    exhausted  the lenses that returned all documents that match the query, so that the others were not missed
    spans      by lens that can tell, the score that means nothing and the way from there to a match (`ScoreScale.span`)
    """

    keys: Int64s
    ranks: dict[str, Int64s]
    scores: dict[str, Float64s]
    rows: dict[str, Int64s]
    scales: Mapping[str, float] = field(default_factory=dict)
    exhausted: frozenset[str] = frozenset()
    spans: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def through(self, lenses: Sequence[str]) -> "Candidates":
        """The candidates of a search through some of the lenses: those that one of them returned."""
        return self.take(np.flatnonzero(np.any([self.ranks[name] > 0 for name in lenses], axis=0)), lenses)

    def take(self, positions: Int64s, lenses: Sequence[str] | None = None) -> "Candidates":
        """Some of the candidates, by ascending position, through some of the lenses (None: all)."""
        names = [*self.ranks] if lenses is None else lenses
        ranks, scores, rows = (
            {name: column[name][positions] for name in names} for column in (self.ranks, self.scores, self.rows)
        )
        return replace(self, keys=self.keys[positions], ranks=ranks, scores=scores, rows=rows)  # type: ignore[arg-type]

    def known_rows(self) -> Int64s:
        """The passages that the lenses know of the candidates, ascending."""
        rows = np.unique(np.concatenate([*self.rows.values()]))
        return rows[rows >= 0]

    def add(self, name: str, ranks: Int64s, rows: Int64s, scores: Float64s) -> None:
        """Add what one more lens or stage says of the candidates."""
        self.ranks[name], self.rows[name], self.scores[name] = ranks, rows, scores

    def put(self, name: str, top: DocTopK, query: int, count: int) -> None:
        """Add the documents that a lens returned for a query, of which there are `count`, all among the candidates."""
        positions = np.searchsorted(self.keys, top.keys[query, :count])
        ranks, rows = np.zeros(len(self.keys), np.int64), np.full(len(self.keys), -1, np.int64)
        scores = np.full(len(self.keys), np.nan)
        ranks[positions], rows[positions] = np.arange(1, count + 1), top.rows[query, :count]
        scores[positions] = top.scores[query, :count]
        self.add(name, ranks, rows, scores)

    def highest(self, lens: str) -> float | None:
        """The score of the lens's best candidate; None if it has no score for any."""
        known = self.scores[lens][~np.isnan(self.scores[lens])]
        return float(known.max()) if len(known) else None

    def strongest(self, lens: str) -> float | None:
        """The strength of the lens's best candidate; None if the lens cannot tell."""
        zero, way = self.spans.get(lens, (0.0, 0.0))
        highest = self.highest(lens)
        return (highest - zero) / way if way > 0 and highest is not None else None

    def best_rows(self, positions: Int64s) -> list[int]:
        """The best passage of some candidates: that of the lens that ranks the candidate highest; -1 if no lens has one."""
        rows, lowest = np.full(len(positions), -1, np.int64), np.full(len(positions), UNRANKED)
        for name in self.rows:
            ranks, lens_rows = self.ranks[name][positions], self.rows[name][positions]
            ranks = np.where(ranks > 0, ranks, UNRANKED)
            better = (lens_rows >= 0) & ((rows < 0) | (ranks < lowest))
            rows, lowest = np.where(better, lens_rows, rows), np.where(better, ranks, lowest)
        return [int(row) for row in rows]


def gather(returned: Mapping[str, DocTopK], also: Int64s) -> list[Candidates]:
    """The union of the documents that the lenses return for each query; `also` (ascending keys) are candidates of all."""
    counts = {name: top.counts().tolist() for name, top in returned.items()}
    queries = range(len(next(iter(counts.values()))))
    return [_union({name: (top, counts[name][query]) for name, top in returned.items()}, query, also) for query in queries]


def _union(returned: Mapping[str, tuple[DocTopK, int]], query: int, also: Int64s) -> Candidates:
    keys = np.unique(np.concatenate([also, *(top.keys[query, :count] for top, count in returned.values())]))
    candidates = Candidates(keys, {}, {}, {})
    for name, (top, count) in returned.items():
        candidates.put(name, top, query, count)
    return candidates


def score_missing(candidates: Sequence[Candidates], names: Sequence[str], only: Int64s | None, score: ScoreDocs) -> None:
    """Let each lens score the candidates that it did not return: all of them, or only the documents `only`."""
    for name in names:
        missing = [np.flatnonzero(single.ranks[name] == 0) for single in candidates]
        if only is not None:
            missing = [
                positions[np.isin(single.keys[positions], only)] for single, positions in zip(candidates, missing, strict=True)
            ]
        keys = np.concatenate([single.keys[positions] for single, positions in zip(candidates, missing, strict=True)])
        counts = [len(positions) for positions in missing]
        rows, scores = score(name, keys, np.repeat(np.arange(len(missing)), counts))
        for single, positions, end in zip(candidates, missing, np.cumsum(counts).tolist(), strict=True):
            single.rows[name][positions] = rows[end - len(positions) : end]
            single.scores[name][positions] = scores[end - len(positions) : end]
