"""Rows of different lengths inside one flat array, cut by offsets."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def offsets_of(lengths: NDArray[np.integer] | NDArray[np.bool_]) -> NDArray[np.int64]:
    """Where each row starts when they are laid end to end, and where the last one ends."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def take_ragged(offsets: NDArray[np.int64], rows: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets of the chosen rows, and the positions of their items in the flat array."""
    starts = offsets[:-1][rows]
    lengths = offsets[1:][rows] - starts
    taken = offsets_of(lengths)
    picked = np.repeat(starts - taken[:-1], lengths) + np.arange(taken[-1])
    return taken, picked


def concat_offsets(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Offsets of several flat arrays laid end to end."""
    return offsets_of(np.concatenate([np.diff(part) for part in parts]))
