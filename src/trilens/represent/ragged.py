"""Rows of different lengths inside one flat array, cut by offsets."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def take_ragged(offsets: NDArray[np.int64], rows: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets of the chosen rows, and the positions of their items in the flat array."""
    starts = offsets[:-1][rows]
    lengths = offsets[1:][rows] - starts
    taken = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=taken[1:])
    picked = np.repeat(starts - taken[:-1], lengths) + np.arange(taken[-1])
    return taken, picked


def concat_offsets(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Offsets of several flat arrays laid end to end."""
    lengths = np.concatenate([np.diff(part) for part in parts])
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets
