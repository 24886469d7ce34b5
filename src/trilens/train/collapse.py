"""Tells when a sparse head dies: more and more texts whose vector is nothing but zeros, which no gradient revives."""

import warnings
from collections import deque

from torch import Tensor

from trilens.errors import BadInput

ZERO = 1e-6  # weights up to this count as none; elu + 1 comes close to 0 without reaching it


class CollapseWarning(UserWarning):
    """A sparse head gives many texts no weight at all."""


class CollapseMonitor:
    """The share of zero vectors over the last `batches`; warns when it exceeds `limit`, and again only once it has halved."""

    def __init__(self, head: str, limit: float = 0.1, batches: int = 20) -> None:
        if not 0 <= limit < 1 or batches < 1:
            raise BadInput(f"limit is {limit}, batches {batches}; expected a share from 0 to below 1 and at least 1 batch")
        self.head = head
        self.limit = limit
        self._seen: deque[tuple[int, int]] = deque(maxlen=batches)
        self._told = False

    @property
    def share(self) -> float:
        """Of the texts of the last batches; 0 before the first."""
        texts = sum(texts for _, texts in self._seen)
        return sum(zeros for zeros, _ in self._seen) / texts if texts else 0.0

    def watch(self, vectors: Tensor) -> float:
        """Look at the weights of a batch (texts, terms), and return the share of texts in it that have none."""
        zeros = int((vectors.detach().abs().amax(-1) <= ZERO).sum())
        self._seen.append((zeros, len(vectors)))
        collapsed = len(self._seen) == self._seen.maxlen and self.share > self.limit
        if collapsed and not self._told:
            warnings.warn(
                f"{100 * self.share:.0f} % of the texts of the last {len(self._seen)} batches have no weight in the head "
                f"{self.head!r}: it is collapsing; lower the learning rate, raise the weight of its loss, or start again "
                "from a checkpoint before",
                CollapseWarning,
                stacklevel=2,
            )
        self._told = collapsed or (self._told and self.share > self.limit / 2)
        return zeros / len(vectors) if len(vectors) else 0.0
