"""Late-interaction search over quantised token vectors: score centroids, gather candidates, re-rank them, compute MaxSim.

A query has m tokens. `CentroidScores` holds their inner products with the centroids. Everything up to `rerank` only selects
candidates; `maxsim` computes the score.
"""

from typing import NamedTuple

import numpy as np

from trilens.kernels.array_types import Float32s, Int16s, Int32s, Int64s, Mask, UInt8s, Unsigned
from trilens.kernels.compile import fast_kernel, inline_kernel, kernel
from trilens.kernels.dense import rough_product
from trilens.kernels.lanes import (
    LANES,
    WIDTH,
    at_least,
    code_product,
    copy_to,
    decode_codes,
    lowest_bit,
    raise_to,
    raise_to_products,
)
from trilens.kernels.prefetch import prefetch
from trilens.kernels.residual import CodeTables, TokenCodes

BINS = 1024
AHEAD = 8  # tokens whose codes are prefetched while one is compared


class TokenQuery(NamedTuple):
    """The token vectors of one query.

    vectors  (m, dims) float vectors
    steps    (m, dims) vectors times the quantisation steps, as integers
    units    (m,) the value of 1 in `steps`
    columns  (dims, lanes) transposed vectors, zero-padded to a multiple of WIDTH tokens
    """

    vectors: Float32s
    steps: Int16s
    units: Float32s
    columns: Float32s


class CentroidScores(NamedTuple):
    """Inner products of the tokens of one query with the centroids.

    scores         (centroids, m) inner products; -inf: not computed
    score_bytes    (centroids, lanes) the same scaled to 0…255, with the score of the group leader where none was computed; rows
                   are a multiple of 32 bytes, so that one instruction compares 32 query tokens
    units          (m,) bytes per unit of similarity
    probed         (m, probes) the best centroids of each query token, best first
    probed_scores  (m, probes) their scores
    """

    scores: Float32s
    score_bytes: UInt8s
    units: Float32s
    probed: Unsigned
    probed_scores: Float32s


class CentroidLists(NamedTuple):
    """The inverted index of a segment: centroid c is the nearest of some token of `rows[ptr[c]:ptr[c + 1]]`."""

    ptr: Int64s
    rows: Int32s


@kernel
def best_groups(leader_scores: Float32s, groups: Int64s) -> None:
    """Fill `groups` with the groups whose leaders score highest for one query token, best first."""
    size = 0
    for g in range(len(leader_scores)):
        if size < len(groups) or leader_scores[g] > leader_scores[groups[size - 1]]:
            rank = min(size, len(groups) - 1)
            while rank > 0 and leader_scores[groups[rank - 1]] < leader_scores[g]:
                groups[rank] = groups[rank - 1]
                rank -= 1
            groups[rank] = g
            size = min(size + 1, len(groups))


@fast_kernel
def score_centroids(
    query: Float32s,
    leader_scores: Float32s,
    reach: int,
    group_ptr: Int64s,
    centroids: Float32s,
    to: CentroidScores,
) -> None:
    """Score the centroids of the `reach` best groups of each query token, and select its best centroids.

    query (m, dims), leader_scores (m, groups). Fills `to`, whose `scores` are -inf and whose `score_bytes` are 0 on entry.
    """
    scores, score_bytes, units, probed, probed_scores = to.scores, to.score_bytes, to.units, to.probed, to.probed_scores
    probes = probed.shape[1]
    groups = np.empty((len(query), reach), np.int64)
    lowest = np.empty(len(query), np.float32)
    for token in range(len(query)):
        best_groups(leader_scores[token], groups[token])
        lowest[token] = np.min(leader_scores[token])
        size = 0
        ids, values = probed[token], probed_scores[token]
        for g in groups[token]:
            for c in range(group_ptr[g], group_ptr[g + 1]):
                score = rough_product(query[token], centroids[c])
                scores[c, token] = score
                lowest[token] = min(lowest[token], score)
                if size < probes or score > values[probes - 1]:
                    rank = min(size, probes - 1)
                    while rank > 0 and values[rank - 1] < score:
                        values[rank], ids[rank] = values[rank - 1], ids[rank - 1]
                        rank -= 1
                    values[rank], ids[rank] = score, c
                    size = min(size + 1, probes)
        for i in range(size, probes):  # fewer centroids than probes: repeat the last one, which has no effect
            values[i], ids[i] = values[size - 1], ids[size - 1]
        units[token] = np.float32(254) / max(values[0] - lowest[token], np.float32(1e-6))
    row, flat_bytes = np.zeros(score_bytes.shape[1], np.uint8), score_bytes.reshape(-1)
    for g in range(len(group_ptr) - 1):
        for token in range(len(query)):
            row[token] = min(np.float32(254), (leader_scores[token, g] - lowest[token]) * units[token])
        for c in range(group_ptr[g], group_ptr[g + 1]):
            for block in range(0, len(row), LANES):
                copy_to(flat_bytes, c * len(row) + block, row, block)
    for token in range(len(query)):
        for g in groups[token]:
            for c in range(group_ptr[g], group_ptr[g + 1]):
                score_bytes[c, token] = (scores[c, token] - lowest[token]) * units[token]


@kernel
def gather(
    scores: CentroidScores,
    lists: CentroidLists,
    allowed: Mask,
    filtered: bool,
    gains: Float32s,
    last_token: Int32s,
    touched: Int32s,
) -> int:
    """Sum, for each candidate row, the margin of its best probed centroid over the last probed one, over all query tokens.

    Lists are read from the best centroid of a token to its last, so only the first occurrence of a row counts. `gains` and
    `last_token` (rows,) are 0 on entry. Returns the number of candidate rows, which are listed in `touched`.
    """
    probed, probed_scores = scores.probed, scores.probed_scores
    list_ptr, list_rows, rows = lists.ptr, lists.rows, np.uint32(len(gains))
    count = 0
    for token in range(len(probed)):
        last = probed_scores[token, probed.shape[1] - 1]
        for i in range(probed.shape[1]):
            gain = probed_scores[token, i] - last
            centroid = probed[token, i]
            if centroid >= len(list_ptr) - 1 or (i > 0 and centroid == probed[token, i - 1]):
                continue  # a codebook page newer than this segment, or a repeated centroid
            for row in list_rows[list_ptr[centroid] : list_ptr[centroid + 1]]:
                if np.uint32(row) < rows and last_token[row] != token + 1:  # a row out of range is damage
                    if last_token[row] == 0:
                        if filtered and not allowed[row]:
                            continue
                        touched[count] = row
                        count += 1
                    last_token[row] = token + 1
                    gains[row] += gain
    return count


@inline_kernel
def bin_of(value: np.float32) -> int:
    """The whole part of a value from 0 to BINS - 1; 0 for values outside, which damaged arrays cause."""
    return int(value) if value >= 0 and value < BINS else 0


@kernel
def keep_best(values: Float32s, rows: Int32s, count: int, keep: int) -> int:
    """Move about `keep` of the first `count` rows, those with the highest values, to the front; returns their number."""
    if count <= keep:
        return count
    highest = np.float32(0)
    for i in range(count):
        highest = max(highest, values[rows[i]])
    scale = np.float32(BINS - 1) / max(highest, np.float32(1e-9))
    bins = np.zeros(BINS, np.int64)
    for i in range(count):
        bins[bin_of(values[rows[i]] * scale)] += 1
    lowest, total = BINS, 0
    while lowest > 0 and total < keep:
        lowest -= 1
        total += bins[lowest]
    kept = 0
    for i in range(count):
        if bin_of(values[rows[i]] * scale) >= lowest:
            rows[kept] = rows[i]
            kept += 1
    return kept


@fast_kernel
def rerank(
    rows: Int32s,
    query: TokenQuery,
    centroid_scores: CentroidScores,
    margins: UInt8s,
    offsets: Int64s,
    codes: TokenCodes,
    tables: CodeTables,
    row_scores: Float32s,
) -> None:
    """Score rows by those of their tokens whose centroid is near the best centroid of the row for some query token.

    Row r has the tokens `offsets[r]:offsets[r + 1]`; one without tokens scores -inf. With margins of 255 the score is MaxSim up
    to rounding; otherwise it is a lower bound of it.
    """
    vectors, query_units, centroids, levels = query.vectors, query.units, tables.centroids, tables.levels
    sizes, stretches = tables.sizes, tables.stretches
    scores, score_bytes = centroid_scores.scores, centroid_scores.score_bytes
    nearest, size_codes, stretch_codes = codes.nearest, codes.sizes, codes.stretches
    lanes, width, dims = score_bytes.shape[1], codes.residuals.shape[1], vectors.shape[1]
    bits = 8 * width // dims
    last_centroid = np.int64(len(centroids) - 1)
    flat_bytes, flat_codes, flat_query = score_bytes.reshape(-1), codes.residuals.reshape(-1), query.steps.reshape(-1)
    highest = np.empty(lanes, np.uint8)
    best = np.empty(lanes, np.float32)
    near_tokens = np.empty(1024, np.int64)
    for i in range(len(rows)):
        start, end = offsets[rows[i]], offsets[rows[i] + 1]
        if end - start > len(near_tokens):
            near_tokens = np.empty(2 * (end - start), np.int64)
        highest[:] = 0
        for position in range(start, end):
            centroid = min(np.int64(nearest[position]), last_centroid)
            for block in range(0, lanes, LANES):
                raise_to(highest, block, flat_bytes, centroid * lanes + block)
        for token in range(len(vectors)):
            best[token] = -np.inf
            below = np.int64(highest[token]) - np.int64(margins[token])  # int() of a byte would be unsigned
            highest[token] = max(below, np.int64(0))
        highest[len(vectors) :] = 255
        count = 0
        for position in range(start, end):
            hit = np.uint64(0)
            centroid = min(np.int64(nearest[position]), last_centroid)
            for block in range(0, lanes, LANES):
                hit |= at_least(flat_bytes, centroid * lanes + block, highest, block)
            near_tokens[count] = position
            count += hit != 0
        for c in range(min(count, AHEAD)):
            prefetch(flat_codes, near_tokens[c] * width)
        for c in range(count):
            if c + AHEAD < count:
                prefetch(flat_codes, near_tokens[c + AHEAD] * width)
            position = near_tokens[c]
            centroid = min(np.int64(nearest[position]), last_centroid)
            size, stretch = sizes[size_codes[position]], stretches[stretch_codes[position]]
            for block in range(0, lanes, LANES):
                hits = at_least(flat_bytes, centroid * lanes + block, highest, block)
                while hits:
                    token = block + lowest_bit(hits)
                    hits &= hits - np.uint64(1)
                    if scores[centroid, token] == -np.inf:
                        scores[centroid, token] = rough_product(vectors[token], centroids[centroid])
                    product = code_product(flat_codes, position * width, width, bits, levels, flat_query, token * dims)
                    similarity = stretch * (scores[centroid, token] + size * query_units[token] * np.float32(product))
                    best[token] = max(best[token], similarity)
        total = np.float32(0)
        for token in range(len(vectors)):
            total += best[token]
        row_scores[i] = total


@fast_kernel
def maxsim(
    rows: Int32s,
    columns: Float32s,
    tokens: int,
    offsets: Int64s,
    codes: TokenCodes,
    tables: CodeTables,
    row_scores: Float32s,
) -> None:
    """Compute MaxSim of rows over all their decoded tokens, the score of the multi lens; -inf for a row without tokens.

    `columns` (dims, lanes) are those of `TokenQuery`; `tokens` is the number of query tokens.
    """
    centroids, steps, sizes, stretches, levels = tables.centroids, tables.steps, tables.sizes, tables.stretches, tables.levels
    nearest, size_codes, stretch_codes = codes.nearest, codes.sizes, codes.stretches
    lanes, width = columns.shape[1], codes.residuals.shape[1]
    bits = 8 * width // columns.shape[0]
    flat_columns, flat_codes = columns.reshape(-1), codes.residuals.reshape(-1)
    best = np.empty(lanes, np.float32)
    dims, last_centroid = columns.shape[0], np.int64(len(centroids) - 1)
    pair = np.empty(2 * dims, np.float32)
    for i in range(len(rows)):
        best[:] = -np.inf
        start, end = offsets[rows[i]], offsets[rows[i] + 1]
        for first in range(start, end, 2):
            for second in range(2):  # the last of an odd number of tokens is compared twice, which has no effect
                position = min(first + second, end - 1)
                stretch = stretches[stretch_codes[position]]
                scale = stretch * sizes[size_codes[position]]
                packed = (flat_codes, position * width, width, bits, levels)
                centroid = min(np.int64(nearest[position]), last_centroid)  # one out of range is damage
                decode_codes(*packed, centroids[centroid], stretch, steps, scale, pair, second * dims)
            for block in range(0, lanes, WIDTH):
                raise_to_products(best, block, pair, flat_columns, block, lanes)
        total = np.float32(0)
        for token in range(tokens):
            total += best[token]
        row_scores[i] = total
