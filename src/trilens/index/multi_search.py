"""`TokenSearcher`: exact MaxSim, PLAID and XTR search over the token codes of all segments."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Protocol

import numpy as np

from trilens.errors import BadInput, CollectionDamaged
from trilens.index.codebook import Codebook, Codes, centroid_count
from trilens.index.multi_candidates import CandidateBuffers, best_candidates, nth_highest
from trilens.index.multi_params import MultiParams, MultiSettings, default_settings
from trilens.index.multi_query import ProbedQuery, padded_columns, probe
from trilens.index.topk import Heaps, TopK
from trilens.kernels.array_types import Float32s, Int32s, Int64s, Mask, UInt8s
from trilens.kernels.multi import CentroidLists, gather, maxsim, rerank
from trilens.kernels.residual import CodeTables
from trilens.kernels.retrieved_tokens import TokenSegment, gather_gains, offer_similarities
from trilens.kernels.row_filter import RowFilter
from trilens.kernels.topk import new_heaps, offer_rows
from trilens.represent import Multi

MOST_QUERY_TOKENS = 1024
DEFAULT = MultiParams()
SPARE = 3  # rows beyond k that get their exact score: re-ranking does not quite order rows by MaxSim

Masks = Sequence[Mask | None]
"""The allowed rows of each segment; None allows all."""

Heap = tuple[Float32s, Int64s]
"""Scores and numbers of the best rows of one query: see kernels/topk.py."""


class SearchablePart(Protocol):
    """The arrays of one segment that a search reads."""

    @property
    def offsets(self) -> Int64s: ...
    @property
    def codes(self) -> Codes: ...
    @property
    def list_ptr(self) -> Int64s: ...
    @property
    def list_rows(self) -> Int32s: ...
    def __len__(self) -> int: ...


class TokenSearcher:
    """Searches all segments of a snapshot. It is stateless: the same query always gets the same answer."""

    def __init__(self, codebook: Codebook | None, parts: Sequence[SearchablePart], live: Masks) -> None:
        self._codebook = codebook
        self._parts = parts
        self._live = live
        self._sizes = [len(part) for part in parts]
        self._first_rows = np.cumsum([0, *self._sizes]).tolist()
        width = codebook.dim * codebook.bits // 8 if codebook else 0
        for part in parts:
            if len(part.codes) and part.codes.residuals.shape[1] != width:
                raise CollectionDamaged(
                    f"a segment has {part.codes.residuals.shape[1]} bytes of codes per token, the codebook {width}; run "
                    "`trilens check`"
                )

    def search(
        self, queries: Multi, k: int, allowed: Mask | None = None, exact: bool = False, params: MultiParams | None = None
    ) -> TopK:
        """The k best rows by MaxSim, or by the imputed score (xtr without candidates). Rows without tokens never match."""
        multi = self._require(queries)
        heaps = Heaps(len(multi), k)
        if self._codebook is None:
            return heaps.sorted()
        settings = self.settings(params, k)
        if exact:
            settings = replace(settings, method="exact")
        masks = self._masks(allowed)
        rows = sum(size if mask is None else int(mask.sum()) for size, mask in zip(self._sizes, masks, strict=True))
        if not settings.imputes and rows <= max(k, settings.candidates):
            settings = replace(settings, method="exact")
        for query in range(len(multi)):
            vectors = _vectors_of(multi, query)
            if len(vectors):
                self._search_one(vectors, k, masks, settings, (heaps.scores[query], heaps.rows[query]))
        return heaps.sorted()

    def settings(self, params: MultiParams | None, k: int) -> MultiSettings:
        """The settings of a search with these params."""
        return default_settings(params or DEFAULT, k, self._first_rows[-1], self._crowding)

    def score(self, queries: Multi, rows: Int64s, params: MultiParams | None = None, allowed: Mask | None = None) -> Float32s:
        """MaxSim, or the imputed score, of the rows (queries, n) of each query; -inf for rows without tokens and for -1."""
        multi = self._require(queries)
        scores = np.full(rows.shape, -np.inf, np.float32)
        if self._codebook is None:
            return scores
        settings = self.settings(params, 1)  # whether scores are imputed does not depend on k
        masks = self._masks(allowed)
        for query in range(len(multi)):
            vectors = _vectors_of(multi, query)
            if not len(vectors):
                continue
            if settings.imputes:
                scores[query] = self._imputed_scores(vectors, rows[query], settings, masks)
            else:
                self._score_rows(vectors, rows[query], scores[query])
        return scores

    def _score_rows(self, vectors: Float32s, rows: Int64s, scores: Float32s) -> None:
        """Write the MaxSim of rows."""
        columns = padded_columns(vectors)
        for i, first_row in enumerate(self._first_rows[:-1]):
            here = (rows >= first_row) & (rows < self._first_rows[i + 1])
            scores[here] = self._maxsim(i, columns, len(vectors), (rows[here] - first_row).astype(np.int32))

    def _require(self, multi: Multi) -> Multi:
        """The token vectors of the queries, checked."""
        if self._codebook and multi.dim != self._codebook.dim:
            raise BadInput(f"query tokens have {multi.dim} dimensions; expected {self._codebook.dim}, as the documents")
        if not np.isfinite(multi.vectors).all():
            raise BadInput("the model gave query tokens with NaN or infinite values; check the model folder")
        longest = int(np.diff(multi.offsets).max(initial=0))
        if longest > MOST_QUERY_TOKENS:
            raise BadInput(f"the query has {longest} tokens; expected at most {MOST_QUERY_TOKENS}")
        return multi

    @property
    def dim(self) -> int:
        """Dimensions of a token vector; 0 before any token is indexed."""
        return self._codebook.dim if self._codebook else 0

    def codes(self, row: int) -> Codes:
        """The codes of the tokens of a row."""
        i = int(np.searchsorted(self._first_rows, row, side="right")) - 1
        start, end = self._parts[i].offsets[row - self._first_rows[i] :][:2].tolist()
        return self._parts[i].codes.slice(start, end)

    def decode(self, row: int) -> Float32s:
        """The decoded token vectors of a row."""
        return self._codebook.decode(self.codes(row)) if self._codebook else np.empty((0, 0), np.float32)

    def look(self, query: Float32s, params: MultiSettings) -> ProbedQuery:
        """Score the centroids near each query token."""
        assert self._codebook is not None
        return probe(query, self._codebook, params.reach, params.probes)

    def imputed(self, query: ProbedQuery, params: MultiSettings, masks: Masks | None = None) -> Float32s:
        """The imputed score of each query token: for rows of which it retrieved no token, if the masks filter the search."""
        if params.nth:
            return self._nth_best(query, self._live if masks is None else masks, params.nth)
        probed, scores = query.centroids.probed, query.centroids.probed_scores
        reached = np.cumsum(self._list_sizes[probed], axis=1) >= params.tokens
        last = np.where(reached.any(axis=1), reached.argmax(axis=1), probed.shape[1] - 1)
        estimate: Float32s = scores[np.arange(len(last)), last]
        return estimate

    def compare(self, query: ProbedQuery, row: int) -> tuple[Float32s, Mask]:
        """Similarities of the query tokens with the tokens of a row, and which of them xtr retrieves: (query, row) tokens."""
        retrieved = (self.codes(row).nearest[None, :, None] == query.centroids.probed[:, None, :]).any(axis=2)
        return query.tokens.vectors @ self.decode(row).T, retrieved

    def _imputed_scores(self, vectors: Float32s, rows: Int64s, params: MultiSettings, masks: Masks) -> Float32s:
        query = self.look(vectors, params)
        floors = self.imputed(query, params, masks)
        scores = np.full(len(rows), -np.inf, np.float32)
        for i, row in enumerate(rows.tolist()):
            if row >= 0 and len(self.codes(row)):
                similarities, retrieved = self.compare(query, row)
                best = np.where(retrieved, similarities, -np.inf).max(axis=1)
                scores[i] = np.maximum(best, floors).sum()
        return scores

    def _nth_best(self, query: ProbedQuery, masks: Masks, nth: int) -> Float32s:
        """The nth best similarity of each query token; the score of its last centroid if it retrieved fewer tokens."""
        scores, tokens = new_heaps(len(query.tokens.vectors), nth)
        for i, mask in enumerate(masks):
            retrieved = CandidateBuffers(self._sizes[i]).retrieved
            segment = self._segments[i]
            offer_similarities(*query, segment, self._tables, RowFilter.of(mask), retrieved, scores, tokens)
        return np.where(tokens[:, 0] >= 0, scores[:, 0], query.centroids.probed_scores[:, -1])

    @cached_property
    def _segments(self) -> list[TokenSegment]:
        return [
            TokenSegment(part.offsets, part.codes.arrays, CentroidLists(part.list_ptr, part.list_rows)) for part in self._parts
        ]

    @cached_property
    def _list_sizes(self) -> Int64s:
        """The number of tokens of all segments per centroid."""
        assert self._codebook is not None
        sizes = np.zeros(len(self._codebook.centroids), np.int64)
        for part in self._parts:
            sizes += np.bincount(part.codes.nearest, minlength=len(sizes))[: len(sizes)]  # more only if damaged
        return sizes

    @cached_property
    def _crowding(self) -> float:
        """How many times more centroids there are than a fresh codebook would have."""
        if self._codebook is None:
            return 1.0
        tokens = sum(len(part.codes) for part in self._parts)
        return max(1.0, len(self._codebook.centroids) / centroid_count(tokens))

    @cached_property
    def length(self) -> float:
        """The mean length of a token vector; 0 if no text so far had a token."""
        if self._codebook is None:
            return 0.0
        return float(np.linalg.norm(self._codebook.centroids, axis=1).mean())

    @property
    def _tables(self) -> CodeTables:
        assert self._codebook is not None
        return self._codebook.tables

    def _search_one(self, vectors: Float32s, k: int, masks: Masks, params: MultiSettings, heap: Heap) -> None:
        if params.method == "exact":
            self._offer_all(vectors, masks, heap)
            return
        query = self.look(vectors, params)
        search = self._plaid if params.method == "plaid" else self._xtr
        if not search(query, k, masks, params, heap):  # fewer than k candidates: score all rows
            self._offer_all(vectors, masks, heap)

    def _masks(self, allowed: Mask | None) -> Masks:
        if allowed is None:
            return self._live
        return [allowed[first : first + size] for first, size in zip(self._first_rows[:-1], self._sizes, strict=True)]

    def _offer_all(self, vectors: Float32s, masks: Masks, heap: Heap) -> None:
        columns = padded_columns(vectors)
        for i, mask in enumerate(masks):
            rows = (np.arange(self._sizes[i]) if mask is None else np.flatnonzero(mask)).astype(np.int32)
            self._offer(i, rows, self._maxsim(i, columns, len(vectors), rows), heap)

    def _plaid(self, query: ProbedQuery, k: int, masks: Masks, params: MultiSettings, heap: Heap) -> bool:
        """Offer the best rows by PLAID; False if there are fewer than k candidates."""
        tokens, centroids = query

        def gather_near(i: int, mask: Mask | None, buffers: CandidateBuffers) -> int:
            lists = self._segments[i].lists
            return gather(centroids, lists, *RowFilter.of(mask), buffers.gains, buffers.last_token, buffers.touched)

        candidates = best_candidates(gather_near, self._sizes, masks, max(k, params.candidates))
        if sum(len(rows) for rows, _ in candidates) < k:
            return False
        lengths = np.linalg.norm(tokens.vectors, axis=1) * self.length
        margins = np.minimum(params.margin * lengths * centroids.units, 254).astype(np.uint8)
        scores = [self._rerank(i, rows, query, margins) for i, (rows, _) in enumerate(candidates)]
        lowest = nth_highest(scores, k + SPARE)
        for i, (rows, _) in enumerate(candidates):
            kept = rows[scores[i] >= lowest]
            self._offer(i, kept, self._maxsim(i, tokens.columns, len(tokens.vectors), kept), heap)
        return True

    def _xtr(self, query: ProbedQuery, k: int, masks: Masks, params: MultiSettings, heap: Heap) -> bool:
        """Offer the best rows by XTR; False if MaxSim is wanted and there are fewer than k candidates."""
        imputed = self.imputed(query, params, masks)

        def gather_retrieved(i: int, mask: Mask | None, buffers: CandidateBuffers) -> int:
            segment, row_filter = self._segments[i], RowFilter.of(mask)
            return gather_gains(*query, segment, self._tables, row_filter, imputed, buffers.retrieved, buffers.row_gains)

        candidates = best_candidates(gather_retrieved, self._sizes, masks, max(k, params.candidates))
        few = sum(len(rows) for rows, _ in candidates) < k
        if few and not params.imputes:
            return False
        base = np.float32(imputed.sum())
        for i, (rows, gains) in enumerate(candidates):
            if params.imputes:
                self._offer(i, rows, base + gains, heap)
                if few:  # the scores of all other rows are entirely imputed
                    others = self._others(i, rows, masks[i])
                    self._offer(i, others, np.full(len(others), base, np.float32), heap)
            else:
                self._offer(i, rows, self._maxsim(i, query.tokens.columns, len(query.tokens.vectors), rows), heap)
        return True

    def _others(self, i: int, rows: Int32s, mask: Mask | None) -> Int32s:
        """The allowed rows of a segment that have tokens and are not in `rows`."""
        left = np.diff(self._parts[i].offsets) > 0
        left[rows] = False
        return np.flatnonzero(left if mask is None else left & mask).astype(np.int32)

    def _rerank(self, i: int, rows: Int32s, query: ProbedQuery, margins: UInt8s) -> Float32s:
        scores, segment = np.empty(len(rows), np.float32), self._segments[i]
        rerank(rows, *query, margins, segment.offsets, segment.codes, self._tables, scores)
        return scores

    def _maxsim(self, i: int, columns: Float32s, tokens: int, rows: Int32s) -> Float32s:
        scores, segment = np.empty(len(rows), np.float32), self._segments[i]
        maxsim(rows, columns, tokens, segment.offsets, segment.codes, self._tables, scores)
        return scores

    def _offer(self, i: int, rows: Int32s, scores: Float32s, heap: Heap) -> None:
        numbers = np.where(np.isfinite(scores), rows.astype(np.int64) + self._first_rows[i], -1)
        offer_rows(scores[None, :], numbers[None, :], heap[0][None, :], heap[1][None, :])


def _vectors_of(multi: Multi, query: int) -> Float32s:
    """The token vectors of one query, contiguous."""
    return np.ascontiguousarray(multi.vectors[multi.offsets[query] : multi.offsets[query + 1]])
