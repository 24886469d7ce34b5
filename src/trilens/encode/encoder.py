"""The `Encoder` protocol: a batch of texts in, their representations out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from trilens.represent import Dense, Multi, Sparse
from trilens.represent.counts import Counts

Progress = Callable[[int], None]
"""Called with the number of texts finished since the last call."""


class Takes(Protocol):
    """A batch from which rows can be selected."""

    def take(self, rows: NDArray[np.integer]) -> "Takes":
        """Select rows, in this order."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """Representations of a batch of texts; None for heads that were not computed.

    `bag` holds the token counts of each text over the same terms as `sparse`; special tokens and tokens below the vocabulary
    shift are excluded. `truncated` is the number of texts that exceeded the maximum length of the model and were cut. `other`
    is the representation of a lens that none of these fits.
    """

    counts: Counts | None = None
    dense: Dense | None = None
    sparse: Sparse | None = None
    lexical: Sparse | None = None
    bag: Sparse | None = None
    multi: Multi | None = None
    truncated: int = 0
    other: "Takes | None" = None

    def take(self, rows: NDArray[np.integer]) -> "Encoded":
        """Select texts, in this order; `truncated` is reset to 0, because it is not known per text."""
        return Encoded(
            self.counts and self.counts.take(rows),
            self.dense and self.dense.take(rows),
            self.sparse and self.sparse.take(rows),
            self.lexical and self.lexical.take(rows),
            self.bag and self.bag.take(rows),
            self.multi and self.multi.take(rows),
            other=self.other and self.other.take(rows),
        )


class Encoder(Protocol):
    """Encodes queries and documents, which can differ in prefixes, lengths and weights."""

    @property
    def fingerprint(self) -> str:
        """Identifies the model. Representations with different fingerprints must not be mixed."""

    def encode_docs(self, texts: Sequence[str], progress: Progress | None = None) -> Encoded:
        """Representations of passages, in input order."""

    def encode_queries(self, texts: Sequence[str]) -> Encoded:
        """Representations of queries, in input order."""
