"""The encoder of vectors that another model has made: each text is a JSON object of terms and weights."""

from collections.abc import Sequence

import numpy as np

from trilens.encode.encoder import Encoded, Progress
from trilens.represent.counts import Counts
from trilens.represent.ragged import offsets_of
from trilens.represent.sparse import Sparse
from trilens.represent.vocabulary import Vocabulary
from trilens.text.vectors import read_vector


class GivenEncoder:
    """Reads the vectors; their terms are numbered by the words of the batch, in `counts`."""

    fingerprint = "given vectors"

    def encode_docs(self, texts: Sequence[str], progress: Progress | None = None) -> Encoded:
        """The vectors of the texts."""
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
        """The vectors of the queries."""
        return self.encode_docs(texts)
