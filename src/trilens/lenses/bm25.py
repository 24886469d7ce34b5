"""The lens `bm25`: term counts in an inverted index, scored with the collection statistics of the live rows.

Lucene's formula (Kamphuis et al. 2020, "Which BM25 do you mean?", Lucene accurate):
    score = Σ idf(t) · tf / (tf + k1 · (1 − b + b · length / average length)),   idf = ln(1 + (N − df + ½) / (df + ½))
The index holds raw counts, so N, df and the average length may change with every commit and scores equal those of a fresh
build. Only the block maxima, which are upper bounds, depend on the average length at build time; `_search_part` rescales
them.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from trilens.encode.bm25 import Bm25Encoder
from trilens.encode.encoder import Encoded
from trilens.index.bm25_part import Bm25Part, LengthNorm, average_length
from trilens.index.topk import Heaps, TopK
from trilens.kernels import bm25 as kernels
from trilens.kernels.array_types import Float32s, Float64s, Int32s, Int64s, Mask
from trilens.kernels.postings import count_allowed
from trilens.lenses.feedback import Expansion, FeedbackPassages, mix, to_sparse
from trilens.lenses.lens import Colour, ExplainTarget, Lens, LensConfig, LensType, Searcher, sums_by_query
from trilens.lenses.parts import Match, Part, ScoreParts, with_rest
from trilens.lenses.statistics import LensStatistics, ScaleSums
from trilens.represent.counts import Counts
from trilens.represent.vocabulary import Vocabulary
from trilens.text.analysis import AnalysisConfig, Analyzer


class Bm25Config(LensConfig):
    """k1 = 0.9 and b = 0.4 are Anserini's defaults, which transfer best between collections."""

    k1: float = Field(default=0.9, ge=0, le=1e6)
    b: float = Field(default=0.4, ge=0, le=1)
    analysis: AnalysisConfig = AnalysisConfig()


DEFAULT = Bm25Config()
LEAST_SHARE = 0.5  # of a full match, below which a match is weak: benchmarks/LOG.md


def idf(frequencies: NDArray[np.integer] | Float64s, rows: int) -> Float64s:
    """BM25's inverse document frequency of terms with these document frequencies in `rows` rows."""
    return np.asarray(np.log1p((rows - frequencies + 0.5) / (frequencies + 0.5)), np.float64)


class Bm25Lens(Lens):
    """Indexes the analysed words of each passage."""

    name = "bm25"

    def __init__(self, config: Bm25Config = DEFAULT) -> None:
        self.config = config
        self.encoder = Bm25Encoder(config.analysis)
        self._norm = LengthNorm(config.k1, config.b)

    def build(self, encoded: Encoded, folder: Path, shared: Sequence[Any] = ()) -> None:
        """Write the inverted index of one segment."""
        Bm25Part.build(_counts(encoded), self._norm, folder)

    def merge(self, parts: Sequence[Bm25Part], keep: Sequence[Mask], folder: Path, shared: Sequence[Any] = ()) -> None:
        """Write the inverted index of the kept rows."""
        Bm25Part.merge(parts, keep, self._norm, folder)

    def open(self, folder: Path) -> Bm25Part:
        """Map a part."""
        return Bm25Part.open(folder)

    def searcher(self, parts: Sequence[Bm25Part], live: Sequence[Mask | None], shared: Sequence[Any] = ()) -> "Bm25Searcher":
        """A searcher with the statistics of the live rows."""
        return Bm25Searcher(self, parts, live)


@dataclass(frozen=True, eq=False, slots=True)
class TermScores:
    """The terms of one query in some rows: `counts` and `scores` are (terms, rows); columns of `scores` add up."""

    words: list[str]
    query_weights: Float32s
    idf: Float64s
    counts: Float64s
    lengths: Int32s
    scores: Float64s


class Bm25Searcher(Searcher):
    """Searches all parts with the statistics of the live rows. Every search is exact: pruning never changes the result."""

    def __init__(self, lens: Bm25Lens, parts: Sequence[Bm25Part], live: Sequence[Mask | None]) -> None:
        super().__init__(parts, live)
        self._lens = lens
        self._norm = LengthNorm(lens.config.k1, lens.config.b)
        self._frequencies: dict[tuple[int, int], int] = {}
        self._norms_of: dict[float, list[Float32s]] = {}
        self._whole: tuple[int, LensStatistics] | None = None

    @cached_property
    def _words(self) -> int:
        """The length of all live rows in words."""
        return sum(
            int((part.lengths if mask is None else part.lengths[mask]).sum(dtype=np.int64))
            for part, mask in zip(self._parts, self._live, strict=True)
        )

    @property
    def collection(self) -> tuple[int, int]:
        """The number of live rows and their length in words, as they are counted here or given."""
        return (self._whole[0], self._whole[1].words) if self._whole else (self.rows, self._words)

    @property
    def average_length(self) -> float:
        """Mean length of the live rows in words."""
        rows, words = self.collection
        return average_length(words, rows)

    def statistics(self, queries: Encoded, params: Any = None) -> LensStatistics:
        """The length of the live rows and the document frequencies of the words of the queries."""
        vocabulary = _counts(queries).vocabulary
        counts = self._document_frequencies(self._term_maps(vocabulary), len(vocabulary)).astype(np.int64)
        return LensStatistics(self._words, dict(zip(vocabulary.words(), counts.tolist(), strict=True)))

    def given(self, rows: int, statistics: LensStatistics) -> "Bm25Searcher":
        """This searcher with the length and the document frequencies of a whole collection."""
        whole = copy(self)
        whole._whole = (rows, statistics)
        return whole

    def search(self, queries: Encoded, k: int, allowed: Mask | None = None, exact: bool = False, params: Any = None) -> TopK:
        """The k best rows that share a term with the query."""
        counted = _counts(queries)
        heaps = Heaps(len(counted), k)
        if not self._parts:
            return heaps.sorted()
        term_maps = self._term_maps(counted.vocabulary)
        weights = self._weights(counted, term_maps)
        for i in range(len(self._parts)):
            self._search_part(i, counted, term_maps[i], weights, allowed, heaps)
        return heaps.sorted()

    def score(self, queries: Encoded, rows: Int64s, params: Any = None, allowed: Mask | None = None) -> Float32s:
        """The scores of the rows (queries, n) of each query, 0 where they share no term; -inf where a row is -1."""
        counted = _counts(queries)
        scores = np.full(rows.shape, -np.inf, np.float32)
        if not self._parts:
            return scores
        term_maps = self._term_maps(counted.vocabulary)
        weights = self._weights(counted, term_maps)
        for i, part in enumerate(self._parts):
            terms, lists = term_maps[i][counted.sparse.terms], (part.cell_ptr, part.cells, part.postings, part.counts)
            query_terms = (counted.sparse.indptr, terms, weights, rows, self._first_rows[i])
            kernels.score_rows(*query_terms, *lists, self._norms[i], scores)
        return scores

    def explain(self, target: ExplainTarget) -> ScoreParts:
        """One part per query term that the passage contains, largest first."""
        analyzer = Analyzer(self._lens.config.analysis)
        query_words = analyzer.places(target.query)
        passage_words = analyzer.places(target.passage)
        terms = self.terms(target.encoded, 0, np.array([target.row]))
        parts = []
        for number, word in enumerate(terms.words):
            if not terms.counts[number, 0]:
                continue
            query_spans = [(start, end) for term, start, end in query_words if term == word]
            parts.append(
                Part(
                    label=target.query[slice(*query_spans[0])].lower() if query_spans else word,
                    score=float(terms.scores[number, 0]),
                    kind="own" if query_spans else "expanded",
                    query_span=query_spans[0] if query_spans else None,
                    doc_spans=tuple((start, end) for term, start, end in passage_words if term == word),
                    facts={
                        "term": word,
                        "query_weight": float(terms.query_weights[number]),
                        "idf": float(terms.idf[number]),
                        "tf": float(terms.counts[number, 0]),
                        "length": float(terms.lengths[0]),
                        "average_length": float(self.average_length),
                    },
                )
            )
        parts.sort(key=lambda part: -part.score)
        return ScoreParts(with_rest(parts, target.score or 0.0))

    def matches(self, query: Encoded, rows: Sequence[int], texts: Sequence[str], params: Any = None) -> list[list[Match]]:
        """The words of the texts that are terms of the query, weighted by their IDF."""
        counted, analyzer = _counts(query), Analyzer(self._lens.config.analysis)
        weights = self._weights(counted, self._term_maps(counted.vocabulary)).tolist()
        terms = zip(counted.sparse.terms.tolist(), weights, strict=True)
        known = {counted.vocabulary.word(term): (term, weight) for term, weight in terms}
        return [
            [Match(known[word][0], start, end, known[word][1]) for word, start, end in analyzer.places(text) if word in known]
            for text in texts
        ]

    def scale_sums(self, queries: Encoded, params: Any = None) -> ScaleSums:
        """From no shared word to a passage of average length with each word of the query once.

        Words that no passage contains count too: a query of unknown words and a common one matches weakly.
        """
        counted = _counts(queries)
        weights = self._weights(counted, self._term_maps(counted.vocabulary)).astype(np.float64)
        best = sums_by_query(weights, counted.sparse.indptr) / (1 + self._lens.config.k1)
        rows = len(self.sample.rows)
        return ScaleSums(np.zeros(len(best)), np.full(len(best), rows), best * rows, rows, LEAST_SHARE)

    def expand(
        self, queries: Encoded, feedback: Sequence[FeedbackPassages], expansion: Expansion, params: Any = None
    ) -> tuple[Encoded, list[dict[str, float]]]:
        """RM3 with Anserini's defaults and its limit on common terms (Lavrenko & Croft 2001; Abdul-Jaleel et al. 2004).

        P(w|R) = Σ over the feedback passages d of score(d) · count(w, d) / length(d), truncated to the best terms.
        """
        counted = _counts(queries)
        mixtures, added = [], []
        for query, passages in enumerate(feedback):
            span = slice(counted.sparse.indptr[query], counted.sparse.indptr[query + 1])
            words = [counted.vocabulary.word(term) for term in counted.sparse.terms[span].tolist()]
            original = dict(zip(words, counted.sparse.weights[span].tolist(), strict=True))
            mixture, terms = mix(original, self._relevance_model(passages, expansion, set(original)), expansion.weight)
            mixtures.append(mixture)
            added.append(terms)
        vocabulary = sorted({word for mixture in mixtures for word in mixture})
        numbers = {word: number for number, word in enumerate(vocabulary)}
        rows = [{numbers[word]: weight for word, weight in mixture.items()} for mixture in mixtures]
        expanded = Counts(to_sparse(rows, len(vocabulary)), Vocabulary.of(vocabulary), counted.lengths)
        return replace(queries, counts=expanded), added

    def _relevance_model(self, passages: FeedbackPassages, expansion: Expansion, original: set[str]) -> dict[str, float]:
        """P(w|R) of the best terms of the passages."""
        if not passages.rows:
            return {}
        counted = _counts(self._lens.encoder.encode_docs(passages.texts()))
        scores = np.array(passages.scores) / np.maximum(counted.lengths, 1)
        weights = counted.sparse.weights * np.repeat(scores, np.diff(counted.sparse.indptr))
        sums = np.bincount(counted.sparse.terms, weights, minlength=len(counted.vocabulary))
        shares = self.frequencies(counted.vocabulary) / max(1, self.collection[0])
        ranked = [
            (counted.vocabulary.word(term), float(sums[term]))
            for term in np.argsort(-sums, kind="stable").tolist()
            if shares[term] <= expansion.common or counted.vocabulary.word(term) in original
        ]
        return dict(ranked[: expansion.terms])

    def terms(self, queries: Encoded, query: int, rows: Int64s) -> TermScores:
        """The score of each term of one query in each of the rows."""
        counted = _counts(queries)
        span = slice(counted.sparse.indptr[query], counted.sparse.indptr[query + 1])
        numbers = counted.sparse.terms[span]
        counts, norms = np.zeros((len(numbers), len(rows))), np.zeros(len(rows), np.float32)
        lengths = np.zeros(len(rows), np.int32)
        term_maps = self._term_maps(counted.vocabulary)
        for i, part in enumerate(self._parts):
            here = (rows >= self._first_rows[i]) & (rows < self._first_rows[i + 1])
            part_rows = rows[here] - self._first_rows[i]
            part_counts = np.empty((len(numbers), len(part_rows)))
            lists = (part.cell_ptr, part.cells, part.postings, part.counts)
            kernels.count_in_rows(term_maps[i][numbers], part_rows, *lists, part_counts)
            counts[:, here], norms[here], lengths[here] = part_counts, self._norms[i][part_rows], part.lengths[part_rows]
        term_idf = self._idf(counted.vocabulary, term_maps)[numbers] if term_maps else np.zeros(len(numbers))
        query_weights = counted.sparse.weights[span]
        weights = (query_weights * term_idf).astype(np.float32).astype(np.float64)
        words = [counted.vocabulary.word(number) for number in numbers.tolist()]
        saturated = np.divide(counts, counts + norms, out=np.zeros_like(counts), where=counts > 0)
        return TermScores(words, query_weights, term_idf, counts, lengths, weights[:, None] * saturated)

    def frequencies(self, words: Vocabulary) -> Float64s:
        """Document frequency of each word among the live rows."""
        return self._frequencies_of(words, self._term_maps(words))

    def _search_part(
        self,
        i: int,
        counted: Counts,
        term_map: Int64s,
        weights: Float32s,
        allowed: Mask | None,
        heaps: Heaps,
    ) -> None:
        part, first_row = self._parts[i], self._first_rows[i]
        terms = term_map[counted.sparse.terms]
        here = terms >= 0
        query_ptr = np.concatenate([[0], np.cumsum(here)])[counted.sparse.indptr]
        terms, weights = terms[here], weights[here]
        if not len(terms):
            return
        mask = self._mask(i, allowed)
        # k1 · (1 − b + b · l / a') >= k1 · (1 − b + b · l / a) · a / a' for a' >= a, hence the bound in the kernel.
        stretch = max(1.0, self.average_length / part.average_length)
        kernels.search(
            query_ptr,
            terms,
            weights,
            stretch,
            part.cell_ptr,
            part.cells,
            part.bests,
            part.postings,
            part.counts,
            self._norms[i],
            np.empty(0, np.bool_) if mask is None else mask,
            mask is not None,
            first_row,
            heaps.scores,
            heaps.rows,
        )

    @property
    def _norms(self) -> list[Float32s]:
        """The length normalisation of each row of each part; kept for one average length, which changes with the commit."""
        average = self.average_length
        norms = self._norms_of.get(average)
        if norms is None:
            norms = [self._norm.of(part.lengths, average) for part in self._parts]
            self._norms_of.clear()
            self._norms_of[average] = norms
        return norms

    def _term_maps(self, words: Vocabulary) -> list[Int64s]:
        """The term of each word in each part; -1 where the part does not contain it."""
        return [part.vocabulary.find(words) for part in self._parts]

    def _weights(self, counted: Counts, term_maps: Sequence[Int64s]) -> Float32s:
        """The maximum contribution of each term of each query."""
        term_idf = self._idf(counted.vocabulary, term_maps)
        weights: Float32s = (counted.sparse.weights * term_idf[counted.sparse.terms]).astype(np.float32)
        return weights

    def _idf(self, words: Vocabulary, term_maps: Sequence[Int64s]) -> Float64s:
        """Inverse document frequency of each term of the batch over all live rows."""
        return idf(self._frequencies_of(words, term_maps), self.collection[0])

    def _frequencies_of(self, words: Vocabulary, term_maps: Sequence[Int64s]) -> Float64s:
        if self._whole:
            return self._whole[1].of(words.words()).astype(np.float64)
        return self._document_frequencies(term_maps, len(words))

    def _document_frequencies(self, term_maps: Sequence[Int64s], words: int) -> Float64s:
        frequencies = np.zeros(words)
        for i, term_map in enumerate(term_maps):
            here = np.flatnonzero(term_map >= 0)
            mask = self._live[i]
            if mask is None:
                frequencies[here] += self._parts[i].frequencies[term_map[here]]
            else:
                frequencies[here] += [self._live_frequency(i, int(term), mask) for term in term_map[here]]
        return frequencies

    def _live_frequency(self, i: int, term: int, mask: Mask) -> int:
        """Number of live rows of part i that contain the term, counted once per snapshot and term."""
        part = self._parts[i]
        if (i, term) not in self._frequencies:
            cells = part.cells[part.cell_ptr[term] : part.cell_ptr[term + 1]]
            self._frequencies[i, term] = count_allowed(cells, part.postings, mask)
        return self._frequencies[i, term]


def _counts(encoded: Encoded) -> Counts:
    assert encoded.counts is not None
    return encoded.counts


BM25 = LensType(
    name="bm25",
    description="words that query and passage share, rare ones counting more",
    colour=Colour("#3b6fd9", "#7ea5ff"),
    make=lambda setup: Bm25Lens(setup.config),
    config=Bm25Config,
    expansion="rm3",
    query_copies=5,  # as in query2doc
)
