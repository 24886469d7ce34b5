"""Attention biased by the distance of two tokens, in buckets that widen with it, as T5 and MPNet have it."""

import math

import numpy as np
from numpy.typing import NDArray

from trilens.export.graph import Graph
from trilens.export.rounding import Floats


def bucket_of(distances: NDArray[np.int64], buckets: int, farthest: int) -> NDArray[np.int64]:
    """The bucket of each distance (of a token from the one that looks at it).

    Half of the buckets are for tokens that follow. Of each half, half holds one distance each; the others grow with the
    logarithm, and the last has everything from `farthest` on.
    """
    half, size = buckets // 2, np.abs(distances)
    exact = half // 2
    # In float32 and in this order, as transformers does: a distance at the edge must not fall to the other side.
    wide = np.log(np.maximum(size, 1).astype(np.float32) / np.float32(exact)) / np.float32(math.log(farthest / exact))
    wide = np.minimum(exact + (wide * np.float32(half - exact)).astype(np.int64), half - 1)
    return np.where(distances > 0, half, 0) + np.where(size < exact, size, wide)


def distance_bias(graph: Graph, table: Floats, farthest: int) -> str:
    """What is added to the attention (1, heads, tokens, tokens); `table` (buckets, heads) has a bias for each bucket."""
    every = np.arange(-farthest, farthest + 1)
    by_distance = graph.constant("distances", table[bucket_of(every, len(table), farthest)], np.float32)
    zero, one = graph.constant("zero", 0, np.int64), graph.constant("one.step", 1, np.int64)
    first, second = graph.constant("first", [0], np.int64), graph.constant("second", [1], np.int64)
    count = graph.add("Squeeze", [graph.add("Shape", ["input_ids"], "length", start=1, end=2), first], "count")
    places = graph.add("Range", [zero, count, one], "positions")
    apart = graph.add("Sub", [places, graph.add("Unsqueeze", [places, second], "positions.column")], "apart")
    low, high = graph.constant("nearest", -farthest, np.int64), graph.constant("farthest", farthest, np.int64)
    rows = graph.add("Add", [graph.add("Clip", [apart, low, high], "apart.clipped"), high], "apart.row")
    biases = graph.add("Transpose", [graph.add("Gather", [by_distance, rows], "biases")], "biases.first", perm=[2, 0, 1])
    return graph.add("Unsqueeze", [biases, first], "distance.bias")
