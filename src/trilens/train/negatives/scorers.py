"""`Scorer`: relevance scores of passages for queries, used to drop false negatives and as teacher scores."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from trilens.encode.encoder import Encoder
from trilens.encode.folder import Head
from trilens.errors import BadInput
from trilens.index.exact import EXACT_BY_HEAD
from trilens.kernels.array_types import Float32s


class Scorer(Protocol):
    """Scores passages for a query; higher is better."""

    @property
    def name(self) -> str:
        """Identifies the scorer: scores under different names are not comparable."""

    def score(self, queries: Sequence[str], passages: Sequence[Sequence[str]]) -> list[Float32s]:
        """The scores of each query's own passages, in order."""


class EncoderScorer:
    """Scores pairs by one head of an encoder, as a search would."""

    def __init__(self, encoder: Encoder, head: Head = "dense") -> None:
        self._encoder = encoder
        self._head: Head = head

    @property
    def name(self) -> str:
        """Model fingerprint and head."""
        return f"{self._encoder.fingerprint}:{self._head}"

    def score(self, queries: Sequence[str], passages: Sequence[Sequence[str]]) -> list[Float32s]:
        """See `Scorer`. A passage that belongs to several queries is encoded once."""
        places = {text: place for place, text in enumerate(dict.fromkeys(text for texts in passages for text in texts))}
        if not places:
            return [np.empty(0, np.float32) for _ in queries]
        query_vectors = self._require(self._encoder.encode_queries(list(queries)))
        doc_vectors = self._require(self._encoder.encode_docs(list(places)))
        all_scores = []
        for query, texts in enumerate(passages):
            rows = np.array([places[text] for text in texts], np.int64)
            scores = np.full(len(rows), -np.inf, np.float32)
            if len(rows):
                top = EXACT_BY_HEAD[self._head](query_vectors.take(np.array([query])), doc_vectors.take(rows), len(rows))
                scored = top.rows[0] >= 0
                scores[top.rows[0][scored]] = top.scores[0][scored]
            all_scores.append(scores)
        return all_scores

    def _require(self, encoded: Any) -> Any:
        representation = getattr(encoded, self._head)
        if representation is None:
            raise BadInput(f"the scorer's model has no {self._head} head; choose another head or another model")
        return representation
