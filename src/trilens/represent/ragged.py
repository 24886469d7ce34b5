"""Rows of different lengths in one flat array, separated by offsets."""

from collections.abc import Sequence

import numpy as np

from trilens.kernels.array_types import Int64s, Integers, Mask


def offsets_of(lengths: Integers | Mask) -> Int64s:
    """The offsets of rows with these lengths: the start of each row, and the end of the last."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def take_ragged(offsets: Int64s, rows: Integers) -> tuple[Int64s, Int64s]:
    """The offsets of the selected rows, and the positions of their items in the flat array."""
    starts = offsets[:-1][rows]
    lengths = offsets[1:][rows] - starts
    taken_offsets = offsets_of(lengths)
    positions = np.repeat(starts - taken_offsets[:-1], lengths) + np.arange(taken_offsets[-1])
    return taken_offsets, positions


def concat_offsets(parts: Sequence[Int64s]) -> Int64s:
    """The offsets of several flat arrays after concatenation."""
    return offsets_of(np.concatenate([np.diff(part) for part in parts]))
