"""Segments of the sparse lenses: rows of weighted terms with inverted lists and columns, or bags of terms without weights.

8-bit weights have one scale per row, so the score of a row depends only on the row: it is the same in any segment, after a
merge and after a fresh build. Lists and columns hold bounds, and are rebuilt for each segment.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from trilens.encode.folder import TermWeighting
from trilens.errors import CollectionDamaged
from trilens.index.sparse_settings import SparseSettings
from trilens.index.term_weighting import PLAIN, bag_scales
from trilens.index.topk import Heaps
from trilens.kernels import bags
from trilens.kernels import sparse as kernels
from trilens.kernels import sparse_lists as lists
from trilens.kernels.array_types import AnyArray, Float32s, Float64s, Int32s, Int64s, Mask, UInt8s, UInt64s
from trilens.kernels.columns import BLOCK, BLOCK_BYTES, LEVELS
from trilens.kernels.row_filter import RowFilter
from trilens.kernels.sparse import CodedRows
from trilens.kernels.sparse_bounds import FIRST_COLUMN, NOWHERE, SparseArrays
from trilens.kernels.sparse_lists import ListArrays, TermNumbers
from trilens.kernels.sparse_search import search
from trilens.represent import Sparse
from trilens.represent.arrays import create_array, save_arrays
from trilens.represent.ragged import offsets_of, take_ragged
from trilens.represent.stored import StoredArrays

LEAST_ROWS = 64  # rows that contain a term before it gets a column
WEIGHT_COLUMN, BAG_COLUMN = 1 / 32, 1 / 16  # share of rows from which a column is faster, or smaller, than a list
COPY_ROWS = 4096
SMALL_VOCABULARY = 1 << 16  # terms that fit into 16 bits
MOST_DIM = 1 << 18  # terms of a vocabulary

Weights = Literal["uint8", "float32"]


class SparsePart(Protocol):
    """One memory-mapped segment."""

    @property
    def dim(self) -> int:
        """The size of the vocabulary."""

    @property
    def postings(self) -> int:
        """The number of postings: terms summed over all rows."""

    @property
    def lengths(self) -> Int64s:
        """The number of terms of each row."""

    @property
    def used(self) -> Int32s:
        """The terms that occur in some row."""

    @property
    def frequencies(self) -> Int32s:
        """The document frequency of each of the `used` terms."""

    @property
    def size(self) -> int:
        """The size in bytes."""

    def __len__(self) -> int:
        """The number of rows."""

    def offer(
        self, queries: Sparse, settings: SparseSettings, mask: Mask | None, first_row: int, buffer: Float32s, heaps: Heaps
    ) -> None:
        """Offer the best rows to the heaps; `buffer` has a zero per term of the vocabulary, on entry and on return."""

    def score(self, queries: Sparse, rows: Int64s, first_row: int, buffer: Float32s, scores: Float32s) -> None:
        """Write the scores of those `rows` (queries, n) that belong to this segment."""

    def take(self, rows: Int64s) -> Sparse:
        """Some rows, distinct and ascending, with the weights that their scores are computed from."""

    def terms_of(self, rows: Mask) -> Int32s:
        """The terms of the marked rows, row by row."""


@dataclass(frozen=True, eq=False)
class WeightedPart:
    """A segment of weighted terms."""

    folder: Path
    dim: int
    list_terms: Int32s
    column_terms: Int32s
    frequencies: Int32s
    arrays: SparseArrays

    def __len__(self) -> int:
        return len(self.arrays.scales)

    @property
    def postings(self) -> int:
        """See `SparsePart`."""
        return len(self.arrays.terms)

    @property
    def lengths(self) -> Int64s:
        """See `SparsePart`."""
        return np.diff(self.arrays.indptr)

    @property
    def used(self) -> Int32s:
        """See `SparsePart`."""
        return np.concatenate([self.list_terms, self.column_terms])

    @property
    def size(self) -> int:
        """See `SparsePart`."""
        return sum(array.nbytes for array in (self.list_terms, self.column_terms, self.frequencies, *self.arrays))

    @cached_property
    def _places(self) -> Int32s:
        """The place of each term of the vocabulary (kernels/sparse_bounds.py); not stored, as it may exceed the segment."""
        places = np.full(self.dim, NOWHERE, np.int32)
        places[self.list_terms] = np.arange(len(self.list_terms))
        places[self.column_terms] = FIRST_COLUMN - np.arange(len(self.column_terms))
        return places

    def offer(
        self, queries: Sparse, settings: SparseSettings, mask: Mask | None, first_row: int, buffer: Float32s, heaps: Heaps
    ) -> None:
        """See `SparsePart`."""
        options = (settings.terms, settings.candidates, self._places, self.arrays, *RowFilter.of(mask), first_row)
        search(queries.indptr, queries.terms, queries.weights, *options, buffer, heaps.scores, heaps.rows)

    def score(self, queries: Sparse, rows: Int64s, first_row: int, buffer: Float32s, scores: Float32s) -> None:
        """See `SparsePart`."""
        coded_rows = self.arrays[:4]
        kernels.score_rows(queries.indptr, queries.terms, queries.weights, rows, first_row, *coded_rows, buffer, scores)

    def take(self, rows: Int64s) -> Sparse:
        """See `SparsePart`."""
        indptr, places = take_ragged(self.arrays.indptr, rows)
        weights = np.repeat(self.arrays.scales[rows], np.diff(indptr)) * self.arrays.codes[places].astype(np.float32)
        terms = self._known(self.arrays.terms[places].astype(np.int32))
        ascends = np.diff(terms, prepend=-1, append=self.dim) > 0
        ascends[indptr] = True  # between two rows
        _require(bool(ascends.all()), self.folder, "a row with repeated or unordered terms")
        _require(bool(np.isfinite(weights).all()), self.folder, "a weight that is NaN or infinite")
        return Sparse(indptr, terms, weights, self.dim)

    def terms_of(self, rows: Mask) -> Int32s:
        """See `SparsePart`."""
        return self._known(self.arrays.terms[take_ragged(self.arrays.indptr, np.flatnonzero(rows))[1]].astype(np.int32))

    def _known(self, terms: NDArray[Any]) -> NDArray[Any]:
        """Terms of rows, checked; those of all rows are too many to be checked when the segment is opened."""
        _require(not len(terms) or bool(terms.min() >= 0 and terms.max() < self.dim), self.folder, "a term out of range")
        return terms

    @staticmethod
    def build(rows: Sparse, weights: Weights, folder: Path) -> None:
        """Write a segment."""
        indptr = kernels.count_positive(rows.indptr, rows.weights)
        terms, codes, scales = _create_rows(folder, rows.dim, len(rows), int(indptr[-1]), np.dtype(weights))
        write = kernels.encode_rows if weights == "uint8" else kernels.copy_rows
        write(rows.indptr, rows.terms, rows.weights, terms, codes, scales)
        _save_lists(folder, rows.dim, CodedRows(indptr, terms, codes, scales))

    @staticmethod
    def merge(parts: Sequence["WeightedPart"], keep: Sequence[Mask], folder: Path) -> None:
        """Copy the kept rows in chunks, and build their lists."""
        lengths = np.concatenate([part.lengths[mask] for part, mask in zip(parts, keep, strict=True)])
        indptr = offsets_of(lengths)
        first = parts[0]
        codes_type = first.arrays.codes.dtype
        terms, codes, scales = _create_rows(folder, first.dim, len(lengths), int(indptr[-1]), codes_type)
        to_row, to = 0, 0
        for part, mask in zip(parts, keep, strict=True):
            for start in range(0, len(part), COPY_ROWS):
                kept_rows = mask[start : start + COPY_ROWS]
                edges = part.arrays.indptr[start : start + len(kept_rows) + 1]
                kept_terms = np.repeat(kept_rows, np.diff(edges))
                count, size = int(kept_rows.sum()), int(kept_terms.sum())
                terms[to : to + size] = part._known(part.arrays.terms[edges[0] : edges[-1]][kept_terms])
                codes[to : to + size] = part.arrays.codes[edges[0] : edges[-1]][kept_terms]
                scales[to_row : to_row + count] = part.arrays.scales[start : start + len(kept_rows)][kept_rows]
                to_row, to = to_row + count, to + size
        _save_lists(folder, first.dim, CodedRows(indptr, terms, codes, scales))

    @staticmethod
    def open(folder: Path) -> "WeightedPart":
        """Memory-map a segment."""
        stored = StoredArrays(folder)
        scales = stored.floats("scales", (None,))
        terms, rows = stored.open("terms", (np.uint16, np.int32), (None,)), len(scales)
        dim, listed, columns, frequencies = _open_terms(stored, rows, len(terms))
        list_rows = stored.open("list_rows", np.uint16, (None,))
        windows, width = -(-rows // lists.WINDOW), -(-rows // BLOCK) * BLOCK_BYTES
        arrays = SparseArrays(
            indptr=stored.pointers("indptr", len(terms), rows),
            terms=terms,
            codes=stored.open("codes", (np.uint8, np.float32), terms.shape),
            scales=scales,
            list_most=_highest(stored, "list_most", len(listed)),
            list_ptr=stored.pointers("list_ptr", len(list_rows), windows * len(listed)),
            list_rows=list_rows,
            list_shares=stored.open("list_shares", np.uint8, list_rows.shape),
            column_most=_highest(stored, "column_most", len(columns)),
            column_tops=stored.open("column_tops", np.uint8, (len(columns), LEVELS)),
            columns=stored.open("columns", np.uint8, (len(columns) * width,)),
        )
        # Any 16 bits are a row of a full window, so only the rows of the last one are checked here.
        last, size = max(windows - 1, 0), rows - (windows - 1) * lists.WINDOW
        fits = list_rows[arrays.list_ptr[last * len(listed)] :].max(initial=0) < max(size, 1)
        stored.require(bool(fits), "list_rows", "rows out of range", f"less than {size}")
        return WeightedPart(folder, dim, listed, columns, frequencies, arrays)


@dataclass(frozen=True, eq=False, slots=True)
class BagPart:
    """A segment of terms without weights (kernels/bags.py).

    `scales` is the weight of every term of a row; it is computed when the segment is opened.
    """

    folder: Path
    dim: int
    scales: Float64s
    lengths: Int64s
    list_terms: Int32s
    list_ptr: Int64s
    gaps: UInt8s
    column_terms: Int32s
    bits: UInt64s
    frequencies: Int32s

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def postings(self) -> int:
        """See `SparsePart`."""
        return int(self.lengths.sum(dtype=np.int64))

    @property
    def used(self) -> Int32s:
        """See `SparsePart`."""
        return np.concatenate([self.list_terms, self.column_terms])

    @property
    def size(self) -> int:
        """See `SparsePart`."""
        arrays = (self.lengths, self.list_terms, self.list_ptr, self.gaps, self.column_terms, self.bits, self.frequencies)
        return sum(array.nbytes for array in arrays)

    def offer(
        self, queries: Sparse, settings: SparseSettings, mask: Mask | None, first_row: int, buffer: Float32s, heaps: Heaps
    ) -> None:
        """See `SparsePart`. Always exact: all rows are scored."""
        row_filter = RowFilter.of(mask)
        for query in range(len(queries)):
            totals = self._totals(queries, query)
            bags.offer_totals(totals, *row_filter, first_row, heaps.scores[query], heaps.rows[query])

    def score(self, queries: Sparse, rows: Int64s, first_row: int, buffer: Float32s, scores: Float32s) -> None:
        """See `SparsePart`."""
        here = (rows >= first_row) & (rows < first_row + len(self))
        for query in np.flatnonzero(here.any(axis=1)).tolist():
            scores[query, here[query]] = self._totals(queries, query)[rows[query, here[query]] - first_row]

    def take(self, rows: Int64s) -> Sparse:
        """See `SparsePart`."""
        kept = self.rows(np.isin(np.arange(len(self)), rows))
        weights = np.repeat(self.scales[rows], np.diff(kept.indptr)).astype(np.float32)
        return Sparse(kept.indptr, kept.terms, weights, self.dim)

    def terms_of(self, rows: Mask) -> Int32s:
        """See `SparsePart`."""
        return self.rows(rows).terms

    def rows(self, keep: Mask) -> Sparse:
        """The kept rows, with weights of 1."""
        indptr = offsets_of(self.lengths[keep])
        cursor = np.full(len(self), -1, np.int64)
        cursor[keep] = indptr[:-1]
        terms = np.empty(indptr[-1], np.int32)
        bags.unfold_bags(self.list_terms, self.list_ptr, self.gaps, self.column_terms, self.bits, cursor, terms)
        _require(np.array_equal(cursor[keep], indptr[1:]), self.folder, "rows with other terms than their number of terms says")
        return Sparse(indptr, terms, np.broadcast_to(np.float32(1), terms.shape), self.dim)

    def _totals(self, queries: Sparse, query: int) -> Float64s:
        """The scores of all rows for one query."""
        span = slice(queries.indptr[query], queries.indptr[query + 1])
        totals = np.zeros(len(self))
        arrays = (self.list_terms, self.list_ptr, self.gaps, self.column_terms, self.bits)
        bags.add_terms(queries.terms[span], queries.weights[span], *arrays, totals)
        return totals * self.scales

    @staticmethod
    def build(rows: Sparse, folder: Path) -> None:
        """Write a segment; the weights of the rows are ignored."""
        counts = np.bincount(rows.terms, minlength=max(1, rows.dim))
        numbers, list_terms, column_terms = _divide(counts, len(rows), BAG_COLUMN)
        list_ptr = bags.measure_lists(rows.indptr, rows.terms, numbers.lists)
        gaps = create_array(folder, "gaps", np.uint8, (int(list_ptr[-1]),))
        bits = create_array(folder, "bits", np.uint64, (len(column_terms), -(-len(rows) // bags.WORD)))
        bags.fill_bags(rows.indptr, rows.terms, *numbers, list_ptr, gaps, bits)
        lengths = np.diff(rows.indptr).astype(np.int32)
        frequencies = _frequencies(counts, list_terms, column_terms)
        save_arrays(folder, dim=np.array(rows.dim), lengths=lengths, frequencies=frequencies)
        save_arrays(folder, list_terms=list_terms, list_ptr=list_ptr, column_terms=column_terms)

    @staticmethod
    def merge(parts: Sequence["BagPart"], keep: Sequence[Mask], folder: Path) -> None:
        """Write the kept rows of all segments."""
        BagPart.build(Sparse.concat([part.rows(mask) for part, mask in zip(parts, keep, strict=True)]), folder)

    @staticmethod
    def open(folder: Path, weighing: TermWeighting = PLAIN) -> "BagPart":
        """Memory-map a segment."""
        stored = StoredArrays(folder)
        lengths: AnyArray = stored.integers("lengths", 0, MOST_DIM)
        dim, listed, columns, frequencies = _open_terms(stored, len(lengths), int(lengths.sum(dtype=np.int64)))
        gaps = stored.open("gaps", np.uint8, (None,))
        return BagPart(
            folder,
            dim,
            bag_scales(lengths, weighing),
            lengths,
            listed,
            stored.pointers("list_ptr", len(gaps), len(listed)),
            gaps,
            columns,
            stored.open("bits", np.uint64, (len(columns), -(-len(lengths) // bags.WORD))),
            frequencies,
        )


def _open_terms(stored: StoredArrays, rows: int, postings: int) -> tuple[int, Int32s, Int32s, Int32s]:
    """The size of the vocabulary, the terms with a list and those with a column, and the document frequencies of both."""
    dim = stored.number("dim", np.int64, 0, MOST_DIM)
    listed, columns = stored.ids("list_terms", dim), stored.ids("column_terms", dim)
    both = len(np.intersect1d(listed, columns, assume_unique=True))
    stored.require(both == 0, "column_terms", f"{both} terms that have a list as well", "none")
    frequencies = stored.integers("frequencies", 1, rows, (len(listed) + len(columns),))
    total = int(frequencies.sum(dtype=np.int64))
    stored.require(total == postings, "frequencies", f"a sum of {total}", f"{postings}, the number of postings")
    return dim, listed, columns, frequencies


def _highest(stored: StoredArrays, name: str, terms: int) -> Float32s:
    """The highest weight of each term, above 0: bounds are multiples of them."""
    values = stored.floats(name, (terms,))
    stored.require(bool((values > 0).all()), name, "weights of 0 or less", "positive ones")
    return values


def _require(fits: bool, folder: Path, fault: str) -> None:
    """Raise if something in a folder was found damaged while it was searched."""
    if not fits:
        raise CollectionDamaged(f"{folder} has {fault}; run `trilens check` and restore it or index again")


def _create_rows(folder: Path, dim: int, rows: int, postings: int, codes: Any) -> tuple[Any, Any, Any]:
    """Files for the terms, codes and scales of rows."""
    terms = create_array(folder, "terms", np.uint16 if dim <= SMALL_VOCABULARY else np.int32, (postings,))
    return terms, create_array(folder, "codes", codes, (postings,)), create_array(folder, "scales", np.float32, (rows,))


def _save_lists(folder: Path, dim: int, rows: CodedRows) -> None:
    """Build and write the lists and columns of rows whose terms, codes and scales are written already."""
    counts, highest = lists.count_terms(rows, max(1, dim))
    numbers, list_terms, column_terms = _divide(counts, len(rows.scales), WEIGHT_COLUMN)
    list_ptr, shares = lists.count_shares(rows, highest, numbers)
    level_of, tops = lists.choose_levels(shares)
    list_rows = create_array(folder, "list_rows", np.uint16, (int(list_ptr[-1]),))
    list_shares = create_array(folder, "list_shares", np.uint8, list_rows.shape)
    columns = create_array(folder, "columns", np.uint8, (len(column_terms) * -(-len(rows.scales) // BLOCK) * BLOCK_BYTES,))
    lists.fill_lists(rows, highest, numbers, level_of, ListArrays(list_ptr, list_rows, list_shares, columns))
    save_arrays(folder, dim=np.array(dim), indptr=rows.indptr)
    save_arrays(folder, list_terms=list_terms, list_most=highest[list_terms], list_ptr=list_ptr)
    save_arrays(folder, column_terms=column_terms, column_most=highest[column_terms], column_tops=tops)
    save_arrays(folder, frequencies=_frequencies(counts, list_terms, column_terms))


def _divide(counts: Int64s, rows: int, share: float) -> tuple[TermNumbers, Int32s, Int32s]:
    """Divide the terms into those with a list and those with a column: their numbers, and both sets of terms."""
    frequent = counts >= max(LEAST_ROWS, share * rows)
    rare = (counts > 0) & ~frequent
    numbers = TermNumbers(*(np.where(mask, np.cumsum(mask) - 1, -1) for mask in (rare, frequent)))
    return numbers, np.flatnonzero(rare).astype(np.int32), np.flatnonzero(frequent).astype(np.int32)


def _frequencies(counts: Int64s, list_terms: Int32s, column_terms: Int32s) -> Int32s:
    """The document frequencies of the terms in the order of `used`."""
    return np.asarray(counts[np.concatenate([list_terms, column_terms])], np.int32)
