"""Why a sparse lens gave a document its score: the terms that it shares with the query, and what each of them gives."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trilens.encode.reading import Side
from trilens.explain.explanation import Explanation, Part, Span, with_rest
from trilens.explain.subject import Subject
from trilens.index.given import GivenSearcher
from trilens.index.sparse import SparseSearcher
from trilens.represent import Sparse
from trilens.search.late import encode_both

TermsOf = Callable[[NDArray[np.int64]], NDArray[np.integer]]
"""Which terms of a lens tokens are."""


@dataclass(frozen=True, slots=True)
class Held:
    """The terms that a text holds itself, and where. Of given vectors nobody knows; they count as held."""

    spans: Mapping[int, list[Span]]
    all: bool = False

    def holds(self, term: int) -> bool:
        """Whether the text holds the term itself, or a model found it fitting."""
        return self.all or term in self.spans


def explain_terms(subject: Subject) -> Explanation:
    """One part for each term that query and passage share, the largest first; none, and a score of 0, if there are none."""
    searcher = subject.snapshot.searcher(subject.lens)
    assert isinstance(searcher, SparseSearcher | GivenSearcher)
    asked = searcher.weighed(subject.encoded, subject.params)
    rarity = searcher.rarity if isinstance(searcher, SparseSearcher) and searcher.by_rarity(subject.params) else None
    return _explain(
        subject, asked, searcher.row(subject.row), rarity, searcher if isinstance(searcher, GivenSearcher) else None
    )


def explain_late_terms(subject: Subject) -> Explanation:
    """The same for a passage whose vector over the vocabulary is made for the search alone."""
    asked, passage = encode_both(subject.lenses, "sparse", [subject.query], [subject.passage.text])
    return _explain(subject, asked, (passage.terms, passage.weights))


def _explain(
    subject: Subject,
    asked: Sparse,
    row: tuple[NDArray[np.int32], NDArray[np.float32]],
    rarity: NDArray[np.floating] | None = None,
    given: GivenSearcher | None = None,
) -> Explanation:
    row_terms, row_weights = row
    terms, in_query, in_row = np.intersect1d(asked.terms, row_terms, assume_unique=True, return_indices=True)
    words, query, doc = _read(subject, terms.tolist(), given)
    parts = [
        Part(
            label=word,
            score=query_weight * doc_weight,
            kind="own" if query.holds(term) and doc.holds(term) else "expanded",
            query_span=next(iter(query.spans.get(term, ())), None),
            doc_spans=tuple(doc.spans.get(term, ())),
            facts={
                "query_weight": query_weight,
                "doc_weight": doc_weight,
                "in_query": float(query.holds(term)),
                "in_doc": float(doc.holds(term)),
            }
            | ({} if rarity is None else {"idf": float(rarity[term])}),
        )
        for term, word, query_weight, doc_weight in zip(
            terms.tolist(), words, asked.weights[in_query].tolist(), row_weights[in_row].tolist(), strict=True
        )
    ]
    parts.sort(key=lambda part: -part.score)
    score = subject.score or 0.0
    told = (subject.lens, subject.query, subject.doc_id, score, with_rest(parts, score))
    return Explanation(*told, approximate=False, passage=subject.passage)


def _read(subject: Subject, terms: list[int], given: GivenSearcher | None) -> tuple[list[str], Held, Held]:
    """The terms in words, and which of them query and passage hold."""
    if given:
        return given.words(terms), Held({}, all=True), Held({}, all=True)
    model = subject.lenses.model.encoder
    if subject.lens == "lexical":
        # A term is named after the first token of its stem; shown is the form that the query has.
        asked = model.read_tokens(subject.query, "query").ids
        forms = dict(zip(model.lexical_terms(asked).tolist(), asked.tolist(), strict=True))
        return model.token_texts([forms.get(term, term) for term in terms]), *_both_held(subject, model.lexical_terms)
    shift = model.folder.config.sparse.shift if model.folder.config.sparse else 0
    return model.term_texts(terms), *_both_held(subject, lambda ids: ids - shift)


def _both_held(subject: Subject, terms_of: TermsOf) -> tuple[Held, Held]:
    """What query and passage hold."""
    return _held(subject, subject.query, "query", terms_of), _held(subject, subject.passage.text, "doc", terms_of)


def _held(subject: Subject, text: str, side: Side, terms_of: TermsOf) -> Held:
    tokens = subject.lenses.model.encoder.read_tokens(text, side)
    spans: dict[int, list[Span]] = {}
    for term, place in zip(terms_of(tokens.ids).tolist(), tokens.places, strict=True):
        if place:
            spans.setdefault(term, []).append((place.start, place.end))
    return Held(spans)
