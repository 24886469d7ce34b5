"""Scores of one query against every row: inner product over terms."""

import numpy as np
from numpy.typing import NDArray

from trilens.kernels.compile import kernel


@kernel
def sparse_dot_all(
    query: NDArray[np.float32], indptr: NDArray[np.int64], terms: NDArray[np.int32], weights: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Inner product of a query, given as a weight per term of the vocabulary, with each compressed row."""
    scores = np.zeros(len(indptr) - 1, np.float32)
    for row in range(len(scores)):
        total = 0.0
        for at in range(indptr[row], indptr[row + 1]):
            total += np.float64(query[terms[at]]) * weights[at]
        scores[row] = total
    return scores
