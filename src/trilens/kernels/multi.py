"""Search over coded token vectors: centroids first, then the documents near them, then the tokens that can matter.

A query has m tokens. `scores` (centroids, m) holds their inner products with every centroid that was looked at (-inf: not yet),
`score_bytes` (centroids, lanes) the same in 0…255, those not looked at with the score of their group's leader, in rows of 32
bytes or a multiple, so that one instruction compares 32 query tokens. Everything up to `rerank` decides only who is looked at;
`maxsim` gives the score.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trilens.kernels.compile import fast_kernel, kernel
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
from trilens.kernels.topk import offer

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Rows = NDArray[np.int32]
Bytes = NDArray[np.uint8]
Centroids = NDArray[np.unsignedinteger[Any]]
Mask = NDArray[np.bool_]
Levels = NDArray[np.int8]
Shorts = NDArray[np.int16]

BINS = 1024
AHEAD = 8  # tokens whose codes are being fetched while one is compared


@kernel
def best_groups(leader_scores: Floats, groups: Ints) -> None:
    """The groups with the best leaders for one query token, as many as there is room for, best first."""
    size = 0
    for g in range(len(leader_scores)):
        if size < len(groups) or leader_scores[g] > leader_scores[groups[size - 1]]:
            at = min(size, len(groups) - 1)
            while at > 0 and leader_scores[groups[at - 1]] < leader_scores[g]:
                groups[at] = groups[at - 1]
                at -= 1
            groups[at] = g
            size = min(size + 1, len(groups))


@fast_kernel
def score_centroids(
    query: Floats,
    leader_scores: Floats,
    reach: int,
    group_ptr: Ints,
    centroids: Floats,
    probes: int,
    scores: Floats,
    score_bytes: Bytes,
    units: Floats,
    probed: Centroids,
    probed_scores: Floats,
) -> None:
    """Score the members of the `reach` best groups of each query token, and find its `probes` best centroids.

    query (m, dims), leader_scores (m, groups). Fills `scores` (-inf on entry) and `score_bytes` (0 on entry), the bytes per
    unit of similarity `units` (m,), and for each query token its best centroids with their scores (m, probes), best first.
    """
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
                    at = min(size, probes - 1)
                    while at > 0 and values[at - 1] < score:
                        values[at], ids[at] = values[at - 1], ids[at - 1]
                        at -= 1
                    values[at], ids[at] = score, c
                    size = min(size + 1, probes)
        for i in range(size, probes):  # fewer centroids than probes: the last one again, which changes nothing
            values[i], ids[i] = values[size - 1], ids[size - 1]
        units[token] = np.float32(254) / max(values[0] - lowest[token], np.float32(1e-6))
    row, flat = np.zeros(score_bytes.shape[1], np.uint8), score_bytes.reshape(-1)
    for g in range(len(group_ptr) - 1):
        for token in range(len(query)):
            row[token] = min(np.float32(254), (leader_scores[token, g] - lowest[token]) * units[token])
        for c in range(group_ptr[g], group_ptr[g + 1]):
            for block in range(0, len(row), LANES):
                copy_to(flat, c * len(row) + block, row, block)
    for token in range(len(query)):
        for g in groups[token]:
            for c in range(group_ptr[g], group_ptr[g + 1]):
                score_bytes[c, token] = (scores[c, token] - lowest[token]) * units[token]


@kernel
def gather(
    probed: Centroids,
    probed_scores: Floats,
    list_ptr: Ints,
    list_rows: Rows,
    allowed: Mask,
    filtered: bool,
    gains: Floats,
    seen: Rows,
    touched: Rows,
) -> int:
    """Add up, for each row near the query, what its best probed centroid gives each query token over the last probed one.

    Lists are read from the best centroid of a token to its last, so the first time that a row is met counts. `gains` and
    `seen` (rows,) are 0 on entry. Returns how many rows were touched; they are listed in `touched`.
    """
    count = 0
    for token in range(len(probed)):
        last = probed_scores[token, probed.shape[1] - 1]
        for i in range(probed.shape[1]):
            gain = probed_scores[token, i] - last
            centroid = probed[token, i]
            if centroid >= len(list_ptr) - 1 or (i > 0 and centroid == probed[token, i - 1]):
                continue  # a page younger than this part, or nothing more to probe
            for row in list_rows[list_ptr[centroid] : list_ptr[centroid + 1]]:
                if seen[row] != token + 1:
                    if seen[row] == 0:
                        if filtered and not allowed[row]:
                            continue
                        touched[count] = row
                        count += 1
                    seen[row] = token + 1
                    gains[row] += gain
    return count


@kernel
def keep_best(values: Floats, rows: Rows, count: int, keep: int) -> int:
    """Move about `keep` of the first `count` rows, those with the highest values, to the front; returns how many."""
    if count <= keep:
        return count
    highest = np.float32(0)
    for i in range(count):
        highest = max(highest, values[rows[i]])
    scale = np.float32(BINS - 1) / max(highest, np.float32(1e-9))
    bins = np.zeros(BINS, np.int64)
    for i in range(count):
        bins[int(values[rows[i]] * scale)] += 1
    lowest, total = BINS, 0
    while lowest > 0 and total < keep:
        lowest -= 1
        total += bins[lowest]
    kept = 0
    for i in range(count):
        if int(values[rows[i]] * scale) >= lowest:
            rows[kept] = rows[i]
            kept += 1
    return kept


@fast_kernel
def rerank(
    rows: Rows,
    query: Floats,
    steps_query: Shorts,
    query_units: Floats,
    centroids: Floats,
    scores: Floats,
    score_bytes: Bytes,
    margins: Bytes,
    offsets: Ints,
    nearest: Centroids,
    codes: Bytes,
    size_codes: Bytes,
    stretch_codes: Bytes,
    sizes: Floats,
    stretches: Floats,
    levels: Levels,
    found: Floats,
) -> None:
    """Scores of rows from those tokens only whose centroid is near the best one of the row, for some query token.

    `steps_query` (m, dims) times `query_units` (m,) is the query times the steps. With margins of 255 this is MaxSim, but for
    rounding; otherwise it is a lower bound of it. A row without tokens gets -inf.
    """
    lanes, width = score_bytes.shape[1], codes.shape[1]
    bits = 8 * width // query.shape[1]
    flat, flat_codes, flat_query = score_bytes.reshape(-1), codes.reshape(-1), steps_query.reshape(-1)
    highest = np.empty(lanes, np.uint8)
    best = np.empty(lanes, np.float32)
    chosen = np.empty(1024, np.int64)
    for i in range(len(rows)):
        start, end = offsets[rows[i]], offsets[rows[i] + 1]
        if end - start > len(chosen):
            chosen = np.empty(2 * (end - start), np.int64)
        highest[:] = 0
        for at in range(start, end):
            for block in range(0, lanes, LANES):
                raise_to(highest, block, flat, np.int64(nearest[at]) * lanes + block)
        for token in range(len(query)):
            best[token] = -np.inf
            below = np.int64(highest[token]) - np.int64(margins[token])  # int() of a byte would have no sign
            highest[token] = max(below, np.int64(0))
        highest[len(query) :] = 255
        count = 0
        for at in range(start, end):
            hit = np.uint64(0)
            for block in range(0, lanes, LANES):
                hit |= at_least(flat, np.int64(nearest[at]) * lanes + block, highest, block)
            chosen[count] = at
            count += hit != 0
        for c in range(min(count, AHEAD)):
            prefetch(flat_codes, chosen[c] * width)
        for c in range(count):
            if c + AHEAD < count:
                prefetch(flat_codes, chosen[c + AHEAD] * width)
            at = chosen[c]
            centroid = np.int64(nearest[at])
            size, stretch = sizes[size_codes[at]], stretches[stretch_codes[at]]
            for block in range(0, lanes, LANES):
                hits = at_least(flat, centroid * lanes + block, highest, block)
                while hits:
                    token = block + lowest_bit(hits)
                    hits &= hits - np.uint64(1)
                    if scores[centroid, token] == -np.inf:
                        scores[centroid, token] = rough_product(query[token], centroids[centroid])
                    product = code_product(flat_codes, at * width, width, bits, levels, flat_query, token * query.shape[1])
                    similarity = stretch * (scores[centroid, token] + size * query_units[token] * np.float32(product))
                    best[token] = max(best[token], similarity)
        total = np.float32(0)
        for token in range(len(query)):
            total += best[token]
        found[i] = total


@fast_kernel
def maxsim(
    rows: Rows,
    tokens: int,
    columns: Floats,
    offsets: Ints,
    nearest: Centroids,
    codes: Bytes,
    size_codes: Bytes,
    stretch_codes: Bytes,
    centroids: Floats,
    steps: Floats,
    sizes: Floats,
    stretches: Floats,
    levels: Levels,
    found: Floats,
) -> None:
    """MaxSim of rows over all their decoded tokens: the score of the multi lens; -inf for a row without tokens.

    `columns` (dims, lanes) is the query turned on its side and filled up to a multiple of WIDTH query tokens.
    """
    lanes, width = columns.shape[1], codes.shape[1]
    bits = 8 * width // columns.shape[0]
    flat, flat_codes = columns.reshape(-1), codes.reshape(-1)
    best = np.empty(lanes, np.float32)
    dims = columns.shape[0]
    pair = np.empty(2 * dims, np.float32)
    for i in range(len(rows)):
        best[:] = -np.inf
        start, end = offsets[rows[i]], offsets[rows[i] + 1]
        for first in range(start, end, 2):
            for second in range(2):  # of an odd number of tokens the last one counts twice, which changes nothing
                at = min(first + second, end - 1)
                stretch = stretches[stretch_codes[at]]
                scale = stretch * sizes[size_codes[at]]
                place = (flat_codes, at * width, width, bits, levels)
                decode_codes(*place, centroids[nearest[at]], stretch, steps, scale, pair, second * dims)
            for block in range(0, lanes, WIDTH):
                raise_to_products(best, block, pair, flat, block, lanes)
        total = np.float32(0)
        for token in range(tokens):
            total += best[token]
        found[i] = total


@fast_kernel
def gather_tokens(
    token: int,
    steps_query: Shorts,
    query_unit: np.float32,
    probed: Centroids,
    probed_scores: Floats,
    list_ptr: Ints,
    list_rows: Rows,
    offsets: Ints,
    nearest: Centroids,
    codes: Bytes,
    size_codes: Bytes,
    stretch_codes: Bytes,
    sizes: Floats,
    stretches: Floats,
    levels: Levels,
    allowed: Mask,
    filtered: bool,
    best: Floats,
    seen: Mask,
    met: Rows,
    heap_scores: Floats,
    heap_rows: Ints,
) -> int:
    """The similarities of one query token with the tokens of its probed centroids; see `rerank` for `steps_query`.

    Fills `best` (rows,) with the highest similarity of each row met, sets `seen` (rows,) for them and lists them in `met`;
    returns how many. `seen` is False on entry. Every similarity is also offered to a heap, which may have no room at all.
    """
    count = 0
    width, dims = codes.shape[1], steps_query.shape[1]
    bits = 8 * width // dims
    flat_codes, flat_query = codes.reshape(-1), steps_query.reshape(-1)
    for i in range(len(probed)):
        centroid = probed[i]
        if centroid >= len(list_ptr) - 1 or (i > 0 and centroid == probed[i - 1]):
            continue
        for row in list_rows[list_ptr[centroid] : list_ptr[centroid + 1]]:
            if filtered and not allowed[row]:
                continue
            if not seen[row]:
                seen[row] = True
                best[row] = -np.inf
                met[count] = row
                count += 1
            for at in range(offsets[row], offsets[row + 1]):
                if nearest[at] == centroid:
                    product = code_product(flat_codes, at * width, width, bits, levels, flat_query, token * dims)
                    rest = sizes[size_codes[at]] * query_unit * np.float32(product)
                    similarity = stretches[stretch_codes[at]] * (probed_scores[i] + rest)
                    best[row] = max(best[row], similarity)
                    if len(heap_scores):
                        offer(heap_scores, heap_rows, similarity, at)
    return count


@kernel
def add_gains(
    best: Floats, seen: Mask, met: Rows, count: int, imputed: float, gains: Floats, joined: Mask, touched: Rows, total: int
) -> int:
    """Add what the rows met by one query token have over the imputed value to their gains; `seen` becomes False again.

    Rows join the touched ones once. Returns how many there are.
    """
    for i in range(count):
        row = met[i]
        if not joined[row]:
            joined[row] = True
            touched[total] = row
            total += 1
        gains[row] += max(best[row] - imputed, 0)
        seen[row] = False
    return total
