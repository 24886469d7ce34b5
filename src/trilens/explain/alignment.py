"""Why the multi lens gave a row its score: which token of the document each query token was matched with, and how well."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trilens.encode.encoder import Encoded
from trilens.encode.reading import ReadTokens
from trilens.explain.explanation import Explanation, Matrix, Part, Span, with_rest
from trilens.explain.subject import Subject, subject_of
from trilens.index.multi import MultiLens
from trilens.index.multi_params import MultiParams, Settings
from trilens.index.multi_search import MultiSearcher
from trilens.represent import Multi
from trilens.store.lenses import Lenses
from trilens.store.snapshot import Snapshot

Floats = NDArray[np.float32]

SHOWN = 10  # the k of a search that nobody says more about


@dataclass(frozen=True, eq=False)
class Alignment:
    """One query against one row. `similarities` is (query tokens, document tokens), from the vectors as the index holds them.

    `retrieved`, of the same shape, marks the tokens that the search scored: all of them, unless it imputes. A query token
    none of whose retrieved tokens reaches its `floor` counts with that floor (-inf where nothing is imputed). `weights`, the
    lengths of the query's vectors, are what its tokens count for; they are in the similarities already.
    """

    query_tokens: list[str]
    doc_tokens: list[str]
    similarities: Floats
    retrieved: NDArray[np.bool_]
    floors: Floats
    weights: Floats
    query_spans: list[Span | None] = field(default_factory=list)
    doc_spans: list[Span | None] = field(default_factory=list)

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
    encoded = lenses.encode_queries(["multi"], [query])["multi"]
    return align_passage(subject_of(snapshot, lenses, "multi", query, doc_id, encoded, params))


def explain_alignment(subject: Subject) -> Explanation:
    """One part for each token of the query, in order; none, and a score of 0, if query or passage have no tokens."""
    found = align_passage(subject)
    told = (subject.lens, subject.query, subject.doc_id)
    if found is None or subject.score is None:
        return Explanation(*told, 0.0, [], approximate=False, passage=subject.passage)
    parts = []
    each = zip(found.winners.tolist(), found.parts.tolist(), found.weights.tolist(), strict=True)
    for number, (winner, score, weight) in enumerate(each):
        span = None if winner < 0 else found.doc_spans[winner]
        parts.append(
            Part(
                label=found.query_tokens[number],
                score=score,
                kind="imputed" if winner < 0 else "pair",
                target=None if winner < 0 else found.doc_tokens[winner],
                query_span=found.query_spans[number],
                doc_spans=(span,) if span else (),
                facts={"query_weight": weight, "similarity": score / weight if weight else 0.0},
            )
        )
    matrix = Matrix(found.query_tokens, found.doc_tokens, found.similarities, found.query_spans, found.doc_spans)
    every = with_rest(parts, subject.score)
    return Explanation(*told, subject.score, every, approximate=False, passage=subject.passage, matrix=matrix)


def align_passage(subject: Subject) -> Alignment | None:
    """The alignment of a query with one passage; None if one of them has no tokens."""
    lens, searcher = subject.lenses["multi"], subject.snapshot.searcher("multi")
    assert isinstance(lens, MultiLens) and isinstance(searcher, MultiSearcher)
    model, asked, text = subject.lenses.model.encoder, subject.encoded.multi, subject.passage.text
    made = lens.encoder.encode_docs([text]).multi
    assert asked is not None and made is not None
    # Pooling joins tokens; each group is shown by the token that it is named after.
    numbered = Multi(made.offsets, made.vectors, np.arange(len(made.tokens), dtype=np.int32))
    chosen = lens.tokens(Encoded(multi=numbered)).tokens
    words = (model.token_texts(asked.tokens.tolist()), model.token_texts(made.tokens[chosen].tolist()))
    doc_spans = _spans(model.read_tokens(text, "doc", kept=True))
    spans = (_spans(model.read_tokens(subject.query, "query", kept=True)), [doc_spans[at] for at in chosen])
    return align(searcher, asked.vectors, subject.row, words, searcher.settings(subject.params, SHOWN), spans)


def align(
    searcher: MultiSearcher,
    query: Floats,
    row: int,
    words: tuple[list[str], list[str]],
    params: Settings,
    spans: tuple[list[Span | None], list[Span | None]],
) -> Alignment | None:
    """The alignment of the vectors of a query with a row; None if one of them has no tokens.

    `words` are the tokens of query and row in words, `spans` where they stand in their texts.
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
        similarities, retrieved = searcher.compare(look, row)
    return Alignment(*words, similarities, retrieved, floors, np.linalg.norm(query, axis=1), *spans)


def _spans(tokens: ReadTokens) -> list[Span | None]:
    return [(place.start, place.end) if place else None for place in tokens.places]
