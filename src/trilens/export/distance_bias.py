"""Relative attention bias in logarithmic distance buckets, as in T5 and MPNet."""

import math

import numpy as np

from trilens.export.graph import Graph
from trilens.kernels.array_types import Float32s, Int64s


def bucket_of(distances: Int64s, buckets: int, farthest: int) -> Int64s:
    """The bucket of each relative position.

    Half of the buckets are for following tokens. In each half, the first half of the buckets hold one distance each; the
    others grow logarithmically, and the last one holds all distances from `farthest` on.
    """
    half, size = buckets // 2, np.abs(distances)
    exact = half // 2
    # In float32 and in this order, as in transformers: a distance at a boundary must not change buckets.
    wide = np.log(np.maximum(size, 1).astype(np.float32) / np.float32(exact)) / np.float32(math.log(farthest / exact))
    wide = np.minimum(exact + (wide * np.float32(half - exact)).astype(np.int64), half - 1)
    return np.where(distances > 0, half, 0) + np.where(size < exact, size, wide)


def distance_bias(graph: Graph, table: Float32s, farthest: int) -> str:
    """The bias added to attention logits (1, heads, tokens, tokens); `table` (buckets, heads) has a bias per bucket."""
    distances = np.arange(-farthest, farthest + 1)
    by_distance = graph.constant("distances", table[bucket_of(distances, len(table), farthest)], np.float32)
    zero, one = graph.constant("zero", 0, np.int64), graph.constant("one.step", 1, np.int64)
    first, second = graph.constant("first", [0], np.int64), graph.constant("second", [1], np.int64)
    count = graph.add("Squeeze", [graph.add("Shape", ["input_ids"], "length", start=1, end=2), first], "count")
    positions = graph.add("Range", [zero, count, one], "positions")
    apart = graph.add("Sub", [positions, graph.add("Unsqueeze", [positions, second], "positions.column")], "apart")
    low, high = graph.constant("nearest", -farthest, np.int64), graph.constant("farthest", farthest, np.int64)
    rows = graph.add("Add", [graph.add("Clip", [apart, low, high], "apart.clipped"), high], "apart.row")
    biases = graph.add("Transpose", [graph.add("Gather", [by_distance, rows], "biases")], "biases.first", perm=[2, 0, 1])
    return graph.add("Unsqueeze", [biases, first], "distance.bias")
