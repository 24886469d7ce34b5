"""`Reranker`: what scores the candidates of a search again: a lens, a lens that encodes them at query time, a cross-encoder."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trilens.encode.cross_encoder import CrossEncoder
from trilens.encode.encoder import Encoded
from trilens.errors import BadInput
from trilens.kernels.array_types import Float32s, Float64s, Int64s
from trilens.lenses.lens import ExplainTarget, Lens
from trilens.lenses.occlusion import parts_by_leaving_out, stretches
from trilens.lenses.parts import ScoreParts, with_rest
from trilens.lenses.registry import lens_type
from trilens.search.options import SearchOptions
from trilens.store.lens_set import LensSet
from trilens.store.snapshot import Snapshot

MOST_STRETCHES = 64  # of a passage, each of which costs a pass of the cross-encoder


class Reranker(ABC):
    """Scores rows for the queries of one search."""

    @abstractmethod
    def score(self, grid: Int64s) -> Float32s:
        """The scores of the rows (queries, n) of each query; -inf where a row is -1 or has no score."""

    @abstractmethod
    def explain(self, target: ExplainTarget) -> ScoreParts:
        """The parts of a score; they add up to it."""


@dataclass(frozen=True)
class IndexedReranker(Reranker):
    """A lens of the collection, by its exact score."""

    snapshot: Snapshot
    name: str
    params: Any
    encoded: Callable[[], Encoded]

    def score(self, grid: Int64s) -> Float32s:
        """See `Reranker`."""
        return self.snapshot.searcher(self.name).score(self.encoded(), grid, self.params)

    def explain(self, target: ExplainTarget) -> ScoreParts:
        """See `Reranker`."""
        return self.snapshot.searcher(self.name).explain(target)


@dataclass(frozen=True)
class LateReranker(Reranker):
    """A lens that the collection does not hold: the candidates are encoded at query time."""

    snapshot: Snapshot
    lens: Lens
    queries: Sequence[str]

    def score(self, grid: Int64s) -> Float32s:
        """See `Reranker`."""
        rows = np.unique(grid[grid >= 0])
        scores = np.full(grid.shape, -np.inf, np.float32)
        if len(rows):
            texts = [text for _, _, text in self.snapshot.passages_at(rows)]
            all_scores = self.lens.score_texts(self.queries, texts)
            columns = np.searchsorted(rows, np.maximum(grid, rows[0]))
            scores = np.where(grid >= 0, np.take_along_axis(all_scores, columns, 1), scores)
        return scores

    def explain(self, target: ExplainTarget) -> ScoreParts:
        """See `Reranker`."""
        return self.lens.explain_text(target)


@dataclass(frozen=True)
class CrossReranker(Reranker):
    """A cross-encoder, which reads each candidate passage with the query."""

    snapshot: Snapshot
    model: CrossEncoder
    queries: Sequence[str]

    def score(self, grid: Int64s) -> Float32s:
        """See `Reranker`."""
        scores = np.full(grid.shape, -np.inf, np.float32)
        rows = np.unique(grid[grid >= 0])
        texts = dict(zip(rows.tolist(), (text for _, _, text in self.snapshot.passages_at(rows)), strict=True))
        passages = [[texts[row] for row in line[line >= 0].tolist()] for line in grid]
        for line, values, known in zip(grid, self.model.score(self.queries, passages), scores, strict=True):
            known[line >= 0] = values
        return scores

    def explain(self, target: ExplainTarget) -> ScoreParts:
        """The drops in score when words of the passage or of the query are left out, and what remains."""
        if target.score is None:
            return ScoreParts([])
        query, passage = target.query, target.passage

        def of_passages(passages: list[str]) -> Float64s:
            return self.model.score([query], [passages])[0].astype(np.float64)

        def of_queries(queries: list[str]) -> Float64s:
            return self.model.score_pairs([(text, passage) for text in queries]).astype(np.float64)

        parts = parts_by_leaving_out(passage, stretches(passage, MOST_STRETCHES), of_passages)
        parts += parts_by_leaving_out(query, stretches(query, MOST_STRETCHES), of_queries, query=True)
        return ScoreParts(with_rest(parts, target.score, "all words together"), approximate=True)


def make_reranker(
    snapshot: Snapshot, lenses: LensSet, queries: Sequence[str], options: SearchOptions, encoded: Callable[[str], Encoded]
) -> Reranker | None:
    """The reranker of a search, if there is one; `encoded` returns the queries as a lens encodes them."""
    rerank = options.rerank
    if rerank is None:
        return None
    if rerank.is_cross:
        return CrossReranker(snapshot, lenses.cross_encoder(rerank.require_model()), queries)
    late = lenses.late(rerank.by)
    if late is not None and rerank.by in options.params:
        raise BadInput(f"params are given for {rerank.by}, which encodes the candidates at query time; leave them out")
    if late is not None:
        return LateReranker(snapshot, late, queries)
    _ = lenses[rerank.by]
    params = options.params.get(rerank.by) if lens_type(rerank.by).score_params else None
    return IndexedReranker(snapshot, rerank.by, params, lambda: encoded(rerank.by))
