"""`Scorer`: how well passages answer a query, to sort out false negatives and to teach by."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trilens.encode.encoder import Encoder
from trilens.encode.folder import Head
from trilens.errors import BadInput
from trilens.search.late import EXACT

Floats = NDArray[np.float32]


class Scorer(Protocol):
    """Anything that compares a query with passages; higher is better."""

    @property
    def name(self) -> str:
        """Tells its scores from those of others."""

    def score(self, queries: Sequence[str], passages: Sequence[Sequence[str]]) -> list[Floats]:
        """For each query the scores of its own passages, in order."""


class EncoderScorer:
    """The score of a search through one head of an encoder, for pairs that something else chose."""

    def __init__(self, encoder: Encoder, head: Head = "dense") -> None:
        self._encoder = encoder
        self._head: Head = head

    @property
    def name(self) -> str:
        """The model and the head."""
        return f"{self._encoder.fingerprint}:{self._head}"

    def score(self, queries: Sequence[str], passages: Sequence[Sequence[str]]) -> list[Floats]:
        """See `Scorer`. A passage that several queries ask for is encoded once."""
        places = {text: at for at, text in enumerate(dict.fromkeys(text for some in passages for text in some))}
        if not places:
            return [np.empty(0, np.float32) for _ in queries]
        asked = self._require(self._encoder.encode_queries(list(queries)))
        docs = self._require(self._encoder.encode_docs(list(places)))
        found = []
        for query, some in enumerate(passages):
            rows = np.array([places[text] for text in some], np.int64)
            scores = np.full(len(rows), -np.inf, np.float32)
            if len(rows):
                top = EXACT[self._head](asked.take(np.array([query])), docs.take(rows), len(rows))
                known = top.rows[0] >= 0
                scores[top.rows[0][known]] = top.scores[0][known]
            found.append(scores)
        return found

    def _require(self, encoded: Any) -> Any:
        representation = getattr(encoded, self._head)
        if representation is None:
            raise BadInput(f"the scorer's model has no {self._head} head; choose another head, or another model")
        return representation
