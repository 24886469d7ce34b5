"""Token retrieval analysis of the XTR paper: which document tokens a multi-vector search retrieves, and the cost of scoring.

Lee et al. 2023, "Rethinking the Role of Token Retrieval in Multi-Vector Retrieval", figure 3, section 5 and table 1. Each query
token retrieves its k' most similar document tokens. The analysis counts how many of them belong to a relevant document, how
many equal the query token, and how many documents they cover.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from trilens.collection import Collection
from trilens.errors import BadInput
from trilens.kernels.array_types import Float32s, Float64s, Int32s, Int64s
from trilens.lenses.multi import MULTI, MultiConfig, MultiSearcher

DEPTHS = (1, 10, 100, 1000)
QUERIES_AT_ONCE = 32
ROWS_AT_ONCE = 128


@dataclass(frozen=True, slots=True)
class TokenRetrieval:
    """Means over all queries if each query token retrieves `depth` document tokens (k').

    gold                    fraction of retrieved tokens that belong to a relevant document
    lexical                 fraction of retrieved tokens that equal the query token
    gold_found              fraction of query tokens that retrieve a token of a relevant document
    documents               number of distinct passages that a query retrieves
    tokens_per_document     retrieved tokens per passage (r̄)
    colbert_flops           cost of gathering the passages and scoring all their tokens: n² k' (2 n̄ d + n̄ + 1)
    xtr_flops               cost of scoring only the retrieved tokens: n² k' (r̄ + 1)
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
) -> list[TokenRetrieval]:
    """Analyse the tokens that judged queries retrieve through the multi lens, for each depth."""
    tokens = _TokenIndex(collection)
    ids = list(queries)
    measured: list[Float64s] = []
    lengths: list[int] = []
    for start in range(0, len(ids), QUERIES_AT_ONCE):
        batch = ids[start : start + QUERIES_AT_ONCE]
        multi = tokens.encoder.encode_queries([queries[query_id] for query_id in batch]).multi
        assert multi is not None
        nearest = tokens.nearest(multi.vectors, max(depths))
        for index, query_id in enumerate(batch):
            span = slice(multi.offsets[index], multi.offsets[index + 1])
            relevant = {doc_id for doc_id, grade in qrels.get(query_id, {}).items() if grade > 0}
            measured.append(np.array([tokens.measure(multi.tokens[span], nearest[span, :depth], relevant) for depth in depths]))
            lengths.append(len(multi.tokens[span]))
            report(1)
    if not measured:
        raise BadInput("there are no judged queries; expected at least one")
    n, mean_length = float(np.mean(lengths)), tokens.mean_length
    return [
        TokenRetrieval(
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


class _TokenIndex:
    """All tokens of the live rows of a collection: their passages, token ids and vectors."""

    def __init__(self, collection: Collection) -> None:
        if MULTI.name not in collection.lenses:
            raise BadInput(f"{collection.path} has no multi lens; index it again with --lens multi")
        config = collection.config.of_lens(MULTI.name)
        assert isinstance(config, MultiConfig)
        if config.pool != 1:
            raise BadInput(f"the tokens of {collection.path} are pooled; expected a collection indexed with pool 1")
        searcher = collection.snapshot.searcher(MULTI.name)
        assert isinstance(searcher, MultiSearcher)
        self._tokens = searcher.tokens
        self.encoder = collection.model.encoder
        reader = collection.model.tokens
        self._rows: list[int] = []
        self._doc_ids: list[str] = []
        token_ids = []
        for row, document, text in collection.snapshot.passages():
            self._rows.append(row)
            self._doc_ids.append(document.doc_id)
            token_ids.append(reader.read_tokens(text, "doc", kept=True).ids)
        self.token_ids = np.concatenate([np.empty(0, np.int32), *token_ids])
        lengths = [len(self._tokens.codes(row)) for row in self._rows]
        self.passages = np.repeat(np.arange(len(self._rows)), lengths)
        if len(self.passages) != len(self.token_ids):
            raise BadInput(f"{collection.path} was indexed with another tokenizer; expected the model that it was indexed with")

    @property
    def dim(self) -> int:
        """Dimensions of a token vector."""
        return self._tokens.dim

    @property
    def mean_length(self) -> float:
        """Mean number of tokens per passage (n̄)."""
        return len(self.token_ids) / max(1, len(self._rows))

    def nearest(self, queries: Float32s, depth: int) -> Int64s:
        """Positions of the most similar tokens, (query tokens, depth), best first; -1 pads if there are fewer tokens."""
        scores = np.full((len(queries), depth), -np.inf, np.float32)
        positions = np.full((len(queries), depth), -1, np.int64)
        first = 0
        for vectors in self._blocks():
            block = np.broadcast_to(first + np.arange(len(vectors)), (len(queries), len(vectors)))
            all_scores = np.concatenate([scores, queries @ vectors.T], axis=1)
            all_positions = np.concatenate([positions, block], axis=1)
            order = np.argsort(-all_scores, axis=1, kind="stable")[:, :depth]
            scores, positions = np.take_along_axis(all_scores, order, 1), np.take_along_axis(all_positions, order, 1)
            first += len(vectors)
        return positions

    def _blocks(self) -> Iterator[Float32s]:
        for start in range(0, len(self._rows), ROWS_AT_ONCE):
            yield np.concatenate([self._tokens.decode(row) for row in self._rows[start : start + ROWS_AT_ONCE]])

    def measure(self, query_tokens: Int32s, retrieved: Int64s, relevant: set[str]) -> list[float]:
        """gold, lexical, gold_found, documents and tokens_per_document of one query."""
        valid = retrieved >= 0
        passages = self.passages[np.maximum(retrieved, 0)]
        is_gold = valid & np.array([doc_id in relevant for doc_id in self._doc_ids], np.bool_)[passages]
        is_same = valid & (self.token_ids[np.maximum(retrieved, 0)] == query_tokens[:, None])
        count, documents = max(1, int(valid.sum())), len(np.unique(passages[valid]))
        return [
            float(is_gold.sum()) / count,
            float(is_same.sum()) / count,
            float(is_gold.any(axis=1).mean()) if len(retrieved) else 0.0,
            float(documents),
            count / max(1, documents),
        ]
