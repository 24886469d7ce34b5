"""`Window`: collects the outputs of batches, which are sorted by length, in the order of the texts."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from trilens.encode.encoder import Encoded
from trilens.encode.folder import Head
from trilens.encode.reading import KeptTokens, ModelInputs, OwnTokens, Reading
from trilens.encode.terms import SparseMode, TermSpace
from trilens.kernels.array_types import Float32s, Int64s
from trilens.represent import Dense, Multi, Sparse
from trilens.represent.ragged import concat_offsets, take_ragged

BatchPositions = Int64s
"""Positions of the texts of a batch in their window."""


class Collector(Protocol):
    """Collects the output of one head, batch by batch. Several threads may place batches concurrently."""

    def place(self, batch: BatchPositions, output: Float32s) -> None:
        """Store the output for the texts of a batch."""


class DenseCollector:
    """Collects dense vectors into `vectors` (texts, dimensions), which is filled in place."""

    def __init__(self, vectors: Float32s) -> None:
        self.vectors = vectors

    def place(self, batch: BatchPositions, output: Float32s) -> None:
        """See `Collector`; the output is (texts, dimensions)."""
        self.vectors[batch] = output


class MultiCollector:
    """Collects the vectors of the kept tokens."""

    def __init__(self, kept: KeptTokens, dim: int) -> None:
        self._kept = kept
        self._vectors = np.empty((len(kept.tokens), dim), np.float32)

    def place(self, batch: BatchPositions, output: Float32s) -> None:
        """See `Collector`; the output is (texts, tokens, dimensions)."""
        mask = np.zeros(output.shape[:2], bool)
        for row, text in enumerate(batch):
            kept = self._kept.row(text)
            mask[row, : len(kept)] = kept
        self._vectors[take_ragged(self._kept.offsets, batch)[1]] = output[mask]

    def multi(self) -> Multi:
        """The token vectors of all texts."""
        return Multi(self._kept.offsets, self._vectors, self._kept.tokens)


class SparseCollector:
    """Collects `sparse` vectors, pruned by `mode`, and the bags that pruning needs."""

    def __init__(self, inputs: ModelInputs, own: OwnTokens, terms: TermSpace, mode: SparseMode) -> None:
        self.bag = terms.bag(own)
        self._attended, self._terms, self._mode = np.array(inputs.attended, np.int64), terms, mode
        self._placed = [(np.empty(0, np.int64), empty_sparse(terms.dim))]

    def place(self, batch: BatchPositions, output: Float32s) -> None:
        """See `Collector`; the output is (texts, terms)."""
        nonempty = self._attended[batch] > 0
        if not nonempty.all():  # the output for an empty input is meaningless
            output = output * nonempty[:, None]
        self._placed.append((batch, self._terms.sparse(output, self.bag.take(batch), self._mode)))

    def sparse(self) -> Sparse:
        """The `sparse` vectors of all texts."""
        batches, parts = zip(*self._placed, strict=True)
        return Sparse.concat(parts).take(np.argsort(np.concatenate(batches)))


class LexicalCollector:
    """Collects the weights of the tokens of the texts."""

    def __init__(self, own: OwnTokens, terms: TermSpace) -> None:
        self._own, self._terms = own, terms
        self._weights = np.empty(len(own.ids), np.float32)

    def place(self, batch: BatchPositions, output: Float32s) -> None:
        """See `Collector`; the output is (texts, tokens)."""
        for row, text in enumerate(batch):
            start, stop = self._own.starts[text : text + 2]
            self._weights[start:stop] = output[row, : stop - start]

    def lexical(self) -> Sparse:
        """The `lexical` vectors of all texts."""
        return self._terms.lexical(self._own, self._weights)


class Window:
    """Model inputs of consecutive texts, and the outputs of the heads in `dims` for them.

    Dense vectors are written to `dense` (texts, dimensions), which avoids a copy.
    """

    def __init__(
        self,
        inputs: ModelInputs,
        reading: Reading,
        terms: TermSpace,
        dims: Mapping[Head, int],
        mode: SparseMode,
        dense: Float32s,
    ) -> None:
        self.inputs = inputs
        own = reading.own(inputs) if dims.keys() & {"sparse", "lexical"} else None
        self._multi = MultiCollector(reading.kept(inputs), dims["multi"]) if "multi" in dims else None
        self._sparse = SparseCollector(inputs, own, terms, mode) if own and "sparse" in dims else None
        self._lexical = LexicalCollector(own, terms) if own and "lexical" in dims else None
        collectors: dict[Head, Collector | None] = {
            "dense": DenseCollector(dense),
            "multi": self._multi,
            "sparse": self._sparse,
            "lexical": self._lexical,
        }
        self._collectors = {head: collector for head, collector in collectors.items() if collector}

    def place(self, batch: BatchPositions, outputs: Mapping[Head, Float32s]) -> None:
        """Store the outputs of all heads for a batch."""
        for head, output in outputs.items():
            self._collectors[head].place(batch, output)

    def encoded(self) -> Encoded:
        """The representations of all texts, except the dense vectors."""
        return Encoded(
            multi=self._multi.multi() if self._multi else None,
            sparse=self._sparse.sparse() if self._sparse else None,
            lexical=self._lexical.lexical() if self._lexical else None,
            bag=self._sparse.bag if self._sparse else None,
            truncated=self.inputs.truncated,
        )


def join_windows(parts: list[Encoded], dims: Mapping[Head, int], dense: Float32s) -> Encoded:
    """Concatenate windows; heads that are not in `dims` are None. Empties `parts`."""
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
    """Concatenate token vectors. Empties `parts`: each is released once copied, so memory holds the vectors only once."""
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
    """Concatenate sparse vectors."""
    return parts[0] if len(parts) == 1 else Sparse.concat([empty_sparse(dim), *parts])


def empty_sparse(dim: int) -> Sparse:
    """Sparse vectors of zero texts."""
    return Sparse(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), dim)
