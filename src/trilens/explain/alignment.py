"""Why the multi lens gave a row its score: which token of the document each query token was matched with, and how well."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trilens.errors import BadInput
from trilens.index.multi import MultiLens
from trilens.index.multi_params import MultiParams, Settings
from trilens.index.multi_search import MultiSearcher
from trilens.store.lenses import Lenses
from trilens.store.snapshot import Snapshot

Floats = NDArray[np.float32]

SHOWN = 10  # the k of a search that nobody says more about


@dataclass(frozen=True, eq=False)
class Alignment:
    """One query against one row. `similarities` is (query tokens, document tokens), from the vectors as the index holds them.

    `retrieved`, of the same shape, marks the tokens that the search scored: all of them, unless it imputes. A query token
    none of whose retrieved tokens reaches its `floor` counts with that floor (-inf where nothing is imputed).
    """

    query_tokens: list[str]
    doc_tokens: list[str]
    similarities: Floats
    retrieved: NDArray[np.bool_]
    floors: Floats

    @cached_property
    def winners(self) -> NDArray[np.int64]:
        """The document token that each query token was matched with; -1 where its part was imputed."""
        scored = np.where(self.retrieved, self.similarities, -np.inf)
        best = scored.argmax(axis=1)
        return np.where(scored[np.arange(len(best)), best] < self.floors, -1, best)

    @property
    def imputed(self) -> NDArray[np.bool_]:
        """Whether the part of each query token was imputed."""
        return self.winners < 0

    @cached_property
    def parts(self) -> Floats:
        """What each query token gives: they add up to the score."""
        best = self.similarities[np.arange(len(self.winners)), np.maximum(self.winners, 0)]
        return np.where(self.imputed, self.floors, best)

    @property
    def score(self) -> float:
        """The sum of the parts."""
        return float(self.parts.sum())


def align_document(
    snapshot: Snapshot, lenses: Lenses, query: str, doc_id: str, params: MultiParams | None = None
) -> Alignment | None:
    """The alignment of a query with the best passage of a document, as a search with these params sees it."""
    key = snapshot.key(doc_id)
    if key is None:
        raise BadInput(f"there is no document {doc_id!r} in the collection; expected the id of one")
    lens, searcher = lenses["multi"], snapshot.searcher("multi")
    assert isinstance(lens, MultiLens) and isinstance(searcher, MultiSearcher)
    asked = lens.encoder.encode_queries([query])
    assert asked.multi is not None
    found = []
    for row, _, text in snapshot.passages(np.array([key])):
        tokens = lens.tokens(lens.encoder.encode_docs([text])).tokens
        words = (lenses.model.token_texts(asked.multi.tokens.tolist()), lenses.model.token_texts(tokens.tolist()))
        found.append(align(searcher, asked.multi.vectors, row, words, searcher.settings(params, SHOWN)))
    return max((one for one in found if one), key=lambda one: one.score, default=None)


def align(
    searcher: MultiSearcher, query: Floats, row: int, words: tuple[list[str], list[str]], params: Settings
) -> Alignment | None:
    """The alignment of the vectors of a query with a row; None if one of them has no tokens.

    `words` are the tokens of query and row in words.
    """
    vectors = searcher.decode(row)
    if not len(vectors) or not len(query):
        return None
    similarities = query @ vectors.T
    retrieved = np.ones(similarities.shape, np.bool_)
    floors = np.full(len(similarities), -np.inf, np.float32)
    if params.imputes:
        look = searcher.look(query, params)
        floors = searcher.imputed(look, params)
        retrieved = (searcher.codes(row).nearest[None, :, None] == look.probed[:, None, :]).any(axis=2)
    return Alignment(*words, similarities, retrieved, floors)
