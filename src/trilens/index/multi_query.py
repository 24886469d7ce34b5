"""Query side of a multi search: the token vectors in the forms that the kernels read, and their centroid scores."""

from typing import NamedTuple

import numpy as np

from trilens.index.codebook import Codebook
from trilens.kernels.array_types import Float32s, Int16s
from trilens.kernels.lanes import LANES, WIDTH
from trilens.kernels.multi import CentroidScores, TokenQuery, score_centroids


class ProbedQuery(NamedTuple):
    """One query with the scores of the centroids near its tokens."""

    tokens: TokenQuery
    centroids: CentroidScores


def probe(vectors: Float32s, codebook: Codebook, reach: int, probes: int) -> ProbedQuery:
    """Score the centroids of the `reach` best groups of each query token, and select its `probes` best."""
    tokens, count = len(vectors), len(codebook.centroids)
    lanes = -(-tokens // LANES) * LANES
    probes = min(probes, count)
    query = TokenQuery(vectors, *_quantised(vectors * codebook.steps), padded_columns(vectors))
    scores = CentroidScores(
        np.full((count, tokens), -np.inf, np.float32),
        np.zeros((count, lanes), np.uint8),
        np.empty(tokens, np.float32),
        np.empty((tokens, probes), np.uint32),
        np.empty((tokens, probes), np.float32),
    )
    leader_scores = vectors @ codebook.leader_columns
    reach = min(reach, len(codebook.leaders))
    score_centroids(vectors, leader_scores, reach, codebook.group_ptr, codebook.centroids, scores)
    return ProbedQuery(query, scores)


def padded_columns(vectors: Float32s) -> Float32s:
    """The transposed token vectors, zero-padded to a multiple of WIDTH tokens: (dims, lanes)."""
    columns = np.zeros((vectors.shape[1], -(-len(vectors) // WIDTH) * WIDTH), np.float32)
    columns[:, : len(vectors)] = vectors.T
    return columns


def _quantised(vectors: Float32s) -> tuple[Int16s, Float32s]:
    """Vectors as 16-bit integers, and the unit of each: no sum of products with levels overflows 32 bits."""
    largest = min(32767, 2**31 // (128 * vectors.shape[1]))
    units = np.maximum(np.abs(vectors).max(axis=1), 1e-12) / largest
    return np.rint(vectors / units[:, None]).astype(np.int16), units.astype(np.float32)
