"""Losses in plain numpy, independent of the code under test."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def softmax(row: Floats) -> Floats:
    powers = np.exp(row - row.max())
    shares: Floats = powers / powers.sum()
    return shares


def cross_entropy(scores: Floats, targets: list[int]) -> float:
    """Mean over rows of -log softmax at the target."""
    return float(np.mean([-np.log(softmax(row)[target]) for row, target in zip(scores, targets, strict=True)]))


def contrast(scores: Floats, symmetric: bool = False) -> float:
    """Contrastive loss, where the positive of query i is in column i."""
    targets = list(range(len(scores)))
    forth = cross_entropy(scores, targets)
    return forth + cross_entropy(scores[:, : len(scores)].T, targets) if symmetric else forth


def columns(docs: NDArray[Any]) -> list[NDArray[Any]]:
    """All positives, then all first negatives, …: docs[query][place]."""
    return [docs[query][place] for place in range(docs.shape[1]) for query in range(docs.shape[0])]


def maxsim(query: Floats, doc: Floats, query_mask: NDArray[np.bool_], doc_mask: NDArray[np.bool_]) -> float:
    """Σ over the query's tokens of the highest product with a token of the doc."""
    total = 0.0
    for token, counts in zip(query, query_mask, strict=True):
        if counts:
            total += max(float(token @ other) for other, there in zip(doc, doc_mask, strict=True) if there)
    return total
