"""Scores of one query against every row: MaxSim over token vectors."""

import numpy as np
from numpy.typing import NDArray

from trilens.kernels.compile import kernel

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]


@kernel
def maxsim_all(query: Floats, offsets: Ints, vectors: Floats) -> Floats:
    """Sum over the query tokens (m, dims) of the highest inner product with a token of the row; -inf for empty rows."""
    scores = np.full(len(offsets) - 1, -np.inf, np.float32)
    for row in range(len(scores)):
        if offsets[row] == offsets[row + 1]:
            continue
        total = np.float32(0)
        for token in range(len(query)):
            best = np.float32(-np.inf)
            for at in range(offsets[row], offsets[row + 1]):
                similarity = np.float32(0)
                for d in range(query.shape[1]):
                    similarity += query[token, d] * vectors[at, d]
                best = max(best, similarity)
            total += best
        scores[row] = total
    return scores
