"""`TermLens`: the base of all lenses over weighted terms of a vocabulary, compared by inner product.

`sparse`, `lexical`, `tokens` and `external` differ in which weights they index and how a query is weighted. A search
computes upper bounds for all rows and scores the best candidates from the rows themselves (kernels/sparse_search.py), so a
score does not depend on how its row was found.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from trilens.encode.encoder import Encoded
from trilens.encode.folder import TermWeighting
from trilens.encode.model import ModelEncoder
from trilens.encode.reading import Side
from trilens.errors import BadInput
from trilens.index.sparse_parts import MOST_DIM, BagPart, SparsePart, WeightedPart
from trilens.index.sparse_settings import SparseSettings
from trilens.index.term_weighting import PLAIN, add_bags, saturated_bags, weight_docs, weight_queries
from trilens.index.topk import Heaps, TopK
from trilens.kernels.array_types import Float32s, Float64s, Int32s, Int64s, Mask
from trilens.kernels.sparse import BAD_ORDER, BAD_TERM, BAD_WEIGHT, find_fault
from trilens.lenses.bm25 import idf
from trilens.lenses.feedback import Expansion, FeedbackPassages, mix, to_sparse
from trilens.lenses.lens import (
    ExplainTarget,
    Lens,
    Searcher,
    require_alike,
    sums_by_query,
)
from trilens.lenses.parts import Match, Part, ScoreParts, Span, with_rest
from trilens.lenses.statistics import LensStatistics, ScaleSums
from trilens.lenses.term_settings import DEFAULT, DEFAULT_PARAMS, IdfParams, SparseConfig, TermParams
from trilens.represent import Sparse

COLLAPSED = 0.5  # share of rows without any term from which `info` warns
ADVICE = "most rows have no term, so no query finds them: the model's head has collapsed, or does not suit these texts"

EncodedField = Literal["sparse", "lexical", "bag"]


@dataclass(frozen=True, slots=True)
class OwnTerms:
    """The terms that a text contains, with their spans; `all` where there is no text and every term counts as its own."""

    spans: Mapping[int, list[Span]] = field(default_factory=dict)
    all: bool = False

    def __contains__(self, term: int) -> bool:
        return self.all or term in self.spans


class TermLens(Lens):
    """Indexes weighted terms of each passage."""

    least_share: ClassVar[float] = 0.15
    """The share of the way from a random passage to one like the query below which a match is weak: benchmarks/LOG.md."""
    field: ClassVar[EncodedField]
    """Which representation of a passage is indexed."""

    def __init__(self, model: ModelEncoder, config: SparseConfig = DEFAULT, weighting: TermWeighting = PLAIN) -> None:
        self.model = model
        self.config = config
        self.weighting = weighting

    def query_field(self, params: Any = None) -> EncodedField:
        """Which representation of a query is compared with the index."""
        return self.field

    def term_texts(self, terms: Sequence[int]) -> list[str]:
        """Terms as text."""
        raise NotImplementedError

    @abstractmethod
    def own_terms(self, text: str, side: Side) -> OwnTerms:
        """The terms that a text contains."""

    def matched_texts(self, terms: Sequence[int], query: str) -> list[str]:
        """Terms as text, in the form in which the query has them."""
        return self.term_texts(terms)

    def build(self, encoded: Encoded, folder: Path, shared: Sequence[Any] = ()) -> None:
        """Write the part of one segment."""
        rows = weight_docs(encoded, self.field, self.weighting)
        require_sound(rows, "document")
        if self._plain_bags:
            BagPart.build(rows, folder)
        else:
            WeightedPart.build(rows, self.config.weights, folder)

    def merge(self, parts: Sequence[Any], keep: Sequence[Mask], folder: Path, shared: Sequence[Any] = ()) -> None:
        """Write the part of the kept rows."""
        dims = {part.dim for part in parts}
        if len(dims) != 1:
            raise BadInput(f"cannot merge segments over vocabularies of {sorted(dims)} terms; expected one size")
        kind = BagPart if self._plain_bags else WeightedPart
        kind.merge(parts, keep, folder)

    def open(self, folder: Path) -> SparsePart:
        """Map a part."""
        return BagPart.open(folder, self.weighting) if self._plain_bags else WeightedPart.open(folder)

    @property
    def _plain_bags(self) -> bool:
        """Whether all terms of a row have the same weight."""
        return self.field == "bag" and self.weighting.repeats == 0

    def searcher(self, parts: Sequence[SparsePart], live: Sequence[Mask | None], shared: Sequence[Any] = ()) -> "TermSearcher":
        """A searcher over these parts."""
        return TermSearcher(self, parts, live)

    def figures(self, parts: Sequence[SparsePart], shared: Sequence[Any] = ()) -> dict[str, Any]:
        """Number of postings and empty rows; a row without terms is never found."""
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

    def explain_terms(
        self,
        target: ExplainTarget,
        query: Sparse,
        row: tuple[Int32s, Float32s],
        term_idf: Float32s | None = None,
        texts: Callable[[Sequence[int]], list[str]] | None = None,
    ) -> ScoreParts:
        """One part per term that query and passage share, largest first; `texts` overrides how terms are shown."""
        row_terms, row_weights = row
        terms, in_query, in_row = np.intersect1d(query.terms, row_terms, assume_unique=True, return_indices=True)
        query_terms, passage_terms = self.own_terms(target.query, "query"), self.own_terms(target.passage, "doc")
        columns = (terms, query.weights[in_query], row_weights[in_row])
        labels = texts(terms.tolist()) if texts else self.matched_texts(terms.tolist(), target.query)
        parts = [
            Part(
                label=label,
                score=query_weight * doc_weight,
                kind="own" if term in query_terms and term in passage_terms else "expanded",
                query_span=next(iter(query_terms.spans.get(term, ())), None),
                doc_spans=tuple(passage_terms.spans.get(term, ())),
                facts={
                    "query_weight": query_weight,
                    "doc_weight": doc_weight,
                    "in_query": float(term in query_terms),
                    "in_doc": float(term in passage_terms),
                }
                | ({} if term_idf is None else {"idf": float(term_idf[term])}),
            )
            for label, term, query_weight, doc_weight in zip(labels, *(column.tolist() for column in columns), strict=True)
        ]
        parts.sort(key=lambda part: -part.score)
        return ScoreParts(with_rest(parts, target.score or 0.0))


class TermSearcher(Searcher):
    """Searches the inverted indexes of all parts."""

    def __init__(self, lens: TermLens, parts: Sequence[SparsePart], live: Sequence[Mask | None]) -> None:
        super().__init__(parts, live)
        require_alike({part.dim for part in parts}, "vocabularies of {} terms")
        self._lens = lens
        self._buffers: list[Float32s] = []
        self._whole: tuple[int, LensStatistics] | None = None

    def query(self, queries: Encoded, params: TermParams | None = None) -> Sparse:
        """The query vectors before collection weighting."""
        query_field = self._lens.query_field(params)
        vectors: Sparse | None = getattr(queries, query_field)
        assert vectors is not None
        if query_field == "bag":
            vectors = saturated_bags(vectors, self._lens.weighting)
        require_sound(vectors, "query")
        if self._parts and vectors.dim != self._parts[0].dim:
            raise BadInput(
                f"query terms are over {vectors.dim:,} dimensions; expected {self._parts[0].dim:,}, as the documents: "
                "encode queries with the model of the collection"
            )
        return vectors

    def weighted(self, queries: Encoded, params: TermParams | None = None) -> Sparse:
        """The query vectors after collection weighting (IDF, own-term boost)."""
        vectors = self.query(queries, params)
        if vectors is queries.sparse:
            vectors = weight_queries(vectors, queries.bag, self._lens.weighting)
            if (share := getattr(params, "bags", 0.0)) and queries.bag is not None:
                vectors = add_bags(vectors, saturated_bags(queries.bag, self._lens.weighting), share)
        if self.uses_idf(params):
            vectors = Sparse(vectors.indptr, vectors.terms, vectors.weights * self.idf[vectors.terms], vectors.dim)
        return vectors

    def uses_idf(self, params: TermParams | None = None) -> bool:
        """Whether query terms are multiplied by their IDF."""
        return self._lens.weighting.idf and (not isinstance(params, IdfParams) or params.idf)

    @cached_property
    def idf(self) -> Float32s:
        """Inverse document frequency of each term of the vocabulary over the live rows, or as the given statistics count."""
        frequencies, rows = self._frequencies, self.rows
        if self._whole:
            rows, statistics = self._whole
            terms = np.fromiter(statistics.frequencies, np.int64)
            frequencies = np.zeros(len(frequencies), np.int64)
            frequencies[terms] = list(statistics.frequencies.values())
        return idf(frequencies, rows).astype(np.float32)

    @cached_property
    def _frequencies(self) -> Int64s:
        """The number of live rows with each term of the vocabulary."""
        frequencies: Int64s = np.zeros(self._parts[0].dim if self._parts else 0, np.int64)
        for part, live in zip(self._parts, self._live, strict=True):
            frequencies[part.used] += part.frequencies
            if live is not None:
                frequencies -= np.bincount(part.terms_of(~live), minlength=part.dim)
        return frequencies

    def statistics(self, queries: Encoded, params: TermParams | None = None) -> LensStatistics:
        """The document frequencies of the terms of the queries, if their IDF counts."""
        if not self.uses_idf(params):
            return LensStatistics()
        terms = np.unique(self.query(queries, params).terms)
        counts = self._frequencies[terms] if self._parts else np.zeros(len(terms), np.int64)
        return LensStatistics(frequencies=dict(zip(terms.tolist(), counts.tolist(), strict=True)))

    def given(self, rows: int, statistics: LensStatistics) -> "TermSearcher":
        """This searcher with the document frequencies of a whole collection."""
        _ = self._frequencies if self._lens.weighting.idf else None  # counted once for all
        whole = copy(self)
        whole.__dict__.pop("idf", None)
        whole._whole = (rows, statistics)
        return whole

    def search(
        self, queries: Encoded, k: int, allowed: Mask | None = None, exact: bool = False, params: TermParams | None = None
    ) -> TopK:
        """The k best rows that share a term with the query."""
        vectors = self.weighted(queries, params)
        heaps = Heaps(len(vectors), k)
        params = params or DEFAULT_PARAMS
        approximate = params.method == "approximate" and not exact
        buffer = self._take_buffer(vectors.dim)
        for i, part in enumerate(self._parts):
            settings = SparseSettings.of(approximate, params.terms, params.candidates, k, len(part))
            part.offer(vectors, settings, self._mask(i, allowed), self._first_rows[i], buffer, heaps)
        self._buffers.append(buffer)
        return heaps.sorted()

    def score(
        self,
        queries: Encoded,
        rows: Int64s,
        params: TermParams | None = None,
        allowed: Mask | None = None,
    ) -> Float32s:
        """The exact scores of the rows (queries, n) of each query, 0 where they share no term; -inf where a row is -1."""
        vectors = self.weighted(queries, params)
        scores = np.full(rows.shape, -np.inf, np.float32)
        buffer = self._take_buffer(vectors.dim)
        for first_row, part in zip(self._first_rows[:-1], self._parts, strict=True):
            part.score(vectors, rows, first_row, buffer, scores)
        self._buffers.append(buffer)
        return scores

    def explain(self, target: ExplainTarget) -> ScoreParts:
        """One part per term that query and passage share, largest first."""
        query = self.weighted(target.encoded, target.params)
        term_idf = self.idf if self.uses_idf(target.params) else None
        return self._lens.explain_terms(target, query, self.row(target.row), term_idf)

    def matches(
        self, query: Encoded, rows: Sequence[int], texts: Sequence[str], params: TermParams | None = None
    ) -> list[list[Match]]:
        """The tokens of the texts that are terms of the query, weighted by their share of the score."""
        weighted = self.weighted(query, params)
        weights = dict(zip(weighted.terms.tolist(), weighted.weights.tolist(), strict=True))
        return [self._matches(weights, row, text) for row, text in zip(rows, texts, strict=True)]

    def scale_sums(self, queries: Encoded, params: TermParams | None = None) -> ScaleSums | None:
        """From the scores of random passages to the highest score of vectors of these lengths: a passage like the query."""
        vectors = self.weighted(queries, params)
        squares = sums_by_query(vectors.weights.astype(np.float64) ** 2, vectors.indptr)
        length = self.sample.sum_lengths(lambda row: float(np.linalg.norm(self.row(row)[1])))
        return self.sum_scales(queries, params, np.sqrt(squares) * length, self._lens.least_share)

    def _matches(self, weights: Mapping[int, float], row: int, text: str) -> list[Match]:
        stored = dict(zip(*(column.tolist() for column in self.row(row)), strict=True))
        spans = self._lens.own_terms(text, "doc").spans
        shared = spans.keys() & weights.keys() & stored.keys()
        return [Match(term, *span, weights[term] * stored[term]) for term in sorted(shared) for span in spans[term]]

    def expand(
        self,
        queries: Encoded,
        feedback: Sequence[FeedbackPassages],
        expansion: Expansion,
        params: TermParams | None = None,
    ) -> tuple[Encoded, list[dict[str, float]]]:
        """Interpolate each query with the heaviest terms of the mean of its feedback passages' vectors."""
        vectors = self.query(queries, params)
        mixtures, added = [], []
        for query, passages in enumerate(feedback):
            span = slice(vectors.indptr[query], vectors.indptr[query + 1])
            original = dict(zip(vectors.terms[span].tolist(), vectors.weights[span].tolist(), strict=True))
            mean = self._mean_terms(passages.rows, vectors.dim, expansion.terms)
            mixture, terms = mix(original, mean, expansion.weight)
            mixtures.append(mixture)
            added.append(dict(zip(self._lens.term_texts(list(terms)), terms.values(), strict=True)))
        expanded: dict[str, Any] = {self._lens.query_field(params): to_sparse(mixtures, vectors.dim)}
        return replace(queries, **expanded), added

    def vectors(self, rows: Int64s) -> Sparse:
        """The terms of rows and the weights that their scores are computed from."""
        return Sparse.concat([self._parts[i].take(local) for i, local in self._by_part(rows)])

    def query_vectors(self, queries: Encoded, params: TermParams | None = None) -> Sparse:
        """The queries after collection weighting."""
        return self.weighted(queries, params)

    def row(self, row: int) -> tuple[Int32s, Float32s]:
        """The terms of a row and the weights that its scores are computed from."""
        if not 0 <= row < self._first_rows[-1]:
            raise BadInput(f"row is {row}; expected 0 to {self._first_rows[-1] - 1}")
        taken = self.vectors(np.array([row]))
        return taken.terms, taken.weights

    def _mean_terms(self, rows: Sequence[int], dim: int, most: int) -> dict[int, float]:
        total: Float64s = np.zeros(dim)
        for row in rows:
            terms, weights = self.row(row)
            total[terms] += weights
        heaviest = np.argsort(-total, kind="stable")[:most]
        return {int(term): float(total[term]) / len(rows) for term in heaviest if total[term] > 0}

    def _take_buffer(self, dim: int) -> Float32s:
        """A zeroed array over the vocabulary. Users hand it back zeroed: clearing it would cost more than many searches."""
        try:
            return self._buffers.pop()
        except IndexError:
            return np.zeros(dim, np.float32)


def require_sound(rows: Sparse, kind: str) -> None:
    """Refuse weights and terms that cannot be scored."""
    if rows.dim > MOST_DIM:
        raise BadInput(f"the vocabulary has {rows.dim:,} terms; expected at most {MOST_DIM:,}")
    fault, position = find_fault(rows.indptr, rows.terms, rows.weights, rows.dim)
    number = int(np.searchsorted(rows.indptr, position, side="right")) - 1 if fault else 0
    where = f"{kind} {number} of the batch"
    if fault == BAD_WEIGHT:
        weight, term = rows.weights[position], rows.terms[position]
        raise BadInput(f"{where} has weight {weight} for term {term}; expected 0 or more: check the model")
    if fault == BAD_TERM:
        raise BadInput(f"{where} has term {rows.terms[position]}; expected 0 to {rows.dim - 1}: check the model's vocabulary")
    if fault == BAD_ORDER:
        raise BadInput(f"{where} has term {rows.terms[position]} after a larger or equal one; expected ascending unique terms")
