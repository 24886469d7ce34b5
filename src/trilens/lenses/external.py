"""The lens `external`: weighted terms that another model computed, given with the documents instead of texts.

Terms are words of any vocabulary, numbered in the order in which they enter the collection: a batch with unknown words adds
a page of words to the shared parts.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np

from trilens.encode.encoder import Encoded
from trilens.encode.external import ExternalEncoder
from trilens.encode.model import ModelEncoder
from trilens.encode.reading import Side
from trilens.errors import BadInput
from trilens.index.sparse_parts import MOST_DIM, SparsePart
from trilens.kernels.array_types import Int64s, Mask
from trilens.lenses.lens import Colour, ExplainTarget, LensType
from trilens.lenses.parts import ScoreParts
from trilens.lenses.term_lens import OwnTerms, TermLens, TermSearcher
from trilens.lenses.term_settings import DEFAULT, SparseConfig, TermParams
from trilens.represent.counts import Counts
from trilens.represent.ragged import offsets_of
from trilens.represent.sparse import Sparse
from trilens.represent.vocabulary import Vocabulary


class ExternalLens(TermLens):
    """Indexes the weighted terms that documents come with."""

    name = "external"
    field = "sparse"
    shares = True

    def __init__(self, config: SparseConfig = DEFAULT) -> None:
        super().__init__(cast(ModelEncoder, None), config)  # vectors are given, so there is no model
        self.encoder = ExternalEncoder()

    def share(self, encoded: Encoded, shared: Sequence[Vocabulary], folder: Path) -> bool:
        """Write the words of the batch that no earlier batch had."""
        words = _counts(encoded).vocabulary
        unknown = _term_numbers(words, shared) < 0
        known = sum(len(page) for page in shared)
        if known + int(unknown.sum()) > MOST_DIM:
            raise BadInput(
                f"the vectors have {known + int(unknown.sum()):,} different terms; expected at most {MOST_DIM:,}: "
                "use the model's vocabulary, not free text"
            )
        if unknown.any():
            words.keep(unknown).save(folder)
        return bool(unknown.any())

    def open_shared(self, folder: Path) -> Vocabulary:
        """Map a page of words."""
        return Vocabulary.open(folder)

    def build(self, encoded: Encoded, folder: Path, shared: Sequence[Vocabulary] = ()) -> None:
        """Write the part of one segment."""
        super().build(Encoded(sparse=numbered(_counts(encoded), shared)), folder)

    def searcher(
        self, parts: Sequence[SparsePart], live: Sequence[Mask | None], shared: Sequence[Vocabulary] = ()
    ) -> "ExternalSearcher":
        """A searcher over these parts."""
        return ExternalSearcher(self, parts, live, shared)

    def own_terms(self, text: str, side: Side) -> OwnTerms:
        """All terms: there is no text that they could be missing from."""
        return OwnTerms(all=True)


class ExternalSearcher(TermSearcher):
    """Numbers the words of a query and searches the inverted indexes; words that no document has are ignored."""

    def __init__(
        self,
        lens: ExternalLens,
        parts: Sequence[SparsePart],
        live: Sequence[Mask | None],
        pages: Sequence[Vocabulary],
    ) -> None:
        super().__init__(lens, parts, live)
        self._pages = pages

    def query(self, queries: Encoded, params: TermParams | None = None) -> Sparse:
        """The query vectors over the collection's terms."""
        return super().query(replace(queries, sparse=numbered(_counts(queries), self._pages)), params)

    def explain(self, target: ExplainTarget) -> ScoreParts:
        """One part per term that query and document share, largest first."""
        query = self.weighted(target.encoded, target.params)
        return self._lens.explain_terms(target, query, self.row(target.row), texts=self._words)

    def scale_sums(self, queries: Encoded, params: TermParams | None = None) -> None:
        """None: what the weights of another model mean is unknown."""

    def _words(self, terms: Sequence[int]) -> list[str]:
        """The words that terms stand for."""
        edges = np.cumsum([0, *(len(page) for page in self._pages)])
        numbers = np.searchsorted(edges, terms, side="right") - 1
        return [self._pages[page].word(term - int(edges[page])) for page, term in zip(numbers.tolist(), terms, strict=True)]


def numbered(counts: Counts, pages: Sequence[Vocabulary]) -> Sparse:
    """Vectors over the terms of the collection; words that it does not have are left out."""
    numbers = _term_numbers(counts.vocabulary, pages)[counts.sparse.terms]
    known = numbers >= 0
    rows = np.repeat(np.arange(len(counts)), np.diff(counts.sparse.indptr))[known]
    order = np.lexsort((numbers[known], rows))
    indptr = offsets_of(np.bincount(rows, minlength=len(counts)))
    terms, weights = numbers[known][order].astype(np.int32), counts.sparse.weights[known][order]
    return Sparse(indptr, terms, weights, MOST_DIM)


def _term_numbers(words: Vocabulary, pages: Sequence[Vocabulary]) -> Int64s:
    """The term of each word: its place on its page, counted through all pages; -1 for unknown words."""
    numbers, first = np.full(len(words), -1, np.int64), 0
    for page in pages:
        places = page.find(words)
        numbers = np.where(places >= 0, first + places, numbers)
        first += len(page)
    return numbers


def _counts(encoded: Encoded) -> Counts:
    assert encoded.counts is not None
    return encoded.counts


EXTERNAL = LensType(
    name="external",
    description="weighted terms of another model, given with the documents",
    colour=Colour("#6b7280", "#a4abb6"),
    make=lambda setup: ExternalLens(setup.config),
    config=SparseConfig,
    config_key="sparse",
    params=TermParams,
    reads="vector",
    stored_as="vectors",
)
