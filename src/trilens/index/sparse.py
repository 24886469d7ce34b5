"""The sparse lenses: weighted terms of a vocabulary, compared by inner product.

The same lens serves vectors over a model's whole vocabulary ("sparse"), weights of a text's own tokens ("lexical") and bags of
tokens ("bag"), bare or with how often each stands there, which need no model at all. A search adds up bounds for all rows and
scores the best of them by the rows themselves (kernels/sparse_search.py), so a score never depends on how its row was found.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from trilens.encode.encoder import Encoded, Encoder
from trilens.encode.folder import Weighing
from trilens.errors import BadInput
from trilens.index.lens import Mask, SharesNothing
from trilens.index.sparse_params import SparseParams, default_params
from trilens.index.sparse_parts import BagPart, SparsePart, WeightedPart
from trilens.index.topk import Heaps, TopK
from trilens.index.weighing import PLAIN, counted, rarity, weigh_docs, weigh_queries
from trilens.kernels.sparse import BAD_ORDER, BAD_TERM, BAD_WEIGHT, find_fault
from trilens.represent import Sparse

__all__ = ["DEFAULT", "SparseConfig", "SparseLens", "SparsePart", "SparseSearcher"]

MOST_DIM = 1 << 18
COLLAPSED = 0.5  # of the rows without any term: then the user is told
ADVICE = "most rows have no term, so no query finds them: the model's head has collapsed, or is not meant for these texts"

Field = Literal["sparse", "lexical", "bag"]
Floats = NDArray[np.float32]


class SparseConfig(BaseModel):
    """`weights`: 8 bits each with a scale per row, or as the model gives them. Bare bags have none."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    weights: Literal["uint8", "float32"] = "uint8"


DEFAULT = SparseConfig()
CHOSEN = SparseParams()
EXACT = SparseParams(method="exact")


class SparseLens(SharesNothing):
    """Terms that query and document share, each counting by the product of its weights."""

    def __init__(
        self, name: str, field: Field, encoder: Encoder, config: SparseConfig = DEFAULT, weighing: Weighing = PLAIN
    ) -> None:
        self.name = name
        self.field: Field = field
        self.encoder = encoder
        self.config = config
        self.weighing = weighing

    def build(self, encoded: Encoded, folder: Path, shared: Sequence[Any] = ()) -> None:
        """Write the part of one segment."""
        rows = weigh_docs(encoded, self.field, self.weighing)
        require_sound(rows, "document")
        if self._bare:
            BagPart.build(rows, folder)
        else:
            WeightedPart.build(rows, self.config.weights, folder)

    def merge(self, parts: Sequence[Any], keep: Sequence[Mask], folder: Path, shared: Sequence[Any] = ()) -> None:
        """Write the part of the kept rows."""
        dims = {part.dim for part in parts}
        if len(dims) != 1:
            raise BadInput(f"cannot join segments over vocabularies of {sorted(dims)} terms; expected one size")
        kind = BagPart if self._bare else WeightedPart
        kind.merge(parts, keep, folder)

    def open(self, folder: Path) -> SparsePart:
        """Map a part."""
        return BagPart.open(folder, self.weighing) if self._bare else WeightedPart.open(folder)

    @property
    def _bare(self) -> bool:
        """Whether all terms of a row weigh the same."""
        return self.field == "bag" and self.weighing.repeats == 0

    def searcher(
        self, parts: Sequence[SparsePart], live: Sequence[Mask | None], shared: Sequence[Any] = ()
    ) -> "SparseSearcher":
        """A searcher over these parts."""
        return SparseSearcher(self.field, parts, live, self.weighing)

    def figures(self, parts: Sequence[SparsePart], shared: Sequence[Any] = ()) -> dict[str, Any]:
        """How full the rows are; those without a term are never found."""
        rows, postings = sum(len(part) for part in parts), sum(part.postings for part in parts)
        if not rows:
            return {"rows": 0}
        empty = sum(int((part.lengths == 0).sum()) for part in parts)
        return {
            "rows": rows,
            "postings": postings,
            "terms used": len(np.unique(np.concatenate([part.used for part in parts]))),
            "mean terms per row": round(postings / rows, 1),
            "bytes per posting": round(sum(part.size for part in parts) / max(1, postings), 2),
            "rows without any term": empty,
        } | ({"advice": ADVICE} if empty > COLLAPSED * rows else {})


class SparseSearcher:
    """Answers queries over all parts."""

    def __init__(
        self, field: Field, parts: Sequence[SparsePart], live: Sequence[Mask | None], weighing: Weighing = PLAIN
    ) -> None:
        self.field = field
        self._parts = parts
        self._live = live
        self._weighing = weighing
        self._first_rows = np.cumsum([0, *(len(part) for part in parts)]).tolist()
        self._blanks: list[Floats] = []

    def query(self, queries: Encoded, params: SparseParams | None = None) -> Sparse:
        """What is asked: the weights that fit the lens, or the bag of the query's tokens."""
        bag = params is not None and params.query == "bag"
        asked = queries.bag if bag else queries.lexical if self.field == "lexical" else queries.sparse
        assert asked is not None
        if bag:
            asked = counted(asked, self._weighing)
        require_sound(asked, "query")
        if self._parts and asked.dim != self._parts[0].dim:
            raise BadInput(
                f"query terms are over {asked.dim:,} dimensions; expected {self._parts[0].dim:,}, as the documents: "
                "encode queries with the model of the collection"
            )
        return asked

    def weighed(self, queries: Encoded, params: SparseParams | None = None) -> Sparse:
        """What is searched with: what is asked, each term by what it counts for in this collection."""
        asked = self.query(queries, params)
        if asked is queries.sparse:
            asked = weigh_queries(asked, queries.bag, self._weighing)
        if self.by_rarity(params):
            asked = Sparse(asked.indptr, asked.terms, asked.weights * self.rarity[asked.terms], asked.dim)
        return asked

    def by_rarity(self, params: SparseParams | None = None) -> bool:
        """Whether terms count by how rare they are."""
        return self._weighing.rarity and (params is None or params.rarity)

    @cached_property
    def rarity(self) -> Floats:
        """How much each term of the vocabulary says, by the number of live rows that hold it."""
        frequencies, rows = np.zeros(self._parts[0].dim if self._parts else 0, np.int64), 0
        for part, live in zip(self._parts, self._live, strict=True):
            frequencies[part.used] += part.frequencies
            rows += len(part)
            if live is not None:
                frequencies -= np.bincount(part.terms_of(~live), minlength=part.dim)
                rows -= len(part) - int(live.sum())
        return rarity(frequencies, rows).astype(np.float32)

    def search(
        self, queries: Encoded, k: int, allowed: Mask | None = None, exact: bool = False, params: SparseParams | None = None
    ) -> TopK:
        """The best k rows that share a term with the query."""
        asked = self.weighed(queries, params)
        heaps = Heaps(len(asked), k)
        chosen = EXACT if exact else params or CHOSEN
        query = self._take_blank(asked.dim)
        for i, part in enumerate(self._parts):
            first_row = self._first_rows[i]
            mask = self._live[i] if allowed is None else allowed[first_row : first_row + len(part)]
            part.offer(asked, default_params(chosen, k, len(part)), mask, first_row, query, heaps)
        self._blanks.append(query)
        return heaps.sorted()

    def score(
        self,
        queries: Encoded,
        rows: NDArray[np.int64],
        params: SparseParams | None = None,
        allowed: Mask | None = None,
    ) -> Floats:
        """The exact scores of the rows (queries, n) of each query, 0 where they share no term; -inf where a row is -1."""
        asked = self.weighed(queries, params)
        scores = np.full(rows.shape, -np.inf, np.float32)
        query = self._take_blank(asked.dim)
        for first_row, part in zip(self._first_rows[:-1], self._parts, strict=True):
            part.score(asked, rows, first_row, query, scores)
        self._blanks.append(query)
        return scores

    def row(self, row: int) -> tuple[NDArray[np.int32], Floats]:
        """The terms of a row, and the weights that its scores are made of."""
        if not 0 <= row < self._first_rows[-1]:
            raise BadInput(f"row is {row}; expected 0 to {self._first_rows[-1] - 1}")
        i = int(np.searchsorted(self._first_rows, row, side="right")) - 1
        return self._parts[i].row(row - self._first_rows[i])

    def _take_blank(self, dim: int) -> Floats:
        """A zero for each term, which is handed back as it was: clearing a large vocabulary takes longer than many searches."""
        try:
            return self._blanks.pop()
        except IndexError:
            return np.zeros(dim, np.float32)


def require_sound(rows: Sparse, kind: str) -> None:
    """Refuse weights and terms that no score can be made of."""
    if rows.dim > MOST_DIM:
        raise BadInput(f"the vocabulary has {rows.dim:,} terms; expected at most {MOST_DIM:,}")
    fault, at = find_fault(rows.indptr, rows.terms, rows.weights, rows.dim)
    number = int(np.searchsorted(rows.indptr, at, side="right")) - 1 if fault else 0
    where = f"{kind} {number} of the batch"
    if fault == BAD_WEIGHT:
        raise BadInput(f"{where} has weight {rows.weights[at]} for term {rows.terms[at]}; expected 0 or more: check the model")
    if fault == BAD_TERM:
        raise BadInput(f"{where} has term {rows.terms[at]}; expected 0 to {rows.dim - 1}: check the model's vocabulary")
    if fault == BAD_ORDER:
        raise BadInput(f"{where} has term {rows.terms[at]} after a larger or equal one; expected each once, ascending")
