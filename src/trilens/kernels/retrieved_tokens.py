"""Token retrieval of XTR: similarities of query tokens with the document tokens of their probed centroids.

(Lee et al. 2023, "Rethinking the role of token retrieval in multi-vector retrieval".)
"""

from typing import NamedTuple

import numpy as np

from trilens.kernels.array_types import Float32s, Int32s, Int64s, Mask
from trilens.kernels.compile import fast_kernel, kernel
from trilens.kernels.lanes import code_product
from trilens.kernels.multi import CentroidLists, CentroidScores, TokenQuery
from trilens.kernels.residual import CodeTables, TokenCodes
from trilens.kernels.row_filter import RowFilter
from trilens.kernels.topk import offer


class TokenSegment(NamedTuple):
    """The tokens of a segment: row r has the tokens `offsets[r]:offsets[r + 1]` of `codes`."""

    offsets: Int64s
    codes: TokenCodes
    lists: CentroidLists


class RetrievedRows(NamedTuple):
    """Rows that one query token retrieved: best similarity and mark of each row, and the list of marked rows."""

    best: Float32s
    marked: Mask
    rows: Int32s


class RowGains(NamedTuple):
    """Rows that any query token retrieved: gain over the imputed score and mark of each row, and the list of marked rows."""

    gains: Float32s
    marked: Mask
    rows: Int32s


@fast_kernel
def gather_tokens(
    token: int,
    query: TokenQuery,
    centroid_scores: CentroidScores,
    segment: TokenSegment,
    tables: CodeTables,
    row_filter: RowFilter,
    retrieved: RetrievedRows,
    heap_scores: Float32s,
    heap_rows: Int64s,
) -> int:
    """Compute the similarities of one query token with the document tokens of its probed centroids.

    Fills `retrieved`, whose marks are False on entry, and returns the number of rows in it. Each similarity is also offered
    to the heap, which may have length 0.
    """
    probed, probed_scores = centroid_scores.probed[token], centroid_scores.probed_scores[token]
    offsets, list_ptr, list_rows = segment.offsets, segment.lists.ptr, segment.lists.rows
    nearest, size_codes, stretch_codes = segment.codes.nearest, segment.codes.sizes, segment.codes.stretches
    sizes, stretches, levels, query_unit = tables.sizes, tables.stretches, tables.levels, query.units[token]
    allowed, filtered = row_filter.allowed, row_filter.active
    best, marked, rows = retrieved.best, retrieved.marked, retrieved.rows
    count = 0
    width, dims = segment.codes.residuals.shape[1], query.steps.shape[1]
    bits = 8 * width // dims
    flat_codes, flat_query = segment.codes.residuals.reshape(-1), query.steps.reshape(-1)
    for i in range(len(probed)):
        centroid = probed[i]
        if centroid >= len(list_ptr) - 1 or (i > 0 and centroid == probed[i - 1]):
            continue
        for row in list_rows[list_ptr[centroid] : list_ptr[centroid + 1]]:
            if row < 0 or row >= len(best) or (filtered and not allowed[row]):  # a row out of range is damage
                continue
            if not marked[row]:
                marked[row] = True
                best[row] = -np.inf
                rows[count] = row
                count += 1
            for position in range(offsets[row], offsets[row + 1]):
                if nearest[position] == centroid:
                    product = code_product(flat_codes, position * width, width, bits, levels, flat_query, token * dims)
                    rest = sizes[size_codes[position]] * query_unit * np.float32(product)
                    similarity = stretches[stretch_codes[position]] * (probed_scores[i] + rest)
                    best[row] = max(best[row], similarity)
                    if len(heap_scores):
                        offer(heap_scores, heap_rows, similarity, position)
    return count


@kernel
def add_gains(retrieved: RetrievedRows, count: int, imputed: float, gains: RowGains, total: int) -> int:
    """Add what the first `count` retrieved rows score above the imputed value to their gains, and reset `retrieved.marked`.

    `total` rows are in `gains` on entry; returns their number afterwards.
    """
    best, marked, rows = retrieved.best, retrieved.marked, retrieved.rows
    row_gains, gains_marked, gains_rows = gains.gains, gains.marked, gains.rows
    for i in range(count):
        row = rows[i]
        if not gains_marked[row]:
            gains_marked[row] = True
            gains_rows[total] = row
            total += 1
        row_gains[row] += max(best[row] - imputed, 0)
        marked[row] = False
    return total


@kernel
def gather_gains(
    query: TokenQuery,
    centroid_scores: CentroidScores,
    segment: TokenSegment,
    tables: CodeTables,
    row_filter: RowFilter,
    imputed: Float32s,
    retrieved: RetrievedRows,
    gains: RowGains,
) -> int:
    """Sum the gains of all rows over the query tokens, whose imputed scores are `imputed` (m,); returns the number of rows."""
    no_scores, no_rows = np.empty(0, np.float32), np.empty(0, np.int64)
    total = 0
    for token in range(len(query.vectors)):
        count = gather_tokens(token, query, centroid_scores, segment, tables, row_filter, retrieved, no_scores, no_rows)
        total = add_gains(retrieved, count, imputed[token], gains, total)
    return total


@kernel
def offer_similarities(
    query: TokenQuery,
    centroid_scores: CentroidScores,
    segment: TokenSegment,
    tables: CodeTables,
    row_filter: RowFilter,
    retrieved: RetrievedRows,
    heap_scores: Float32s,
    heap_rows: Int64s,
) -> None:
    """Offer the similarities of all retrieved tokens to the heaps (m, n) of the query tokens."""
    for token in range(len(query.vectors)):
        count = gather_tokens(
            token,
            query,
            centroid_scores,
            segment,
            tables,
            row_filter,
            retrieved,
            heap_scores[token],
            heap_rows[token],
        )
        for i in range(count):
            retrieved.marked[retrieved.rows[i]] = False
