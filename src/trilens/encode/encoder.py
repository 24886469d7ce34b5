"""The one interface of all encoders: a batch of texts in, every representation the model can make of them out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from trilens.represent import Dense, Multi, Sparse
from trilens.represent.counts import Counts

Progress = Callable[[int], None]
"""Called with the number of texts finished since the last call."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """What one pass over a batch gave; a head that the model does not have is None.

    `bag` has the text's own tokens, each with how often it stands there, over the same vocabulary as `sparse`; special tokens
    and those below the vocabulary's shift are left out. `truncated` counts the texts that were longer than the model reads:
    their ends are not in the representation.
    """

    counts: Counts | None = None
    dense: Dense | None = None
    sparse: Sparse | None = None
    lexical: Sparse | None = None
    bag: Sparse | None = None
    multi: Multi | None = None
    truncated: int = 0

    def take(self, rows: NDArray[np.integer]) -> "Encoded":
        """Some of the texts, in this order; of `truncated` nobody knows which they were."""
        return Encoded(
            self.counts and self.counts.take(rows),
            self.dense and self.dense.take(rows),
            self.sparse and self.sparse.take(rows),
            self.lexical and self.lexical.take(rows),
            self.bag and self.bag.take(rows),
            self.multi and self.multi.take(rows),
        )


class Encoder(Protocol):
    """Queries and documents may be encoded differently (prefixes, lengths), so there is a method for each."""

    @property
    def fingerprint(self) -> str:
        """Tells this model from every other: representations of different fingerprints must not be mixed."""

    def encode_docs(self, texts: Sequence[str], progress: Progress | None = None) -> Encoded:
        """Representations of passages, in the order given."""

    def encode_queries(self, texts: Sequence[str]) -> Encoded:
        """Representations of queries, in the order given."""
