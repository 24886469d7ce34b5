"""Why a sparse lens gave a document its score: the terms that it shares with the query, and what each of them gives."""

from dataclasses import dataclass

import numpy as np

from trilens.errors import BadInput
from trilens.index.given import GivenSearcher
from trilens.index.sparse import SparseSearcher
from trilens.index.sparse_params import SparseParams
from trilens.store.lenses import Lenses
from trilens.store.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class TermPart:
    """A term that query and document share; `score` is the product of its weights.

    `in_query` and `in_document` tell whether the text holds the term itself, or its model found it fitting.
    """

    word: str
    query_weight: float
    document_weight: float
    score: float
    in_query: bool
    in_document: bool


@dataclass(frozen=True, slots=True)
class TermExplanation:
    """The parts, the largest first, add up to the score."""

    score: float
    parts: list[TermPart]


def explain_terms(
    snapshot: Snapshot, lenses: Lenses, lens: str, query: str, doc_id: str, params: SparseParams | None = None
) -> TermExplanation:
    """The terms that the best passage of a document shares with a query; none, and a score of 0, if there are none."""
    key = snapshot.key(doc_id)
    if key is None:
        raise BadInput(f"there is no document {doc_id!r} in the collection; expected the id of one")
    _ = lenses[lens]
    searcher = snapshot.searcher(lens)
    if not isinstance(searcher, SparseSearcher | GivenSearcher):
        raise BadInput(f"lens {lens!r} does not score by weighted terms; expected sparse, tokens, lexical or vectors")
    passages = list(snapshot.passages(np.array([key])))
    rows = np.array([[row for row, _, _ in passages]], np.int64)
    encoded = lenses.encode_queries([lens], [query], {lens: params})[lens]
    row, _, text = passages[int(searcher.score(encoded, rows, params)[0].argmax())]
    asked = searcher.query(encoded, params)
    row_terms, row_weights = searcher.row(row)
    terms, in_query, in_row = np.intersect1d(asked.terms, row_terms, assume_unique=True, return_indices=True)
    words, own = _read(lenses, searcher, terms.tolist(), query, text)
    pairs = zip(words, asked.weights[in_query].tolist(), row_weights[in_row].tolist(), *own, strict=True)
    parts = [TermPart(word, first, second, first * second, *held) for word, first, second, *held in pairs]
    parts.sort(key=lambda part: -part.score)
    return TermExplanation(sum(part.score for part in parts), parts)


def _read(
    lenses: Lenses, searcher: SparseSearcher | GivenSearcher, terms: list[int], query: str, text: str
) -> tuple[list[str], tuple[list[bool], list[bool]]]:
    """The terms in words, and whether the query and the text hold each of them."""
    if isinstance(searcher, GivenSearcher):
        return searcher.words(terms), ([True] * len(terms), [True] * len(terms))
    if searcher.field == "lexical":  # it weighs nothing but what is there
        return lenses.model.token_texts(terms), ([True] * len(terms), [True] * len(terms))
    bags = lenses.model.bags
    own = (bags.encode_queries([query]).bag, bags.encode_docs([text]).bag)
    held = [set() if bag is None else set(bag.terms.tolist()) for bag in own]
    return lenses.model.term_texts(terms), ([term in held[0] for term in terms], [term in held[1] for term in terms])
