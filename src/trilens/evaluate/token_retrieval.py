"""What the tokens are that a multi-vector search retrieves, and what that costs: the analyses of the XTR paper.

(Lee et al. 2023, "Rethinking the Role of Token Retrieval in Multi-Vector Retrieval": figure 3, section 5, table 1.) For each
query token the best k' document tokens of the whole collection are looked at: how many belong to a relevant document, how many
are the query token itself, and how many documents they bring up.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trilens.collection import Collection
from trilens.errors import BadInput
from trilens.index.multi_search import MultiSearcher

DEPTHS = (1, 10, 100, 1000)
QUERIES_AT_ONCE = 32
ROWS_AT_ONCE = 128

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Retrieved:
    """Means over all queries when each of their tokens retrieves `depth` tokens (k').

    gold, lexical           share of retrieved tokens that belong to a relevant document, that are the query token itself
    gold_found              share of query tokens that retrieved a token of a relevant document
    documents               different passages that a query brings up
    tokens_per_document     retrieved tokens of each of them (r̄)
    colbert_flops           of gathering them and scoring all their tokens: n² k' (2 n̄ d + n̄ + 1)
    xtr_flops               of scoring the retrieved tokens alone: n² k' (r̄ + 1)
    """

    depth: int
    gold: float
    lexical: float
    gold_found: float
    documents: float
    tokens_per_document: float
    colbert_flops: float
    xtr_flops: float


def analyse(
    collection: Collection,
    queries: Mapping[str, str],
    qrels: Mapping[str, Mapping[str, int]],
    depths: tuple[int, ...] = DEPTHS,
    report: Callable[[int], None] = lambda queries: None,
) -> list[Retrieved]:
    """Look at the tokens that each judged query retrieves through the multi lens."""
    tokens = _Tokens(collection)
    ids = list(queries)
    measured: list[NDArray[np.float64]] = []
    lengths: list[int] = []
    for start in range(0, len(ids), QUERIES_AT_ONCE):
        some = ids[start : start + QUERIES_AT_ONCE]
        multi = tokens.encoder.encode_queries([queries[query_id] for query_id in some]).multi
        assert multi is not None
        best = tokens.best(multi.vectors, max(depths))
        for at, query_id in enumerate(some):
            span = slice(multi.offsets[at], multi.offsets[at + 1])
            relevant = {doc_id for doc_id, grade in qrels.get(query_id, {}).items() if grade > 0}
            measured.append(np.array([tokens.measure(multi.tokens[span], best[span, :depth], relevant) for depth in depths]))
            lengths.append(len(multi.tokens[span]))
            report(1)
    if not measured:
        raise BadInput("there are no judged queries; expected at least one")
    n, mean_length = float(np.mean(lengths)), tokens.mean_length
    return [
        Retrieved(
            depth,
            gold,
            lexical,
            gold_found,
            documents,
            tokens_per_document,
            colbert_flops=n**2 * depth * (2 * mean_length * tokens.dim + mean_length + 1),
            xtr_flops=n**2 * depth * (tokens_per_document + 1),
        )
        for depth, (gold, lexical, gold_found, documents, tokens_per_document) in zip(
            depths, np.mean(measured, axis=0).tolist(), strict=True
        )
    ]


class _Tokens:
    """Every token of the live rows of a collection: its row and its id."""

    def __init__(self, collection: Collection) -> None:
        if "multi" not in collection.lenses:
            raise BadInput(f"{collection.path} has no multi lens; expected one: index again with --lens multi")
        if collection.config.multi.pool != 1:
            raise BadInput(f"the tokens of {collection.path} are pooled; expected a collection with pool 1")
        searcher = collection.snapshot.searcher("multi")
        assert isinstance(searcher, MultiSearcher)
        self._searcher = searcher
        self.encoder = collection.model
        self._rows: list[int] = []
        self._doc_ids: list[str] = []
        words = []
        for row, document, text in collection.snapshot.passages():
            self._rows.append(row)
            self._doc_ids.append(document.doc_id)
            words.append(self.encoder.doc_tokens([text])[1])
        self.words = np.concatenate([np.empty(0, np.int32), *words])
        lengths = [len(searcher.codes(row)) for row in self._rows]
        self.places = np.repeat(np.arange(len(self._rows)), lengths)
        if len(self.places) != len(self.words):
            raise BadInput(f"{collection.path} was not made with this tokenizer; expected the model it was indexed with")

    @property
    def dim(self) -> int:
        """Dimensions of a token."""
        return self._searcher.dim

    @property
    def mean_length(self) -> float:
        """Tokens of a passage."""
        return len(self.words) / max(1, len(self._rows))

    def best(self, queries: Floats, depth: int) -> Ints:
        """The positions (query tokens, depth) of the most similar tokens, best first; -1 where there are no more."""
        scores = np.full((len(queries), depth), -np.inf, np.float32)
        found = np.full((len(queries), depth), -1, np.int64)
        first = 0
        for vectors in self._blocks():
            block = np.concatenate([scores, queries @ vectors.T], axis=1)
            numbers = np.concatenate(
                [found, np.broadcast_to(first + np.arange(len(vectors)), (len(queries), len(vectors)))], axis=1
            )
            order = np.argsort(-block, axis=1, kind="stable")[:, :depth]
            scores, found = np.take_along_axis(block, order, 1), np.take_along_axis(numbers, order, 1)
            first += len(vectors)
        return found

    def _blocks(self) -> Iterator[Floats]:
        for start in range(0, len(self._rows), ROWS_AT_ONCE):
            yield np.concatenate([self._searcher.decode(row) for row in self._rows[start : start + ROWS_AT_ONCE]])

    def measure(self, words: NDArray[np.int32], found: Ints, gold: set[str]) -> list[float]:
        """gold, lexical, gold_found, documents and tokens_per_document of one query."""
        there = found >= 0
        places = self.places[np.maximum(found, 0)]
        is_gold = there & np.array([doc_id in gold for doc_id in self._doc_ids], np.bool_)[places]
        is_same = there & (self.words[np.maximum(found, 0)] == words[:, None])
        count, documents = max(1, int(there.sum())), len(np.unique(places[there]))
        return [
            float(is_gold.sum()) / count,
            float(is_same.sum()) / count,
            float(is_gold.any(axis=1).mean()) if len(found) else 0.0,
            float(documents),
            count / max(1, documents),
        ]
