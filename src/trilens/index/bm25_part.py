"""`Bm25Part`: the inverted index of one segment, with raw term counts and block maxima (see kernels/postings.py)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trilens.kernels.array_types import Float32s, Int32s, Int64s, Mask, UInt16s, UInt32s, UInt64s
from trilens.kernels.postings import PostingLists, copy_kept, count_cells, count_kept, fill_cells, invert
from trilens.represent.arrays import create_array, save_arrays, scratch_array
from trilens.represent.counts import Counts
from trilens.represent.stored import StoredArrays
from trilens.represent.vocabulary import Vocabulary

MOST_WORDS = np.iinfo(np.int32).max  # of a row
LEAST_LENGTH = 1e-9  # of an average row: fewer than one word in the largest segment


@dataclass(frozen=True, slots=True)
class LengthNorm:
    """BM25's document length normalisation: k1 · (1 − b + b · length / average length)."""

    k1: float
    b: float

    def of(self, lengths: Int32s, average: float) -> Float32s:
        """The normalisation of each row."""
        norms: Float32s = (self.k1 * (1 - self.b + self.b * lengths / average)).astype(np.float32)
        return norms


@dataclass(frozen=True, eq=False, slots=True)
class Bm25Part:
    """Vocabulary, inverted index, and the length of each row in words.

    The block maxima (`bests`) hold for `average_length`, that of the segment when it was written.
    """

    average_length: float
    vocabulary: Vocabulary
    lengths: Int32s
    frequencies: Int32s
    cell_ptr: Int64s
    cells: Int64s
    bests: UInt64s
    postings: UInt16s
    counts: UInt32s

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def lists(self) -> PostingLists:
        """The inverted index as kernels take it."""
        return PostingLists(self.cell_ptr, self.cells, self.bests, self.postings, self.counts)

    @staticmethod
    def open(folder: Path) -> "Bm25Part":
        """Map a part that `build` or `merge` wrote."""
        arrays, vocabulary = StoredArrays(folder), Vocabulary.open(folder)
        lengths = arrays.integers("lengths", 0, MOST_WORDS)
        cells, postings = arrays.open("cells", np.int64, (None,)), arrays.open("postings", np.uint16, (None,))
        frequencies = arrays.integers("frequencies", 0, len(lengths), (len(vocabulary),))
        total = int(frequencies.sum(dtype=np.int64))
        arrays.require(total == len(postings), "frequencies", f"a sum of {total}", f"{len(postings)}, the number of postings")
        return Bm25Part(
            arrays.number("average_length", np.float64, LEAST_LENGTH, MOST_WORDS),
            vocabulary,
            lengths,
            frequencies,
            arrays.pointers("cell_ptr", len(cells), len(vocabulary)),
            cells,
            arrays.open("bests", np.uint64, cells.shape),
            postings,
            arrays.open("counts", (np.uint8, np.uint16, np.uint32), postings.shape),
        )

    @staticmethod
    def build(counted: Counts, norm: LengthNorm, folder: Path) -> None:
        """Write the inverted index of one batch."""
        sparse = counted.sparse
        list_ptr, rows, counts = invert(sparse.indptr, sparse.terms, sparse.weights, sparse.dim)
        counts = counts.astype(np.min_scalar_type(int(counts.max(initial=0))))
        _save(folder, norm, counted.vocabulary, counted.lengths, list_ptr, rows, counts)

    @staticmethod
    def merge(parts: Sequence["Bm25Part"], keep: Sequence[Mask], norm: LengthNorm, folder: Path) -> None:
        """Write the inverted index of all kept rows; terms without a kept row are dropped."""
        union, merged = Vocabulary.merge([part.vocabulary for part in parts])
        sources = list(zip(parts, _row_maps(keep), merged, strict=True))
        kept = np.zeros(len(union), np.int64)
        for part, row_map, term_map in sources:
            count_kept(part.lists, row_map, term_map, kept)
        used = kept > 0
        list_ptr = np.concatenate([[0], np.cumsum(kept[used])])
        cursor = np.cumsum(kept) - kept
        dtype = np.result_type(*(part.counts.dtype for part in parts))
        size = int(list_ptr[-1])
        with scratch_array(folder, "rows", np.int32, size) as rows, scratch_array(folder, "row_counts", dtype, size) as counts:
            for part, row_map, term_map in sources:
                copy_kept(part.lists, row_map, term_map, cursor, rows, counts)
            lengths = np.concatenate([part.lengths[mask] for part, mask in zip(parts, keep, strict=True)])
            _save(folder, norm, union.keep(used), lengths, list_ptr, rows, counts)


def average_length(total: int, rows: int) -> float:
    """Mean row length; 1 where there are no words at all, and no score depends on it."""
    return total / rows if total else 1.0


def _save(
    folder: Path,
    norm: LengthNorm,
    vocabulary: Vocabulary,
    lengths: Int32s,
    list_ptr: Int64s,
    rows: Int32s,
    counts: UInt32s,
) -> None:
    average = average_length(int(lengths.sum(dtype=np.int64)), len(lengths))
    cell_ptr = count_cells(list_ptr, rows)
    cells = create_array(folder, "cells", np.int64, (int(cell_ptr[-1]),))
    bests = create_array(folder, "bests", np.uint64, cells.shape)
    postings = create_array(folder, "postings", np.uint16, (len(rows),))
    to_counts = create_array(folder, "counts", counts.dtype, (len(rows),))
    fill_cells(list_ptr, rows, counts, norm.of(lengths, average), PostingLists(cell_ptr, cells, bests, postings, to_counts))
    save_arrays(folder, lengths=lengths, cell_ptr=cell_ptr, frequencies=np.diff(list_ptr).astype(np.int32))
    save_arrays(folder, average_length=np.array(average))
    vocabulary.save(folder)


def _row_maps(keep: Sequence[Mask]) -> list[Int32s]:
    """For each part the row of each of its rows in the merged segment; -1 for dropped rows."""
    maps, first = [], 0
    for mask in keep:
        maps.append(np.where(mask, first + np.cumsum(mask) - 1, -1).astype(np.int32))
        first += int(mask.sum())
    return maps
