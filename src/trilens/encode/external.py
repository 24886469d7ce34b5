"""The encoder of externally computed sparse vectors: each text is a JSON object of terms and weights."""

from collections.abc import Sequence

import numpy as np

from trilens.encode.encoder import Encoded, Progress
from trilens.represent.counts import Counts
from trilens.represent.ragged import offsets_of
from trilens.represent.sparse import Sparse
from trilens.represent.vocabulary import Vocabulary
from trilens.text.vectors import read_vector


class ExternalEncoder:
    """Parses sparse vectors into `counts`, whose vocabulary is the sorted terms of the batch."""

    fingerprint = "external vectors"

    def encode_docs(self, texts: Sequence[str], progress: Progress | None = None) -> Encoded:
        """Sparse vectors of documents, in input order."""
        vectors = [read_vector(text) for text in texts]
        words = sorted({word for vector in vectors for word in vector})
        numbers = {word: number for number, word in enumerate(words)}
        pairs = [(numbers[word], weight) for vector in vectors for word, weight in sorted(vector.items())]
        lengths = np.array([len(vector) for vector in vectors], np.int32)
        terms = np.array([number for number, _ in pairs], np.int32)
        weights = np.array([weight for _, weight in pairs], np.float32)
        if progress:
            progress(len(texts))
        sparse = Sparse(offsets_of(lengths), terms, weights, len(words))
        return Encoded(counts=Counts(sparse, Vocabulary.of(words), lengths))

    def encode_queries(self, texts: Sequence[str]) -> Encoded:
        """Sparse vectors of queries, in input order."""
        return self.encode_docs(texts)
