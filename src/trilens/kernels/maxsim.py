"""MaxSim of one query with all rows, over uncompressed token vectors."""

import numpy as np

from trilens.kernels.array_types import Float32s, Int64s
from trilens.kernels.compile import kernel


@kernel
def maxsim_all(query: Float32s, offsets: Int64s, vectors: Float32s) -> Float32s:
    """Sum, over the query tokens (m, dims), of the highest inner product with a token of the row; -inf for empty rows."""
    scores = np.full(len(offsets) - 1, -np.inf, np.float32)
    for row in range(len(scores)):
        if offsets[row] == offsets[row + 1]:
            continue
        total = np.float32(0)
        for token in range(len(query)):
            best = np.float32(-np.inf)
            for position in range(offsets[row], offsets[row + 1]):
                similarity = np.float32(0)
                for d in range(query.shape[1]):
                    similarity += query[token, d] * vectors[position, d]
                best = max(best, similarity)
            total += best
        scores[row] = total
    return scores
