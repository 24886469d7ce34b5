"""What one segment holds for a sparse lens: rows of weighted terms with lists and columns, or bags without weights.

Weights in 8 bits have one scale per row, so a row's scores depend on nothing but the row: segments, merges and a fresh build
give the same ones. Lists and columns hold bounds, and are made again for every segment.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from trilens.encode.folder import Weighing
from trilens.index.lens import Mask
from trilens.index.sparse_params import Settings
from trilens.index.topk import Heaps
from trilens.index.weighing import PLAIN, bag_scales
from trilens.kernels import bags
from trilens.kernels import sparse as kernels
from trilens.kernels import sparse_lists as lists
from trilens.kernels.columns import BLOCK, BLOCK_BYTES
from trilens.kernels.sparse_bounds import FIRST_COLUMN, NOWHERE, Arrays
from trilens.kernels.sparse_search import search
from trilens.represent import Sparse
from trilens.represent.arrays import create_array, open_array, save_arrays
from trilens.represent.ragged import take_ragged

LEAST_ROWS = 64  # that hold a term before it gets a column
WEIGHT_COLUMN, BAG_COLUMN = 1 / 32, 1 / 16  # of the rows: from here on a column is faster, or smaller, than a list
COPY_ROWS = 4096
SMALL_VOCABULARY = 1 << 16  # whose terms fit into 16 bits

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Terms = NDArray[np.int32]
Weights = Literal["uint8", "float32"]


class SparsePart(Protocol):
    """One segment, mapped."""

    @property
    def dim(self) -> int:
        """The size of the vocabulary."""

    @property
    def postings(self) -> int:
        """How many terms all rows hold together."""

    @property
    def lengths(self) -> Ints:
        """How many terms each row holds."""

    @property
    def used(self) -> Terms:
        """The terms that some row holds."""

    @property
    def frequencies(self) -> NDArray[np.int32]:
        """How many rows hold each of the terms that are used."""

    @property
    def size(self) -> int:
        """In bytes."""

    def __len__(self) -> int:
        """The number of rows."""

    def offer(self, asked: Sparse, settings: Settings, mask: Mask | None, first_row: int, query: Floats, heaps: Heaps) -> None:
        """Offer the best rows to the heaps; `query` is zero for each term of the vocabulary, and stays so."""

    def score(self, asked: Sparse, rows: Ints, first_row: int, query: Floats, scores: Floats) -> None:
        """Write the scores of those of the rows (queries, n) that lie here."""

    def row(self, row: int) -> tuple[Terms, Floats]:
        """The terms of a row, and their weights."""

    def terms_of(self, rows: Mask) -> Terms:
        """The terms of these rows, one row after the other."""


@dataclass(frozen=True, eq=False)
class WeightedPart:
    """Rows of terms with weights."""

    dim: int
    list_terms: Terms
    column_terms: Terms
    frequencies: NDArray[np.int32]
    arrays: Arrays

    def __len__(self) -> int:
        return len(self.arrays.scales)

    @property
    def postings(self) -> int:
        """See `SparsePart`."""
        return len(self.arrays.terms)

    @property
    def lengths(self) -> Ints:
        """See `SparsePart`."""
        return np.diff(self.arrays.indptr)

    @property
    def used(self) -> Terms:
        """See `SparsePart`."""
        return np.concatenate([self.list_terms, self.column_terms])

    @property
    def size(self) -> int:
        """See `SparsePart`."""
        return sum(array.nbytes for array in (self.list_terms, self.column_terms, self.frequencies, *self.arrays))

    @cached_property
    def _places(self) -> Terms:
        """Where each term of the vocabulary is; a segment of few rows would be smaller than this, so it is not on disk."""
        places = np.full(self.dim, NOWHERE, np.int32)
        places[self.list_terms] = np.arange(len(self.list_terms))
        places[self.column_terms] = FIRST_COLUMN - np.arange(len(self.column_terms))
        return places

    def offer(self, asked: Sparse, settings: Settings, mask: Mask | None, first_row: int, query: Floats, heaps: Heaps) -> None:
        """See `SparsePart`."""
        allowed = np.empty(0, np.bool_) if mask is None else mask
        options = (settings.terms, settings.candidates, self._places, self.arrays, allowed, mask is not None, first_row)
        search(asked.indptr, asked.terms, asked.weights, *options, query, heaps.scores, heaps.rows)

    def score(self, asked: Sparse, rows: Ints, first_row: int, query: Floats, scores: Floats) -> None:
        """See `SparsePart`."""
        held = self.arrays[:4]
        kernels.score_rows(asked.indptr, asked.terms, asked.weights, rows, first_row, *held, query, scores)

    def row(self, row: int) -> tuple[Terms, Floats]:
        """See `SparsePart`."""
        span = slice(self.arrays.indptr[row], self.arrays.indptr[row + 1])
        return self.arrays.terms[span].astype(np.int32), self.arrays.scales[row] * self.arrays.codes[span].astype(np.float32)

    def terms_of(self, rows: Mask) -> Terms:
        """See `SparsePart`."""
        return self.arrays.terms[take_ragged(self.arrays.indptr, np.flatnonzero(rows))[1]].astype(np.int32)

    @staticmethod
    def build(rows: Sparse, weights: Weights, folder: Path) -> None:
        """Write a part."""
        indptr = kernels.count_positive(rows.indptr, rows.weights)
        terms, codes, scales = _create_rows(folder, rows.dim, len(rows), int(indptr[-1]), np.dtype(weights))
        write = kernels.encode_rows if weights == "uint8" else kernels.copy_rows
        write(rows.indptr, rows.terms, rows.weights, terms, codes, scales)
        _save_lists(folder, rows.dim, indptr, terms, codes, scales)

    @staticmethod
    def merge(parts: Sequence["WeightedPart"], keep: Sequence[Mask], folder: Path) -> None:
        """Copy the kept rows piece by piece, and make their lists."""
        lengths = np.concatenate([part.lengths[mask] for part, mask in zip(parts, keep, strict=True)])
        indptr = _offsets(lengths)
        first = parts[0]
        codes_type = first.arrays.codes.dtype
        terms, codes, scales = _create_rows(folder, first.dim, len(lengths), int(indptr[-1]), codes_type)
        to_row, to = 0, 0
        for part, mask in zip(parts, keep, strict=True):
            for start in range(0, len(part), COPY_ROWS):
                chosen = mask[start : start + COPY_ROWS]
                edges = part.arrays.indptr[start : start + len(chosen) + 1]
                held = np.repeat(chosen, np.diff(edges))
                count, size = int(chosen.sum()), int(held.sum())
                terms[to : to + size] = part.arrays.terms[edges[0] : edges[-1]][held]
                codes[to : to + size] = part.arrays.codes[edges[0] : edges[-1]][held]
                scales[to_row : to_row + count] = part.arrays.scales[start : start + len(chosen)][chosen]
                to_row, to = to_row + count, to + size
        _save_lists(folder, first.dim, indptr, terms, codes, scales)

    @staticmethod
    def open(folder: Path) -> "WeightedPart":
        """Map a part."""
        listed, columns, frequencies = (open_array(folder, name) for name in ("list_terms", "column_terms", "frequencies"))
        arrays = Arrays(*(open_array(folder, name) for name in Arrays._fields))
        return WeightedPart(int(open_array(folder, "dim")), listed, columns, frequencies, arrays)


@dataclass(frozen=True, eq=False, slots=True)
class BagPart:
    """Rows that hold terms or do not: nothing is kept but which rows hold each term.

    `scales` are what a term of each row counts for; they are not on disk.
    """

    dim: int
    scales: NDArray[np.float64]
    lengths: Ints
    list_terms: Terms
    list_ptr: Ints
    gaps: NDArray[np.uint8]
    column_terms: Terms
    bits: NDArray[np.uint64]
    frequencies: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def postings(self) -> int:
        """See `SparsePart`."""
        return int(self.lengths.sum(dtype=np.int64))

    @property
    def used(self) -> Terms:
        """See `SparsePart`."""
        return np.concatenate([self.list_terms, self.column_terms])

    @property
    def size(self) -> int:
        """See `SparsePart`."""
        arrays = (self.lengths, self.list_terms, self.list_ptr, self.gaps, self.column_terms, self.bits, self.frequencies)
        return sum(array.nbytes for array in arrays)

    def offer(self, asked: Sparse, settings: Settings, mask: Mask | None, first_row: int, query: Floats, heaps: Heaps) -> None:
        """See `SparsePart`. Always exact: all rows are summed up."""
        allowed = np.empty(0, np.bool_) if mask is None else mask
        for i in range(len(asked)):
            totals = self._totals(asked, i)
            bags.offer_totals(totals, allowed, mask is not None, first_row, heaps.scores[i], heaps.rows[i])

    def score(self, asked: Sparse, rows: Ints, first_row: int, query: Floats, scores: Floats) -> None:
        """See `SparsePart`."""
        here = (rows >= first_row) & (rows < first_row + len(self))
        for i in np.flatnonzero(here.any(axis=1)).tolist():
            scores[i, here[i]] = self._totals(asked, i)[rows[i, here[i]] - first_row]

    def row(self, row: int) -> tuple[Terms, Floats]:
        """See `SparsePart`."""
        terms = self.terms_of(np.arange(len(self)) == row)
        return terms, np.full(len(terms), self.scales[row], np.float32)

    def terms_of(self, rows: Mask) -> Terms:
        """See `SparsePart`."""
        return self.rows(rows).terms

    def rows(self, keep: Mask) -> Sparse:
        """The kept rows as they came."""
        indptr = _offsets(self.lengths[keep])
        cursor = np.full(len(self), -1, np.int64)
        cursor[keep] = indptr[:-1]
        terms = np.empty(indptr[-1], np.int32)
        bags.unfold_bags(self.list_terms, self.list_ptr, self.gaps, self.column_terms, self.bits, cursor, terms)
        return Sparse(indptr, terms, np.broadcast_to(np.float32(1), terms.shape), self.dim)

    def _totals(self, asked: Sparse, query: int) -> NDArray[np.float64]:
        """The score of every row for one query."""
        span = slice(asked.indptr[query], asked.indptr[query + 1])
        totals = np.zeros(len(self))
        arrays = (self.list_terms, self.list_ptr, self.gaps, self.column_terms, self.bits)
        bags.add_terms(asked.terms[span], asked.weights[span], *arrays, totals)
        return totals * self.scales

    @staticmethod
    def build(rows: Sparse, folder: Path) -> None:
        """Write a part. Weights do not count: a term of a bag is in it."""
        counts = np.bincount(rows.terms, minlength=max(1, rows.dim))
        numbers, list_terms, column_terms = _divide(counts, len(rows), BAG_COLUMN)
        list_ptr = bags.measure_lists(rows.indptr, rows.terms, numbers[0])
        gaps = create_array(folder, "gaps", np.uint8, (int(list_ptr[-1]),))
        bits = create_array(folder, "bits", np.uint64, (len(column_terms), -(-len(rows) // bags.WORD)))
        bags.fill_bags(rows.indptr, rows.terms, *numbers, list_ptr, gaps, bits)
        lengths = np.diff(rows.indptr).astype(np.int32)
        frequencies = _frequencies(counts, list_terms, column_terms)
        save_arrays(folder, dim=np.array(rows.dim), lengths=lengths, frequencies=frequencies)
        save_arrays(folder, list_terms=list_terms, list_ptr=list_ptr, column_terms=column_terms)

    @staticmethod
    def merge(parts: Sequence["BagPart"], keep: Sequence[Mask], folder: Path) -> None:
        """Write the kept rows of all parts."""
        BagPart.build(Sparse.concat([part.rows(mask) for part, mask in zip(parts, keep, strict=True)]), folder)

    @staticmethod
    def open(folder: Path, weighing: Weighing = PLAIN) -> "BagPart":
        """Map a part."""
        names = ("lengths", "list_terms", "list_ptr", "gaps", "column_terms", "bits", "frequencies")
        lengths, *others = (open_array(folder, name) for name in names)
        return BagPart(int(open_array(folder, "dim")), bag_scales(lengths, weighing), lengths, *others)


def _create_rows(folder: Path, dim: int, rows: int, postings: int, codes: Any) -> tuple[Any, Any, Any]:
    """Files for the terms, codes and scales of so many rows."""
    terms = create_array(folder, "terms", np.uint16 if dim <= SMALL_VOCABULARY else np.int32, (postings,))
    return terms, create_array(folder, "codes", codes, (postings,)), create_array(folder, "scales", np.float32, (rows,))


def _save_lists(folder: Path, dim: int, indptr: Ints, terms: Terms, codes: Any, scales: Floats) -> None:
    rows = (indptr, terms, codes, scales)
    counts, most = lists.count_terms(*rows, max(1, dim))
    numbers, list_terms, column_terms = _divide(counts, len(scales), WEIGHT_COLUMN)
    list_ptr, shares = lists.count_shares(*rows, most, *numbers)
    level_of, tops = lists.choose_levels(shares)
    list_rows = create_array(folder, "list_rows", np.uint16, (int(list_ptr[-1]),))
    list_shares = create_array(folder, "list_shares", np.uint8, list_rows.shape)
    columns = create_array(folder, "columns", np.uint8, (len(column_terms) * -(-len(scales) // BLOCK) * BLOCK_BYTES,))
    lists.fill_lists(*rows, most, *numbers, level_of, list_ptr, list_rows, list_shares, columns)
    save_arrays(folder, dim=np.array(dim), indptr=indptr, list_terms=list_terms, list_most=most[list_terms], list_ptr=list_ptr)
    save_arrays(folder, column_terms=column_terms, column_most=most[column_terms], column_tops=tops)
    save_arrays(folder, frequencies=_frequencies(counts, list_terms, column_terms))


def _divide(counts: Ints, rows: int, share: float) -> tuple[tuple[Ints, Ints], Terms, Terms]:
    """The numbers of each term's list and column (-1 for none), and the terms that have one."""
    dense = counts >= max(LEAST_ROWS, share * rows)
    listed = (counts > 0) & ~dense
    numbers = tuple(np.where(mask, np.cumsum(mask) - 1, -1) for mask in (listed, dense))
    return (numbers[0], numbers[1]), np.flatnonzero(listed).astype(np.int32), np.flatnonzero(dense).astype(np.int32)


def _frequencies(counts: Ints, list_terms: Terms, column_terms: Terms) -> NDArray[np.int32]:
    """How many rows hold each term, in the order of `used`."""
    return np.asarray(counts[np.concatenate([list_terms, column_terms])], np.int32)


def _offsets(lengths: NDArray[np.integer[Any]]) -> Ints:
    """Where each row starts, and where the last one ends."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets
