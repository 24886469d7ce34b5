"""What a collection asks of a lens: make searchable files of a batch, merge them, open them, search them.

A *part* is what one segment holds for one lens: some arrays, memory-mapped. A searcher answers queries over all parts of a
snapshot; rows count through the parts in order.

A *shared part* is what all segments of a collection use together, such as a codebook. Each is written once, from what a
batch holds, and never changed; a lens may add more as the collection grows. Every method is given those of its lens, oldest
first, and what was built with some of them may rely on their places: parts are only ever added at the end.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from trilens.encode.encoder import Encoded, Encoder
from trilens.index.topk import TopK

Mask = NDArray[np.bool_]


class Searcher(Protocol):
    """Answers queries over the parts it was made with."""

    def search(
        self, queries: Encoded, k: int, allowed: Mask | None = None, exact: bool = False, params: Any | None = None
    ) -> TopK:
        """The best k rows of each query among the allowed ones (all live rows if None).

        `exact` leaves out every approximation that the lens makes to be fast. `params` are settings of this one search, of a
        type of the lens's own; most lenses have none.
        """


@runtime_checkable
class RowScorer(Protocol):
    """A searcher that can also score rows which others found: what re-ranking and fusion need."""

    def score(
        self, queries: Encoded, rows: NDArray[np.int64], params: Any | None = None, allowed: Mask | None = None
    ) -> NDArray[np.float32]:
        """The exact scores of the rows (queries, n) of each query; -inf where a row is -1 or cannot be scored.

        They are those that a search with these params among the allowed rows would give, had it looked at every row.
        """


class Lens(Protocol):
    """A named way to look at a collection."""

    @property
    def name(self) -> str:
        """As the user calls it."""

    @property
    def encoder(self) -> Encoder:
        """Makes the representation; lenses that share one encoder share its pass over the text."""

    def share(self, encoded: Encoded, shared: Sequence[Any], folder: Path) -> bool:
        """Write one more shared part if this batch calls for it, before the batch is built; returns whether it did."""

    def open_shared(self, folder: Path) -> Any:
        """Map a shared part."""

    def build(self, encoded: Encoded, folder: Path, shared: Sequence[Any]) -> None:
        """Write the part of one segment."""

    def merge(self, parts: Sequence[Any], keep: Sequence[Mask], folder: Path, shared: Sequence[Any]) -> None:
        """Write the part of a segment that holds the kept rows of several, in order."""

    def open(self, folder: Path) -> Any:
        """Map a part."""

    def searcher(self, parts: Sequence[Any], live: Sequence[Mask | None], shared: Sequence[Any]) -> Searcher:
        """A searcher over these parts, in which only the live rows count (all, where None)."""

    def figures(self, parts: Sequence[Any], shared: Sequence[Any]) -> dict[str, Any]:
        """What a user may want to know of this lens in this collection: names and numbers."""


class SharesNothing:
    """For lenses whose segments stand alone."""

    def share(self, encoded: Encoded, shared: Sequence[Any], folder: Path) -> bool:
        """Nothing to write."""
        return False

    def open_shared(self, folder: Path) -> Any:
        """There is nothing that could be opened."""
        raise AssertionError(f"{folder} is a shared part of a lens that writes none")

    def figures(self, parts: Sequence[Any], shared: Sequence[Any]) -> dict[str, Any]:
        """Nothing beyond what every lens tells."""
        return {}
