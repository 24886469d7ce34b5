"""`Window`: what the batches of some texts gave, put back into the order of the texts; a collector for each head."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from trilens.encode.encoder import Encoded
from trilens.encode.folder import Head
from trilens.encode.reading import Kept, Own, Reading, Rows
from trilens.encode.terms import SparseMode, Terms
from trilens.represent import Dense, Multi, Sparse
from trilens.represent.ragged import concat_offsets, take_ragged

Batch = NDArray[np.int64]
"""Positions of texts in their window."""


class Collector(Protocol):
    """Takes the output of one head, batch by batch; several threads may place batches at a time."""

    def place(self, batch: Batch, output: NDArray[np.float32]) -> None:
        """Keep what the texts of a batch got, in the order of the batch."""


class DenseVectors:
    """The dense vectors of all texts in `vectors` (texts, dimensions), an array that is filled in place."""

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        self.vectors = vectors

    def place(self, batch: Batch, output: NDArray[np.float32]) -> None:
        """See `Collector`; the output has a vector per text."""
        self.vectors[batch] = output


class TokenVectors:
    """The vectors of the tokens that are kept."""

    def __init__(self, kept: Kept, dim: int) -> None:
        self._kept = kept
        self._vectors = np.empty((len(kept.tokens), dim), np.float32)

    def place(self, batch: Batch, output: NDArray[np.float32]) -> None:
        """See `Collector`; the output is (texts, tokens, dimensions)."""
        mask = np.zeros(output.shape[:2], bool)
        for place, at in enumerate(batch):
            row = self._kept.row(at)
            mask[place, : len(row)] = row
        self._vectors[take_ragged(self._kept.offsets, batch)[1]] = output[mask]

    def multi(self) -> Multi:
        """All that was placed."""
        return Multi(self._kept.offsets, self._vectors, self._kept.tokens)


class TermWeights:
    """The weights over the vocabulary that `mode` keeps, and the bags that it needs for that."""

    def __init__(self, rows: Rows, own: Own, terms: Terms, mode: SparseMode) -> None:
        self.bag = terms.bag(own)
        self._seen, self._terms, self._mode = np.array(rows.seen, np.int64), terms, mode
        self._placed = [(np.empty(0, np.int64), empty_sparse(terms.dim))]

    def place(self, batch: Batch, output: NDArray[np.float32]) -> None:
        """See `Collector`; the output is (texts, dimensions)."""
        seen = self._seen[batch] > 0
        if not seen.all():  # what a model makes of nothing means nothing
            output = output * seen[:, None]
        self._placed.append((batch, self._terms.sparse(output, self.bag.take(batch), self._mode)))

    def sparse(self) -> Sparse:
        """All that was placed."""
        batches, parts = zip(*self._placed, strict=True)
        return Sparse.concat(parts).take(np.argsort(np.concatenate(batches)))


class TokenWeights:
    """The weights of the texts' own tokens."""

    def __init__(self, own: Own, terms: Terms) -> None:
        self._own, self._terms = own, terms
        self._weights = np.empty(len(own.ids), np.float32)

    def place(self, batch: Batch, output: NDArray[np.float32]) -> None:
        """See `Collector`; the output is (texts, tokens)."""
        for place, at in enumerate(batch):
            start, stop = self._own.starts[at : at + 2]
            self._weights[start:stop] = output[place, : stop - start]

    def lexical(self) -> Sparse:
        """All that was placed."""
        return self._terms.lexical(self._own, self._weights)


class Window:
    """Some texts as a model is given them, and what it made of them by the heads that have a place in `dims`.

    `dense` (texts, dimensions) is where dense vectors go, which are not copied again.
    """

    def __init__(
        self,
        rows: Rows,
        reading: Reading,
        terms: Terms,
        dims: Mapping[Head, int],
        mode: SparseMode,
        dense: NDArray[np.float32],
    ) -> None:
        self.rows = rows
        own = reading.own(rows) if dims.keys() & {"sparse", "lexical"} else None
        self._multi = TokenVectors(reading.kept(rows), dims["multi"]) if "multi" in dims else None
        self._sparse = TermWeights(rows, own, terms, mode) if own and "sparse" in dims else None
        self._lexical = TokenWeights(own, terms) if own and "lexical" in dims else None
        every: dict[Head, Collector | None] = {
            "dense": DenseVectors(dense),
            "multi": self._multi,
            "sparse": self._sparse,
            "lexical": self._lexical,
        }
        self._collectors = {head: collector for head, collector in every.items() if collector}

    def place(self, batch: Batch, found: Mapping[Head, NDArray[np.float32]]) -> None:
        """Keep what the heads gave for a batch."""
        for head, output in found.items():
            self._collectors[head].place(batch, output)

    def encoded(self) -> Encoded:
        """All that was placed, but for the dense vectors."""
        return Encoded(
            multi=self._multi.multi() if self._multi else None,
            sparse=self._sparse.sparse() if self._sparse else None,
            lexical=self._lexical.lexical() if self._lexical else None,
            bag=self._sparse.bag if self._sparse else None,
            truncated=self.rows.truncated,
        )


def join_windows(parts: list[Encoded], dims: Mapping[Head, int], dense: NDArray[np.float32]) -> Encoded:
    """All windows in one, emptying `parts`; a head without a place in `dims` is None."""
    tokens = [part.multi for part in parts if part.multi]
    terms = {name: [getattr(part, name) for part in parts] for name in ("sparse", "lexical", "bag")}
    truncated = sum(part.truncated for part in parts)
    parts.clear()
    return Encoded(
        dense=Dense(dense) if "dense" in dims else None,
        multi=join_tokens(tokens, dims["multi"]) if "multi" in dims else None,
        sparse=join_terms(terms["sparse"], dims["sparse"]) if "sparse" in dims else None,
        lexical=join_terms(terms["lexical"], dims["lexical"]) if "lexical" in dims else None,
        bag=join_terms(terms["bag"], dims["sparse"]) if "sparse" in dims else None,
        truncated=truncated,
    )


def join_tokens(parts: list[Multi], dim: int) -> Multi:
    """All windows in one, emptying `parts`: each is let go once copied, so that memory holds the vectors once."""
    if len(parts) == 1:
        return parts.pop()
    offsets = concat_offsets([np.zeros(1, np.int64), *(part.offsets for part in parts)])
    tokens = np.concatenate([np.empty(0, np.int32), *(part.tokens for part in parts)])
    vectors = np.empty((len(tokens), dim), np.float32)
    stop = len(vectors)
    while parts:
        part = parts.pop()
        vectors[stop - len(part.vectors) : stop] = part.vectors
        stop -= len(part.vectors)
    return Multi(offsets, vectors, tokens)


def join_terms(parts: Sequence[Sparse], dim: int) -> Sparse:
    """All windows in one."""
    return parts[0] if len(parts) == 1 else Sparse.concat([empty_sparse(dim), *parts])


def empty_sparse(dim: int) -> Sparse:
    """No texts."""
    return Sparse(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), dim)
