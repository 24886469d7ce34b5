"""The lens of given vectors: weighted terms that another model made, in the inverted lists of the sparse lenses.

Terms are words of any vocabulary. They are numbered in the order in which they come into the collection: each batch that brings
unseen ones adds a page of them to what all segments share.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trilens.encode.encoder import Encoded
from trilens.encode.given import GivenEncoder
from trilens.errors import BadInput
from trilens.index.lens import Mask
from trilens.index.sparse import DEFAULT, SparseConfig, SparseLens, SparsePart, SparseSearcher
from trilens.index.sparse_params import SparseParams
from trilens.index.topk import TopK
from trilens.represent.counts import Counts
from trilens.represent.ragged import offsets_of
from trilens.represent.sparse import Sparse
from trilens.represent.vocabulary import Vocabulary

MOST_TERMS = 1 << 18


class GivenLens:
    """Terms that query and document share, with the weights that they came with."""

    name = "vectors"

    def __init__(self, config: SparseConfig = DEFAULT) -> None:
        self.encoder = GivenEncoder()
        self._lists = SparseLens(self.name, "sparse", self.encoder, config)

    def share(self, encoded: Encoded, shared: Sequence[Vocabulary], folder: Path) -> bool:
        """Write the words that no earlier batch had."""
        words = _counts(encoded).vocabulary
        unseen = _numbers(words, shared) < 0
        known = sum(len(page) for page in shared)
        if known + int(unseen.sum()) > MOST_TERMS:
            raise BadInput(
                f"the vectors have {known + int(unseen.sum()):,} different terms; expected at most {MOST_TERMS:,}: "
                "use the model's vocabulary, not free text"
            )
        if unseen.any():
            words.keep(unseen).save(folder)
        return bool(unseen.any())

    def open_shared(self, folder: Path) -> Vocabulary:
        """Map a page of words."""
        return Vocabulary.open(folder)

    def build(self, encoded: Encoded, folder: Path, shared: Sequence[Vocabulary]) -> None:
        """Write the lists of one segment."""
        self._lists.build(numbered(_counts(encoded), shared), folder, ())

    def merge(self, parts: Sequence[SparsePart], keep: Sequence[Mask], folder: Path, shared: Sequence[Vocabulary]) -> None:
        """Write the lists of the kept rows."""
        self._lists.merge(parts, keep, folder, ())

    def open(self, folder: Path) -> SparsePart:
        """Map a part."""
        return self._lists.open(folder)

    def searcher(
        self, parts: Sequence[SparsePart], live: Sequence[Mask | None], shared: Sequence[Vocabulary]
    ) -> "GivenSearcher":
        """A searcher over these parts."""
        return GivenSearcher(self._lists.searcher(parts, live, ()), shared)

    def figures(self, parts: Sequence[SparsePart], shared: Sequence[Vocabulary]) -> dict[str, Any]:
        """Those of the lists."""
        return self._lists.figures(parts, ())


class GivenSearcher:
    """Gives the words of a query their numbers, and searches the lists."""

    def __init__(self, lists: SparseSearcher, pages: Sequence[Vocabulary]) -> None:
        self._lists = lists
        self._pages = pages

    def search(
        self, queries: Encoded, k: int, allowed: Mask | None = None, exact: bool = False, params: SparseParams | None = None
    ) -> TopK:
        """See `SparseSearcher`; words that no document has are left out."""
        return self._lists.search(numbered(_counts(queries), self._pages), k, allowed, exact, params)

    def score(
        self,
        queries: Encoded,
        rows: NDArray[np.int64],
        params: SparseParams | None = None,
        allowed: Mask | None = None,
    ) -> NDArray[np.float32]:
        """See `SparseSearcher`."""
        return self._lists.score(numbered(_counts(queries), self._pages), rows, params)

    def weighed(self, queries: Encoded, params: SparseParams | None = None) -> Sparse:
        """See `SparseSearcher`."""
        return self._lists.weighed(numbered(_counts(queries), self._pages), params)

    def row(self, row: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """See `SparseSearcher`."""
        return self._lists.row(row)

    def words(self, terms: Sequence[int]) -> list[str]:
        """The words that terms stand for."""
        edges = np.cumsum([0, *(len(page) for page in self._pages)])
        pages = np.searchsorted(edges, terms, side="right") - 1
        return [self._pages[page].word(term - int(edges[page])) for page, term in zip(pages.tolist(), terms, strict=True)]


def numbered(counts: Counts, pages: Sequence[Vocabulary]) -> Encoded:
    """The vectors over the words of the collection; words that it does not have are left out."""
    numbers = _numbers(counts.vocabulary, pages)[counts.sparse.terms]
    known = numbers >= 0
    rows = np.repeat(np.arange(len(counts)), np.diff(counts.sparse.indptr))[known]
    order = np.lexsort((numbers[known], rows))
    indptr = offsets_of(np.bincount(rows, minlength=len(counts)))
    terms, weights = numbers[known][order].astype(np.int32), counts.sparse.weights[known][order]
    return Encoded(sparse=Sparse(indptr, terms, weights, MOST_TERMS))


def _numbers(words: Vocabulary, pages: Sequence[Vocabulary]) -> NDArray[np.int64]:
    """The number of each word in the collection: its place on its page, after all earlier pages; -1 for unknown ones."""
    numbers, first = np.full(len(words), -1, np.int64), 0
    for page in pages:
        places = page.find(words)
        numbers = np.where(places >= 0, first + places, numbers)
        first += len(page)
    return numbers


def _counts(encoded: Encoded) -> Counts:
    assert encoded.counts is not None
    return encoded.counts
