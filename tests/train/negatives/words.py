"""Passages of few words and an encoder that counts them, so that scores can be computed by hand."""

import re
from collections.abc import Sequence

import numpy as np

from trilens.encode.encoder import Encoded, Progress
from trilens.represent import Dense, Multi, Sparse
from trilens.text.document import Document

WORDS = ["cat", "dog", "mat", "hat", "ship", "sea", "sun", "moon"]
CORPUS = [
    Document("p0", "cat mat"),
    Document("p1", "cat hat"),
    Document("p2", "cat dog mat", "A title"),
    Document("p3", "ship sea"),
    Document("p4", "sun moon"),
    Document("p5", "cat mat"),  # a copy of the first
    Document("p6", "dog hat"),
]


class CountingEncoder:
    """Every word is a dimension; all heads give the set of words of a text."""

    fingerprint = "counting"

    def encode_docs(self, texts: Sequence[str], progress: Progress | None = None) -> Encoded:
        rows = [sorted({WORDS.index(word) for word in re.findall(r"\w+", text) if word in WORDS}) for text in texts]
        vectors = np.zeros((len(rows), len(WORDS)), np.float32)
        for index, row in enumerate(rows):
            vectors[index, row] = 1
        terms = np.array([term for row in rows for term in row], np.int32)
        indptr = np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)
        sparse = Sparse(indptr, terms, np.ones(len(terms), np.float32), len(WORDS))
        if progress:
            progress(len(texts))
        # Every token is a unit vector; the index takes multiples of 32 dimensions.
        tokens = Multi(indptr, np.eye(len(WORDS), 32, dtype=np.float32)[terms], terms)
        return Encoded(dense=Dense(vectors), sparse=sparse, lexical=sparse, bag=sparse, multi=tokens)

    def encode_queries(self, texts: Sequence[str]) -> Encoded:
        return self.encode_docs(texts)
