"""More query than was asked: terms of the best passages are added to the query, which is then searched again.

For `bm25` that is RM3 (Lavrenko and Croft 2001; Abdul-Jaleel et al. 2004, with Anserini's defaults and its rule for common
terms): P(w|R) = Σ over the feedback passages d of score(d) · count(w, d) / length(d), cut to the best terms. For the sparse
lenses it is the mean of the passages' vectors. Both are mixed with the query, each scaled to a sum of 1, and the mixture gets
the sum of the query, so that scores stay of the size that they were. Other lenses are not expanded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from trilens.encode.encoder import Encoded
from trilens.errors import BadInput
from trilens.index.bm25 import Bm25Searcher
from trilens.index.sparse import SparseSearcher
from trilens.index.sparse_params import SparseParams
from trilens.represent import Sparse
from trilens.represent.counts import Counts
from trilens.represent.ragged import offsets_of
from trilens.represent.vocabulary import Vocabulary
from trilens.search.ranking import Ranked, best_documents
from trilens.store.lenses import Lenses
from trilens.store.snapshot import Snapshot

EXPANDABLE = ("bm25", "sparse", "tokens", "lexical")
DEFAULTS = "on"

Term = TypeVar("Term", str, int)
Told = dict[str, Any]
"""What was added to one query for one lens: see `expand_queries`."""


@dataclass(frozen=True, slots=True)
class Feedback:
    """How a query is expanded.

    docs    the best documents, whose best passages are taken to be relevant
    terms   how many terms are added
    weight  the share of the original query, from 0 to 1
    common  bm25: terms in more than this share of all passages are not added
    """

    docs: int = 10
    terms: int = 10
    weight: float = 0.5
    common: float = 0.1

    def __post_init__(self) -> None:
        for name in ("docs", "terms"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 1000:
                raise BadInput(f"expansion {name} is {value!r}; expected a whole number from 1 to 1000")
        for name in ("weight", "common"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
                raise BadInput(f"expansion {name} is {value!r}; expected a number from 0 to 1")


def parse_feedback(text: str) -> Feedback:
    """From the command line: `on`, or some of the fields as `docs=10,terms=20,weight=0.6`."""
    known = [item.name for item in fields(Feedback)]
    options: dict[str, Any] = {}
    for piece in [] if text.strip() == DEFAULTS else text.split(","):
        name, _, value = (part.strip() for part in piece.partition("="))
        if name not in known or name in options:
            raise BadInput(f"expansion is {text!r}; expected {DEFAULTS}, or each once of {', '.join(known)} as NAME=NUMBER")
        try:
            options[name] = int(value) if name in ("docs", "terms") else float(value)
        except ValueError as error:
            raise BadInput(f"expansion {text!r} has {name}={value}; expected a number") from error
    return Feedback(**options)


def expand_queries(
    snapshot: Snapshot,
    lenses: Lenses,
    encoded: Mapping[str, Encoded],
    names: Sequence[str],
    feedback: Feedback,
    where: Mapping[str, Any] | None = None,
    params: Mapping[str, Any] | None = None,
) -> tuple[dict[str, Encoded], dict[str, list[Told]]]:
    """The queries with what feedback adds, and for each lens that was expanded what was added to each query."""
    chosen = [name for name in names if name in EXPANDABLE]
    if not chosen:
        raise BadInput(
            f"the lenses searched are {', '.join(names)}; expansion is for {', '.join(EXPANDABLE)}: search one of them as well"
        )
    expanded, told = dict(encoded), {}
    for name in chosen:
        settings = (params or {}).get(name)
        best = best_documents(snapshot, name, encoded[name], feedback.docs, where, params=settings).ranked(snapshot)
        if name == "bm25":
            expanded[name], told[name] = _expand_counts(snapshot, lenses, encoded[name], best, feedback)
        else:
            expanded[name], told[name] = _expand_terms(snapshot, lenses, name, encoded[name], best, feedback, settings)
    return expanded, told


def _expand_counts(
    snapshot: Snapshot, lenses: Lenses, encoded: Encoded, best: Sequence[Sequence[Ranked]], feedback: Feedback
) -> tuple[Encoded, list[Told]]:
    searcher, asked = snapshot.searcher("bm25"), encoded.counts
    assert isinstance(searcher, Bm25Searcher) and asked is not None
    mixed, told = [], []
    for query, passages in enumerate(best):
        span = slice(asked.sparse.indptr[query], asked.sparse.indptr[query + 1])
        words = [asked.vocabulary.word(term) for term in asked.sparse.terms[span].tolist()]
        original = dict(zip(words, asked.sparse.weights[span].tolist(), strict=True))
        model = _relevance_model(snapshot, lenses, searcher, passages, feedback, set(original))
        mixture, added = _mix(original, model, feedback)
        mixed.append(mixture)
        told.append(_tell("rm3", feedback, added, [passage.key for passage in passages], snapshot))
    vocabulary = sorted({word for mixture in mixed for word in mixture})
    numbers = {word: number for number, word in enumerate(vocabulary)}
    rows = [{numbers[word]: weight for word, weight in mixture.items()} for mixture in mixed]
    counts = Counts(_to_sparse(rows, len(vocabulary)), Vocabulary.of(vocabulary), asked.lengths)
    return replace(encoded, counts=counts), told


def _relevance_model(
    snapshot: Snapshot,
    lenses: Lenses,
    searcher: Bm25Searcher,
    passages: Sequence[Ranked],
    feedback: Feedback,
    original: set[str],
) -> dict[str, float]:
    """P(w|R) of the best terms of the passages."""
    if not passages:
        return {}
    rows = np.array([passage.row for passage in passages], np.int64)
    counts = lenses["bm25"].encoder.encode_docs([text for _, _, text in snapshot.passages_at(rows)]).counts
    assert counts is not None
    scores = np.array([passage.score for passage in passages]) / np.maximum(counts.lengths, 1)
    weights = counts.sparse.weights * np.repeat(scores, np.diff(counts.sparse.indptr))
    sums = np.bincount(counts.sparse.terms, weights, minlength=len(counts.vocabulary))
    shares = searcher.frequencies(counts.vocabulary) / max(1, searcher.rows)
    found = [
        (counts.vocabulary.word(term), float(sums[term]))
        for term in np.argsort(-sums, kind="stable").tolist()
        if shares[term] <= feedback.common or counts.vocabulary.word(term) in original
    ]
    return dict(found[: feedback.terms])


def _expand_terms(
    snapshot: Snapshot,
    lenses: Lenses,
    lens: str,
    encoded: Encoded,
    best: Sequence[Sequence[Ranked]],
    feedback: Feedback,
    params: SparseParams | None,
) -> tuple[Encoded, list[Told]]:
    searcher = snapshot.searcher(lens)
    assert isinstance(searcher, SparseSearcher)
    asked = searcher.query(encoded, params)
    mixed, told = [], []
    for query, passages in enumerate(best):
        span = slice(asked.indptr[query], asked.indptr[query + 1])
        original = dict(zip(asked.terms[span].tolist(), asked.weights[span].tolist(), strict=True))
        mixture, added = _mix(original, _mean(searcher, passages, asked.dim, feedback), feedback)
        mixed.append(mixture)
        texts = lenses.model.token_texts if searcher.field == "lexical" else lenses.model.term_texts
        words = dict(zip(texts(list(added)), added.values(), strict=True))
        told.append(_tell("vocabulary feedback", feedback, words, [passage.key for passage in passages], snapshot))
    return _asking(encoded, searcher, params, _to_sparse(mixed, asked.dim)), told


def _asking(encoded: Encoded, searcher: SparseSearcher, params: SparseParams | None, terms: Sparse) -> Encoded:
    """The queries with these terms where the searcher looks for them."""
    if params is not None and params.query == "bag":
        return replace(encoded, bag=terms)
    return replace(encoded, lexical=terms) if searcher.field == "lexical" else replace(encoded, sparse=terms)


def _mean(searcher: SparseSearcher, passages: Sequence[Ranked], dim: int, feedback: Feedback) -> dict[int, float]:
    """The heaviest terms of the mean of the passages' vectors."""
    total: NDArray[np.float64] = np.zeros(dim)
    for passage in passages:
        terms, weights = searcher.row(passage.row)
        total[terms] += weights
    heaviest = np.argsort(-total, kind="stable")[: feedback.terms]
    return {int(term): float(total[term]) / len(passages) for term in heaviest if total[term] > 0}


def _mix(
    original: Mapping[Term, float], added: Mapping[Term, float], feedback: Feedback
) -> tuple[dict[Term, float], dict[Term, float]]:
    """The mixture, and what of it was added; without anything to add, the query stays as it is."""
    size, extra = sum(original.values()), sum(added.values())
    if not size or not extra:
        return dict(original), {}
    share = {term: (1 - feedback.weight) * size * weight / extra for term, weight in added.items()}
    mixture = {term: feedback.weight * weight for term, weight in original.items()}
    for term, weight in share.items():
        mixture[term] = mixture.get(term, 0.0) + weight
    return {term: weight for term, weight in mixture.items() if weight > 0}, share


def _to_sparse(rows: Sequence[Mapping[int, float]], dim: int) -> Sparse:
    terms = [term for row in rows for term in sorted(row)]
    weights = [row[term] for row in rows for term in sorted(row)]
    offsets = offsets_of(np.array([len(row) for row in rows], np.int64))
    return Sparse(offsets, np.array(terms, np.int32), np.array(weights, np.float32), dim)


def _tell(method: str, feedback: Feedback, added: Mapping[str, float], keys: list[int], snapshot: Snapshot) -> Told:
    documents = snapshot.documents(keys)
    return {
        "method": method,
        "original_weight": feedback.weight,
        "docs": [documents[key].doc_id for key in keys],
        "terms": dict(sorted(added.items(), key=lambda item: (-item[1], item[0]))),
    }
