"""What a collection asks of a lens: make searchable files of a batch, merge them, open them, search them.

A *part* is what one segment holds for one lens: some arrays, memory-mapped. A searcher answers queries over all parts of a
snapshot; rows count through the parts in order.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trilens.encode.encoder import Encoded, Encoder
from trilens.index.topk import TopK

Mask = NDArray[np.bool_]


class Searcher(Protocol):
    """Answers queries over the parts it was made with."""

    def search(self, queries: Encoded, k: int, allowed: Mask | None = None, exact: bool = False) -> TopK:
        """The best k rows of each query among the allowed ones (all live rows if None).

        `exact` leaves out every approximation that the lens makes to be fast.
        """


class Lens(Protocol):
    """A named way to look at a collection."""

    @property
    def name(self) -> str:
        """As the user calls it."""

    @property
    def encoder(self) -> Encoder:
        """Makes the representation; lenses that share one encoder share its pass over the text."""

    def build(self, encoded: Encoded, folder: Path) -> None:
        """Write the part of one segment."""

    def merge(self, parts: Sequence[Any], keep: Sequence[Mask], folder: Path) -> None:
        """Write the part of a segment that holds the kept rows of several, in order."""

    def open(self, folder: Path) -> Any:
        """Map a part."""

    def searcher(self, parts: Sequence[Any], live: Sequence[Mask | None]) -> Searcher:
        """A searcher over these parts, in which only the live rows count (all, where None)."""
