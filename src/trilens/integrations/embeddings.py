"""`FunctionEncoder`: the embedding functions of a framework as an encoder of dense vectors."""

from collections.abc import Callable, Sequence

import numpy as np

from trilens.encode.encoder import Encoded, Progress
from trilens.encode.folder import Head
from trilens.represent import Dense

AT_ONCE = 64

Embed = Callable[[list[str]], Sequence[Sequence[float]]]


class FunctionEncoder:
    """Vectors are scaled to unit length, so that scores are cosines.

    The fingerprint, which has to identify the weights, is made of the class of the embeddings and the name of their model.
    """

    heads: Sequence[Head] = ("dense",)

    def __init__(self, embeddings: object, docs: Embed, queries: Embed) -> None:
        kind = type(embeddings)
        names = (getattr(embeddings, name, None) for name in ("model_name", "model"))
        model = next((name for name in names if isinstance(name, str)), "")
        self.fingerprint = ":".join(filter(None, (f"{kind.__module__}.{kind.__qualname__}", model)))
        self._docs, self._queries = docs, queries

    def encode_docs(
        self, texts: Sequence[str], progress: Progress | None = None, heads: Sequence[Head] | None = None
    ) -> Encoded:
        """Vectors of passages, in the order of the texts."""
        parts = []
        for start in range(0, len(texts), AT_ONCE):
            batch = list(texts[start : start + AT_ONCE])
            parts.append(_unit_vectors(self._docs(batch)))
            if progress:
                progress(len(batch))
        return Encoded(dense=Dense.concat(parts) if parts else Dense(np.zeros((0, 0), np.float32)))

    def encode_queries(self, texts: Sequence[str], heads: Sequence[Head] | None = None) -> Encoded:
        """Vectors of queries, in the order of the texts."""
        return Encoded(dense=_unit_vectors(self._queries(list(texts))))


def _unit_vectors(vectors: Sequence[Sequence[float]]) -> Dense:
    array = np.array(vectors, np.float64)
    lengths = np.maximum(np.linalg.norm(array, axis=1, keepdims=True), 1e-12)
    return Dense(np.ascontiguousarray(array / lengths, np.float32))
