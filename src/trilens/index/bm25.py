"""The BM25 lens: counts of words in inverted lists, scored with what is true of the live rows at this moment.

Lucene's formula (Kamphuis et al. 2020, "Which BM25 do you mean?", eq. for Lucene accurate):
    score = Σ idf(t) · tf / (tf + k1 · (1 − b + b · length / average length)),   idf = ln(1 + (N − df + ½) / (df + ½))
Lists hold raw counts, so N, df and the average length may change with every commit and the scores stay those of a fresh
build. Only the impacts, which are bounds, are tied to the average length at build time; `stretch` below makes them valid again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from trilens.encode.bm25 import Bm25Encoder
from trilens.encode.encoder import Encoded
from trilens.index.lens import Mask, SharesNothing
from trilens.index.topk import Heaps, TopK
from trilens.index.weighing import rarity
from trilens.kernels import bm25 as kernels
from trilens.kernels.postings import copy_kept, count_allowed, count_cells, count_kept, fill_cells, invert
from trilens.represent.arrays import create_array, open_array, save_arrays, scratch_array
from trilens.represent.counts import Counts
from trilens.represent.vocabulary import Vocabulary
from trilens.text.analysis import AnalysisConfig


class Bm25Config(BaseModel):
    """k1 = 0.9 and b = 0.4 are Anserini's defaults, which carry over best between collections."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    k1: float = Field(default=0.9, ge=0, le=1e6)
    b: float = Field(default=0.4, ge=0, le=1)
    analysis: AnalysisConfig = AnalysisConfig()


DEFAULT = Bm25Config()


@dataclass(frozen=True, eq=False, slots=True)
class Bm25Part:
    """One segment: its vocabulary, inverted lists (see kernels/postings.py), and the length of each row in words."""

    average_length: float
    """Of all rows when the impacts were computed."""
    vocabulary: Vocabulary
    lengths: NDArray[np.int32]
    frequencies: NDArray[np.int32]
    cell_ptr: NDArray[np.int64]
    cells: NDArray[np.int64]
    bests: NDArray[np.uint64]
    postings: NDArray[np.uint16]
    counts: NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.lengths)

    @staticmethod
    def open(folder: Path) -> "Bm25Part":
        """Map a part that `Bm25Lens` wrote."""
        names = ("lengths", "frequencies", "cell_ptr", "cells", "bests", "postings", "counts")
        arrays = [open_array(folder, name) for name in names]
        average_length = float(open_array(folder, "average_length"))
        return Bm25Part(average_length, Vocabulary.open(folder), *arrays)


class Bm25Lens(SharesNothing):
    """Words that query and document share, rare ones counting more."""

    name = "bm25"

    def __init__(self, config: Bm25Config = DEFAULT) -> None:
        self.config = config
        self.encoder = Bm25Encoder(config.analysis)

    def build(self, encoded: Encoded, folder: Path, shared: Sequence[Any] = ()) -> None:
        """Write the inverted lists of one segment."""
        counted = encoded.counts
        assert counted is not None
        sparse = counted.sparse
        lists, rows, counts = invert(sparse.indptr, sparse.terms, sparse.weights, sparse.dim)
        counts = counts.astype(np.min_scalar_type(int(counts.max(initial=0))))
        self._save(folder, counted.vocabulary, counted.lengths, lists, rows, counts)

    def merge(self, parts: Sequence[Bm25Part], keep: Sequence[Mask], folder: Path, shared: Sequence[Any] = ()) -> None:
        """Write the lists of all kept rows; terms that no kept row holds are dropped."""
        union, merged = Vocabulary.merge([part.vocabulary for part in parts])
        sources = list(zip(parts, _row_maps(keep), merged, strict=True))
        kept = np.zeros(len(union), np.int64)
        for part, row_map, places in sources:
            count_kept(part.cell_ptr, part.cells, part.postings, row_map, places, kept)
        used = kept > 0
        lists = np.concatenate([[0], np.cumsum(kept[used])])
        cursor = np.cumsum(kept) - kept
        dtype = np.result_type(*(part.counts.dtype for part in parts))
        size = int(lists[-1])
        with scratch_array(folder, "rows", np.int32, size) as rows, scratch_array(folder, "row_counts", dtype, size) as counts:
            for part, row_map, places in sources:
                arrays = (part.cell_ptr, part.cells, part.postings, part.counts)
                copy_kept(*arrays, row_map, places, cursor, rows, counts)
            lengths = np.concatenate([part.lengths[mask] for part, mask in zip(parts, keep, strict=True)])
            self._save(folder, union.keep(used), lengths, lists, rows, counts)

    def open(self, folder: Path) -> Bm25Part:
        """Map a part."""
        return Bm25Part.open(folder)

    def searcher(self, parts: Sequence[Bm25Part], live: Sequence[Mask | None], shared: Sequence[Any] = ()) -> "Bm25Searcher":
        """Fit the statistics to the live rows."""
        return Bm25Searcher(self.config, parts, live)

    def _save(
        self,
        folder: Path,
        vocabulary: Vocabulary,
        lengths: NDArray[np.int32],
        lists: NDArray[np.int64],
        rows: NDArray[np.int32],
        counts: NDArray[np.uint32],
    ) -> None:
        average = _average(int(lengths.sum(dtype=np.int64)), len(lengths))
        cell_ptr = count_cells(lists, rows)
        cells = create_array(folder, "cells", np.int64, (int(cell_ptr[-1]),))
        bests = create_array(folder, "bests", np.uint64, cells.shape)
        postings = create_array(folder, "postings", np.uint16, (len(rows),))
        to_counts = create_array(folder, "counts", counts.dtype, (len(rows),))
        fill_cells(lists, rows, counts, _norms(self.config, lengths, average), cells, bests, postings, to_counts)
        save_arrays(folder, lengths=lengths, cell_ptr=cell_ptr, frequencies=np.diff(lists).astype(np.int32))
        save_arrays(folder, average_length=np.array(average))
        vocabulary.save(folder)


@dataclass(frozen=True, eq=False, slots=True)
class TermScores:
    """What the terms of a query give some rows: `counts` and `scores` are (terms, rows); scores add up by column."""

    words: list[str]
    in_query: NDArray[np.float32]
    idf: NDArray[np.float64]
    counts: NDArray[np.float64]
    lengths: NDArray[np.int32]
    scores: NDArray[np.float64]


class Bm25Searcher:
    """Answers queries over all parts with the statistics of the live rows."""

    def __init__(self, config: Bm25Config, parts: Sequence[Bm25Part], live: Sequence[Mask | None]) -> None:
        self._config = config
        self._parts = parts
        self._live = live
        self._first_rows = np.cumsum([0, *(len(part) for part in parts)]).tolist()
        self._frequencies: dict[tuple[int, int], int] = {}

    @cached_property
    def rows(self) -> int:
        """How many rows are live."""
        return sum(len(part) if mask is None else int(mask.sum()) for part, mask in zip(self._parts, self._live, strict=True))

    @cached_property
    def average_length(self) -> float:
        """Mean length of the live rows in words."""
        total = sum(
            int((part.lengths if mask is None else part.lengths[mask]).sum(dtype=np.int64))
            for part, mask in zip(self._parts, self._live, strict=True)
        )
        return _average(total, self.rows)

    def search(
        self, queries: Encoded, k: int, allowed: Mask | None = None, exact: bool = False, params: Any | None = None
    ) -> TopK:
        """The best k rows that share a term with the query. Always exact: skipping never changes the answer."""
        counted = queries.counts
        assert counted is not None
        heaps = Heaps(len(counted), k)
        if not self._parts:
            return heaps.sorted()
        found = [part.vocabulary.find(counted.vocabulary) for part in self._parts]
        weights = self._weights(counted, found)
        for i in range(len(self._parts)):
            self._search_part(i, counted, found[i], weights, allowed, heaps)
        return heaps.sorted()

    def score(
        self, queries: Encoded, rows: NDArray[np.int64], params: Any | None = None, allowed: Mask | None = None
    ) -> NDArray[np.float32]:
        """The scores of the rows (queries, n) of each query, 0 where they share no term; -inf where a row is -1."""
        counted = queries.counts
        assert counted is not None
        scores = np.full(rows.shape, -np.inf, np.float32)
        if not self._parts:
            return scores
        found = [part.vocabulary.find(counted.vocabulary) for part in self._parts]
        weights = self._weights(counted, found)
        for i, part in enumerate(self._parts):
            terms, lists = found[i][counted.sparse.terms], (part.cell_ptr, part.cells, part.postings, part.counts)
            asked = (counted.sparse.indptr, terms, weights, rows, self._first_rows[i])
            kernels.score_rows(*asked, *lists, self._norms[i], scores)
        return scores

    def terms(self, queries: Encoded, query: int, rows: NDArray[np.int64]) -> "TermScores":
        """What each term of one query of the batch gives each of the rows."""
        counted = queries.counts
        assert counted is not None
        span = slice(counted.sparse.indptr[query], counted.sparse.indptr[query + 1])
        numbers = counted.sparse.terms[span]
        counts, norms = np.zeros((len(numbers), len(rows))), np.zeros(len(rows), np.float32)
        lengths = np.zeros(len(rows), np.int32)
        found = [part.vocabulary.find(counted.vocabulary) for part in self._parts]
        for i, part in enumerate(self._parts):
            here = (rows >= self._first_rows[i]) & (rows < self._first_rows[i + 1])
            chosen = rows[here] - self._first_rows[i]
            counts_here = np.empty((len(numbers), len(chosen)))
            lists = (part.cell_ptr, part.cells, part.postings, part.counts)
            kernels.count_in_rows(found[i][numbers], chosen, *lists, counts_here)
            counts[:, here], norms[here], lengths[here] = counts_here, self._norms[i][chosen], part.lengths[chosen]
        idf = self._idf(found)[numbers] if found else np.zeros(len(numbers))
        in_query = counted.sparse.weights[span]
        weights = (in_query * idf).astype(np.float32).astype(np.float64)
        words = [counted.vocabulary.word(number) for number in numbers.tolist()]
        saturated = np.divide(counts, counts + norms, out=np.zeros_like(counts), where=counts > 0)
        return TermScores(words, in_query, idf, counts, lengths, weights[:, None] * saturated)

    def _search_part(
        self,
        i: int,
        counted: Counts,
        found: NDArray[np.int64],
        weights: NDArray[np.float32],
        allowed: Mask | None,
        heaps: Heaps,
    ) -> None:
        part, first_row = self._parts[i], self._first_rows[i]
        terms = found[counted.sparse.terms]
        here = terms >= 0
        query_ptr = np.concatenate([[0], np.cumsum(here)])[counted.sparse.indptr]
        terms, weights = terms[here], weights[here]
        if not len(terms):
            return
        mask = self._live[i] if allowed is None else allowed[first_row : first_row + len(part)]
        # k1 · (1 − b + b · l / a') >= k1 · (1 − b + b · l / a) · a / a' for a' >= a, hence the bound in the kernel.
        stretch = max(1.0, self.average_length / part.average_length)
        kernels.search(
            query_ptr,
            terms,
            weights,
            stretch,
            part.cell_ptr,
            part.cells,
            part.bests,
            part.postings,
            part.counts,
            self._norms[i],
            np.empty(0, np.bool_) if mask is None else mask,
            mask is not None,
            first_row,
            heaps.scores,
            heaps.rows,
        )

    @cached_property
    def _norms(self) -> list[NDArray[np.float32]]:
        return [_norms(self._config, part.lengths, self.average_length) for part in self._parts]

    def frequencies(self, words: Vocabulary) -> NDArray[np.float64]:
        """In how many live rows each of the words stands."""
        return self._frequencies_of([part.vocabulary.find(words) for part in self._parts], len(words))

    def _weights(self, counted: Counts, found: Sequence[NDArray[np.int64]]) -> NDArray[np.float32]:
        """What each term of each query counts at most."""
        weights: NDArray[np.float32] = (counted.sparse.weights * self._idf(found)[counted.sparse.terms]).astype(np.float32)
        return weights

    def _idf(self, found: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
        """Inverse document frequency of each term of the batch over all live rows."""
        return rarity(self._frequencies_of(found, len(found[0])), self.rows)

    def _frequencies_of(self, found: Sequence[NDArray[np.int64]], words: int) -> NDArray[np.float64]:
        frequency = np.zeros(words)
        for i, places in enumerate(found):
            here = np.flatnonzero(places >= 0)
            mask = self._live[i]
            if mask is None:
                frequency[here] += self._parts[i].frequencies[places[here]]
            else:
                frequency[here] += [self._frequency(i, int(term), mask) for term in places[here]]
        return frequency

    def _frequency(self, i: int, term: int, mask: Mask) -> int:
        """In how many live rows of part i the term stands, counted once per snapshot and term."""
        part = self._parts[i]
        if (i, term) not in self._frequencies:
            cells = part.cells[part.cell_ptr[term] : part.cell_ptr[term + 1]]
            self._frequencies[i, term] = count_allowed(cells, part.postings, mask)
        return self._frequencies[i, term]


def _average(total: int, rows: int) -> float:
    """Mean length, 1 where there are no words at all (then no score depends on it)."""
    return total / rows if total else 1.0


def _norms(config: Bm25Config, lengths: NDArray[np.int32], average: float) -> NDArray[np.float32]:
    """k1 · (1 − b + b · length / average) of each row."""
    norms: NDArray[np.float32] = (config.k1 * (1 - config.b + config.b * lengths / average)).astype(np.float32)
    return norms


def _row_maps(keep: Sequence[Mask]) -> list[NDArray[np.int32]]:
    """For each part the row in the merged segment of each of its rows, -1 for those left behind."""
    maps, first = [], 0
    for mask in keep:
        places = np.where(mask, first + np.cumsum(mask) - 1, -1).astype(np.int32)
        maps.append(places)
        first += int(mask.sum())
    return maps
