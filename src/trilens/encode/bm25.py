"""The BM25 encoder: term counts of texts. IDF and average length come from the collection at search time."""

from collections.abc import Sequence

import numpy as np

from trilens.encode.encoder import Encoded, Progress
from trilens.kernels.words import count_terms
from trilens.represent.counts import Counts
from trilens.represent.sparse import Sparse
from trilens.represent.vocabulary import Vocabulary
from trilens.text.analysis import ENGLISH, AnalysisConfig, Analyzer


class Bm25Encoder:
    """Counts the analysed terms of each text; queries and documents are treated alike."""

    def __init__(self, config: AnalysisConfig = ENGLISH) -> None:
        self._analyzer = Analyzer(config)

    @property
    def fingerprint(self) -> str:
        """The analysis configuration, because counts under different analyses must not be mixed."""
        return self._analyzer.config.model_dump_json()

    def encode_docs(self, texts: Sequence[str], progress: Progress | None = None) -> Encoded:
        """Term counts of each text."""
        words, ends, terms = self._analyzer.words(texts)
        vocabulary = sorted({term for term in terms if term is not None})
        numbers = {term: number for number, term in enumerate(vocabulary)}
        term_of = np.array([-1 if term is None else numbers[term] for term in terms], np.int64)
        indptr, ids, counts, lengths = count_terms(words, ends, term_of, len(vocabulary))
        if progress:
            progress(len(texts))
        sparse = Sparse(indptr, ids, counts, len(vocabulary))
        return Encoded(counts=Counts(sparse, Vocabulary.of(vocabulary), lengths))

    def encode_queries(self, texts: Sequence[str]) -> Encoded:
        """Term counts of each query."""
        return self.encode_docs(texts)
