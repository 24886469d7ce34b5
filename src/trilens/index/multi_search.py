"""The three searchers of the multi lens, and what is chosen between them for each query."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from trilens.encode.encoder import Encoded
from trilens.errors import BadInput
from trilens.index.codebook import Codebook, Codes, centroid_count
from trilens.index.lens import Mask
from trilens.index.multi_params import MultiParams, Settings, default_params
from trilens.index.topk import Heaps, TopK
from trilens.kernels import multi as kernels
from trilens.kernels.lanes import LANES, WIDTH
from trilens.kernels.topk import new_heaps, offer_rows
from trilens.represent import Multi

Floats = NDArray[np.float32]
Rows = NDArray[np.int32]

MOST_QUERY_TOKENS = 1024
SPARE = 3  # rows beyond k that get their exact score: the order of the near tokens' scores is not quite that of MaxSim
NO_MASK: Mask = np.empty(0, np.bool_)


Heap = tuple[Floats, NDArray[np.int64]]
"""Scores and numbers of the best rows, or tokens, of one query: see kernels/topk.py."""


def new_heap(room: int) -> Heap:
    """An empty heap; one without room takes nothing."""
    scores, rows = new_heaps(1, room)
    return scores[0], rows[0]


NO_ROOM = new_heap(0)


class Part(Protocol):
    """What a searcher needs of a segment."""

    @property
    def offsets(self) -> NDArray[np.int64]: ...
    @property
    def codes(self) -> Codes: ...
    @property
    def list_ptr(self) -> NDArray[np.int64]: ...
    @property
    def list_rows(self) -> NDArray[np.int32]: ...
    def __len__(self) -> int: ...


@dataclass(frozen=True, eq=False, slots=True)
class Look:
    """What one query has seen of the centroids: see kernels/multi.py."""

    query: Floats
    steps_query: NDArray[np.int16]
    query_units: Floats
    columns: Floats
    scores: Floats
    score_bytes: NDArray[np.uint8]
    units: Floats
    probed: NDArray[np.uint32]
    probed_scores: Floats


class MultiSearcher:
    """Answers queries over all parts. It keeps no state but its files: the same query gets the same answer at any time."""

    def __init__(self, codebook: Codebook | None, parts: Sequence[Part], live: Sequence[Mask | None]) -> None:
        self._codebook = codebook
        self._parts = parts
        self._live = live
        self._first_rows = np.cumsum([0, *(len(part) for part in parts)]).tolist()

    def search(
        self, queries: Encoded, k: int, allowed: Mask | None = None, exact: bool = False, params: MultiParams | None = None
    ) -> TopK:
        """The k best rows by MaxSim (xtr without candidates: by the imputed score). Rows without tokens are never found."""
        multi = self._require(queries)
        heaps = Heaps(len(multi), k)
        if self._codebook is None:
            return heaps.sorted()
        chosen = self.settings(params, k)
        if exact:
            chosen = replace(chosen, method="exact")
        masks = [self._mask(i, allowed) for i in range(len(self._parts))]
        rows = sum(len(part) if mask is None else int(mask.sum()) for part, mask in zip(self._parts, masks, strict=True))
        if not chosen.imputes and rows <= max(k, chosen.candidates):
            chosen = replace(chosen, method="exact")
        for query in range(len(multi)):
            vectors = multi.vectors[multi.offsets[query] : multi.offsets[query + 1]]
            if len(vectors):
                self._search_one(np.ascontiguousarray(vectors), k, masks, chosen, (heaps.scores[query], heaps.rows[query]))
        return heaps.sorted()

    def settings(self, params: MultiParams | None, k: int) -> Settings:
        """What a search with these params does."""
        return default_params(params or MultiParams(), k, self._first_rows[-1], self._crowding)

    def score(
        self, queries: Encoded, rows: NDArray[np.int64], params: MultiParams | None = None, allowed: Mask | None = None
    ) -> Floats:
        """MaxSim of the rows (queries, n) of each query, or the imputed score; -inf for those without tokens and for -1."""
        multi = self._require(queries)
        found = np.full(rows.shape, -np.inf, np.float32)
        chosen_params = self.settings(params, 1)  # what imputes does not depend on k
        if chosen_params.imputes and self._codebook:
            masks = [self._mask(i, allowed) for i in range(len(self._parts))]
            for query in range(len(multi)):
                vectors = np.ascontiguousarray(multi.vectors[multi.offsets[query] : multi.offsets[query + 1]])
                if len(vectors):
                    found[query] = self._imputed_scores(vectors, rows[query], chosen_params, masks)
            return found
        for query in range(len(multi) if self._codebook else 0):
            vectors = multi.vectors[multi.offsets[query] : multi.offsets[query + 1]]
            columns = _columns(vectors)
            for i in range(len(self._parts) if len(vectors) else 0):
                here = (rows[query] >= self._first_rows[i]) & (rows[query] < self._first_rows[i + 1])
                chosen = (rows[query, here] - self._first_rows[i]).astype(np.int32)
                found[query, here] = self._maxsim(i, columns, len(vectors), chosen)
        return found

    def _require(self, queries: Encoded) -> Multi:
        """The token vectors of the queries, if they can be compared with ours."""
        multi = queries.multi
        assert multi is not None
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
        """Dimensions of a token vector; 0 while there is none."""
        return self._codebook.dim if self._codebook else 0

    def codes(self, row: int) -> Codes:
        """The codes of the tokens of a row."""
        i = int(np.searchsorted(self._first_rows, row, side="right")) - 1
        start, end = self._parts[i].offsets[row - self._first_rows[i] :][:2].tolist()
        return self._parts[i].codes.slice(start, end)

    def decode(self, row: int) -> Floats:
        """The token vectors of a row as the index holds them."""
        return self._codebook.decode(self.codes(row)) if self._codebook else np.empty((0, 0), np.float32)

    def look(self, query: Floats, params: Settings) -> Look:
        """Score the centroids near each query token."""
        codebook = self._codebook
        assert codebook is not None
        tokens, count = len(query), len(codebook.centroids)
        lanes = -(-tokens // LANES) * LANES
        probes = min(params.probes, count)
        found = Look(
            query,
            *_whole(query * codebook.steps),
            _columns(query),
            np.full((count, tokens), -np.inf, np.float32),
            np.zeros((count, lanes), np.uint8),
            np.empty(tokens, np.float32),
            np.empty((tokens, probes), np.uint32),
            np.empty((tokens, probes), np.float32),
        )
        kernels.score_centroids(
            query,
            query @ self._leader_columns,
            min(params.reach, len(codebook.leaders)),
            codebook.group_ptr,
            codebook.centroids,
            probes,
            found.scores,
            found.score_bytes,
            found.units,
            found.probed,
            found.probed_scores,
        )
        return found

    def imputed(self, look: Look, params: Settings, masks: Sequence[Mask | None] | None = None) -> Floats:
        """What a query token counts in a row of which it retrieved no token, if only the rows of the masks are searched."""
        if params.nth:
            return self._nth_best(look, self._live if masks is None else masks, params.nth)
        reached = np.cumsum(self._list_sizes[look.probed], axis=1) >= params.tokens
        at = np.where(reached.any(axis=1), reached.argmax(axis=1), look.probed.shape[1] - 1)
        estimate: Floats = look.probed_scores[np.arange(len(at)), at]
        return estimate

    def compare(self, look: Look, row: int) -> tuple[Floats, Mask]:
        """Similarities of query tokens and the tokens of a row, and which of these xtr retrieves: (query, row) tokens."""
        retrieved = (self.codes(row).nearest[None, :, None] == look.probed[:, None, :]).any(axis=2)
        return look.query @ self.decode(row).T, retrieved

    def _imputed_scores(self, query: Floats, rows: NDArray[np.int64], params: Settings, masks: Sequence[Mask | None]) -> Floats:
        look = self.look(query, params)
        floors = self.imputed(look, params, masks)
        scores = np.full(len(rows), -np.inf, np.float32)
        for place, row in enumerate(rows.tolist()):
            if row >= 0 and len(self.codes(row)):
                similarities, retrieved = self.compare(look, row)
                best = np.where(retrieved, similarities, -np.inf).max(axis=1)
                scores[place] = np.maximum(best, floors).sum()
        return scores

    def _nth_best(self, look: Look, masks: Sequence[Mask | None], nth: int) -> Floats:
        """The nth best similarity of each query token; of its last centroid where fewer tokens were retrieved."""
        found = look.probed_scores[:, -1].copy()
        for token in range(len(look.query)):
            scores, tokens = heap = new_heap(nth)
            for i, mask in enumerate(masks):
                self._similarities(i, look, token, mask, _Scratch(len(self._parts[i])), heap)
            if tokens[0] >= 0:
                found[token] = scores[0]
        return found

    @cached_property
    def _list_sizes(self) -> NDArray[np.int64]:
        """How many tokens of all parts are near each centroid."""
        assert self._codebook is not None
        sizes = np.zeros(len(self._codebook.centroids), np.int64)
        for part in self._parts:
            sizes += np.bincount(part.codes.nearest, minlength=len(sizes))
        return sizes

    @cached_property
    def _crowding(self) -> float:
        if self._codebook is None:
            return 1.0
        tokens = sum(len(part.codes) for part in self._parts)
        return max(1.0, len(self._codebook.centroids) / centroid_count(tokens))

    @cached_property
    def _length(self) -> float:
        """How long a token vector is on average."""
        assert self._codebook is not None
        return float(np.linalg.norm(self._codebook.centroids, axis=1).mean())

    @cached_property
    def _leader_columns(self) -> Floats:
        assert self._codebook is not None
        return np.ascontiguousarray(self._codebook.leaders.T)

    def _search_one(self, query: Floats, k: int, masks: Sequence[Mask | None], params: Settings, heap: Heap) -> None:
        if params.method == "exact":
            self._offer_all(query, masks, heap)
            return
        look = self.look(query, params)
        search = self._plaid if params.method == "plaid" else self._xtr
        if not search(look, k, masks, params, heap):  # too few rows were near: then all are looked at
            self._offer_all(query, masks, heap)

    def _mask(self, i: int, allowed: Mask | None) -> Mask | None:
        return self._live[i] if allowed is None else allowed[self._first_rows[i] : self._first_rows[i + 1]]

    def _offer_all(self, query: Floats, masks: Sequence[Mask | None], heap: Heap) -> None:
        columns = _columns(query)
        for i, mask in enumerate(masks):
            rows = (np.arange(len(self._parts[i])) if mask is None else np.flatnonzero(mask)).astype(np.int32)
            self._offer(i, rows, self._maxsim(i, columns, len(query), rows), heap)

    def _plaid(self, look: Look, k: int, masks: Sequence[Mask | None], params: Settings, heap: Heap) -> bool:
        def near(i: int, mask: Mask, scratch: "_Scratch") -> int:
            part = self._parts[i]
            lists = (part.list_ptr, part.list_rows, mask, len(mask) > 0)
            return kernels.gather(look.probed, look.probed_scores, *lists, scratch.gains, scratch.last_token, scratch.touched)

        chosen = self._candidates(near, masks, max(k, params.candidates))
        if sum(len(rows) for rows, _ in chosen) < k:
            return False
        lengths = np.linalg.norm(look.query, axis=1) * self._length
        margins = np.minimum(params.margin * lengths * look.units, 254).astype(np.uint8)
        scores = [self._rerank(i, rows, look, margins) for i, (rows, _) in enumerate(chosen)]
        best = _best(scores, k + SPARE)
        for i, (rows, _) in enumerate(chosen):
            kept = rows[scores[i] >= best]
            self._offer(i, kept, self._maxsim(i, look.columns, len(look.query), kept), heap)
        return True

    def _xtr(self, look: Look, k: int, masks: Sequence[Mask | None], params: Settings, heap: Heap) -> bool:
        imputed = self.imputed(look, params, masks)

        def near(i: int, mask: Mask, scratch: "_Scratch") -> int:
            total = 0
            for token in range(len(look.query)):
                count = self._similarities(i, look, token, mask if len(mask) else None, scratch, NO_ROOM)
                retrieved = (scratch.best, scratch.seen, scratch.met, count)
                total = kernels.add_gains(*retrieved, imputed[token], scratch.gains, scratch.joined, scratch.touched, total)
            return total

        chosen = self._candidates(near, masks, max(k, params.candidates))
        few = sum(len(rows) for rows, _ in chosen) < k
        if few and not params.imputes:
            return False
        base = np.float32(imputed.sum())
        for i, (rows, gains) in enumerate(chosen):
            if params.imputes:
                self._offer(i, rows, base + gains, heap)
                if few:  # all parts of the others are imputed
                    others = self._others(i, rows, masks[i])
                    self._offer(i, others, np.full(len(others), base, np.float32), heap)
            else:
                self._offer(i, rows, self._maxsim(i, look.columns, len(look.query), rows), heap)
        return True

    def _others(self, i: int, rows: Rows, mask: Mask | None) -> Rows:
        """The rows of a part that count, have tokens, and are not among the given ones."""
        left = np.diff(self._parts[i].offsets) > 0
        left[rows] = False
        return np.flatnonzero(left if mask is None else left & mask).astype(np.int32)

    def _similarities(self, i: int, look: Look, token: int, mask: Mask | None, scratch: "_Scratch", heap: Heap) -> int:
        """The best similarity of one query token in each row that it retrieves; see `gather_tokens`."""
        part, codes = self._parts[i], self._parts[i].codes
        return kernels.gather_tokens(
            token,
            look.steps_query,
            look.query_units[token],
            look.probed[token],
            look.probed_scores[token],
            part.list_ptr,
            part.list_rows,
            part.offsets,
            codes.nearest,
            codes.residuals,
            codes.sizes,
            codes.stretches,
            *self._tables,
            NO_MASK if mask is None else mask,
            mask is not None,
            scratch.best,
            scratch.seen,
            scratch.met,
            *heap,
        )

    def _candidates(
        self, near: Callable[[int, Mask, "_Scratch"], int], masks: Sequence[Mask | None], keep: int
    ) -> list[tuple[Rows, Floats]]:
        """About `keep` rows of all parts together, those with the highest gains, and their gains."""
        met = []
        for i, mask in enumerate(masks):
            scratch = _Scratch(len(self._parts[i]))
            count = near(i, NO_MASK if mask is None else mask, scratch)
            count = kernels.keep_best(scratch.gains, scratch.touched, count, keep)
            rows = scratch.touched[:count]
            met.append((rows, scratch.gains[rows]))
        lowest = _best([gains for _, gains in met], keep)
        return [(rows[gains >= lowest], gains[gains >= lowest]) for rows, gains in met]

    @cached_property
    def _tables(self) -> tuple[Floats, Floats, NDArray[np.int8]]:
        assert self._codebook is not None
        return self._codebook.sizes, self._codebook.stretches, self._codebook.levels

    def _rerank(self, i: int, rows: Rows, look: Look, margins: NDArray[np.uint8]) -> Floats:
        part, codes = self._parts[i], self._parts[i].codes
        found = np.empty(len(rows), np.float32)
        assert self._codebook is not None
        asked = (look.query, look.steps_query, look.query_units)
        seen = (*asked, self._codebook.centroids, look.scores, look.score_bytes, margins)
        coded = (part.offsets, codes.nearest, codes.residuals, codes.sizes, codes.stretches)
        kernels.rerank(rows, *seen, *coded, *self._tables, found)
        return found

    def _maxsim(self, i: int, columns: Floats, tokens: int, rows: Rows) -> Floats:
        codebook, part, codes = self._codebook, self._parts[i], self._parts[i].codes
        assert codebook is not None
        found = np.empty(len(rows), np.float32)
        coded = (part.offsets, codes.nearest, codes.residuals, codes.sizes, codes.stretches)
        kernels.maxsim(rows, tokens, columns, *coded, codebook.centroids, codebook.steps, *self._tables, found)
        return found

    def _offer(self, i: int, rows: Rows, scores: Floats, heap: Heap) -> None:
        numbers = np.where(np.isfinite(scores), rows.astype(np.int64) + self._first_rows[i], -1)
        offer_rows(scores[None, :], numbers[None, :], heap[0][None, :], heap[1][None, :])


class _Scratch:
    """Arrays of one search over one part: zeros, whose pages cost nothing until they are touched."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.gains, self.last_token, self.touched = (
            np.zeros(rows, np.float32),
            np.zeros(rows, np.int32),
            np.empty(rows, np.int32),
        )

    @cached_property
    def best(self) -> Floats:
        """The highest similarity of each row."""
        return np.zeros(self.rows, np.float32)

    @cached_property
    def seen(self) -> Mask:
        """Whether a query token met the row."""
        return np.zeros(self.rows, np.bool_)

    @cached_property
    def joined(self) -> Mask:
        """Whether any query token met the row."""
        return np.zeros(self.rows, np.bool_)

    @cached_property
    def met(self) -> Rows:
        """The rows that a query token met."""
        return np.empty(self.rows, np.int32)


def _columns(query: Floats) -> Floats:
    """The query turned on its side and filled up with zeros: (dims, lanes)."""
    columns = np.zeros((query.shape[1], -(-len(query) // WIDTH) * WIDTH), np.float32)
    columns[:, : len(query)] = query.T
    return columns


def _whole(query: Floats) -> tuple[NDArray[np.int16], Floats]:
    """Vectors as whole numbers of 16 bits, and the unit of each: no sum of products with levels overflows 32 bits."""
    most = min(32767, 2**31 // (128 * query.shape[1]))
    units = np.maximum(np.abs(query).max(axis=1), 1e-12) / most
    return np.rint(query / units[:, None]).astype(np.int16), units.astype(np.float32)


def _best(scores: Sequence[Floats], count: int) -> float:
    """The lowest of the `count` highest scores."""
    every = np.concatenate(scores) if scores else np.empty(0, np.float32)
    return float(np.partition(every, len(every) - count)[len(every) - count]) if len(every) > count else -np.inf
