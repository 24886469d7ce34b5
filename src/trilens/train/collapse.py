"""`CollapseMonitor`: warns when a sparse head collapses, i.e. gives all-zero vectors, which no gradient can recover."""

import warnings
from collections import deque

from torch import Tensor

from trilens.errors import BadInput

ZERO = 1e-6  # weights up to this count as zero; elu + 1 approaches 0 without reaching it


class CollapseWarning(UserWarning):
    """A sparse head gives many texts all-zero vectors."""


class CollapseMonitor:
    """Share of zero vectors over the last `batches`; warns above `limit`, and again only after the share has halved."""

    def __init__(self, head: str, limit: float = 0.1, batches: int = 20) -> None:
        if not 0 <= limit < 1 or batches < 1:
            raise BadInput(f"limit is {limit}, batches {batches}; expected 0 <= limit < 1 and at least 1 batch")
        self.head = head
        self.limit = limit
        self._counts: deque[tuple[int, int]] = deque(maxlen=batches)
        self._warned = False

    @property
    def share(self) -> float:
        """Share of zero vectors in the last batches; 0 before the first."""
        texts = sum(texts for _, texts in self._counts)
        return sum(zeros for zeros, _ in self._counts) / texts if texts else 0.0

    def watch(self, vectors: Tensor) -> float:
        """Record a batch of weights (texts, terms); returns the share of zero vectors in it."""
        zeros = int((vectors.detach().abs().amax(-1) <= ZERO).sum())
        self._counts.append((zeros, len(vectors)))
        collapsed = len(self._counts) == self._counts.maxlen and self.share > self.limit
        if collapsed and not self._warned:
            warnings.warn(
                f"{100 * self.share:.0f} % of the texts of the last {len(self._counts)} batches have all-zero weights in the "
                f"head {self.head!r}: it is collapsing; lower the learning rate, raise the weight of its loss, or restart from "
                "an earlier checkpoint",
                CollapseWarning,
                stacklevel=2,
            )
        self._warned = collapsed or (self._warned and self.share > self.limit / 2)
        return zeros / len(vectors) if len(vectors) else 0.0
