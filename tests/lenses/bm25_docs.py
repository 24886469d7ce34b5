"""BM25 from its formula, row by row, and the documents on which the lens is compared with it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from trilens.index.bm25_part import Bm25Part
from trilens.index.topk import TopK
from trilens.lenses.bm25 import Bm25Config, Bm25Lens
from trilens.text.analysis import AnalysisConfig

PLAIN = AnalysisConfig(language="none")  # words are separated by spaces
Mask = NDArray[np.bool_]
Words = list[str]
Masks = Sequence[Mask | None]


def lens_of(k1: float = 0.9, b: float = 0.4) -> Bm25Lens:
    return Bm25Lens(Bm25Config(k1=k1, b=b, analysis=PLAIN))


def build(lens: Bm25Lens, docs: Sequence[Words], folder: Path) -> Bm25Part:
    lens.build(lens.encoder.encode_docs([" ".join(words) for words in docs]), folder)
    return lens.open(folder)


def build_all(lens: Bm25Lens, parts: Sequence[Sequence[Words]]) -> list[Bm25Part]:
    """Parts stay mapped after their files are gone."""
    with TemporaryDirectory() as folder:
        return [build(lens, docs, Path(folder) / str(i)) for i, docs in enumerate(parts)]


def merge(lens: Bm25Lens, parts: Sequence[Bm25Part], keep: Sequence[Mask]) -> Bm25Part:
    with TemporaryDirectory() as folder:
        lens.merge(parts, keep, Path(folder))
        return lens.open(Path(folder))


def search(
    lens: Bm25Lens,
    parts: Sequence[Bm25Part],
    live: Masks,
    queries: Sequence[Words],
    k: int,
    allowed: Mask | None = None,
) -> TopK:
    return lens.searcher(parts, live).search(lens.encoder.encode_queries([" ".join(words) for words in queries]), k, allowed)


class BruteForce:
    """The slow twin: the score of every row from the formula, with the statistics of the live rows."""

    def __init__(self, lens: Bm25Lens, docs: Sequence[Words], live: Mask) -> None:
        self.docs, self.live = docs, live
        self._k1, self._b = lens.config.k1, lens.config.b
        self._counts = [Counter(words) for words in docs]
        self._lengths = np.array([len(words) for words in docs], np.float64)
        self._average = self._lengths[live].mean() if self._lengths[live].sum() else 1.0

    def scores(self, query: Words) -> NDArray[np.float64]:
        """0 for rows that share no word with the query."""
        scores = np.zeros(len(self.docs))
        for word in query:
            counts = np.array([counted[word] for counted in self._counts], np.float64)
            held = counts > 0
            frequency = int((held & self.live).sum())
            idf = log(1 + (self.live.sum() - frequency + 0.5) / (frequency + 0.5))
            norms = self._k1 * (1 - self._b + self._b * self._lengths / self._average)
            scores[held] += idf * counts[held] / (counts[held] + norms[held])
        return scores


def require_same(top: TopK, queries: Sequence[Words], truth: BruteForce, allowed: Mask | None = None) -> None:
    """The answers are the best allowed rows; rounding may swap rows, but never equal documents."""
    allowed = truth.live if allowed is None else allowed
    assert len(top.rows) == len(top.scores) == len(queries)
    for query, rows, found in zip(queries, top.rows, top.scores, strict=True):
        scores = truth.scores(query)
        expected = np.sort(scores[allowed & (scores > 0)])[::-1][: len(rows)]
        assert (rows[len(expected) :] == -1).all() and (found[len(expected) :] == -np.inf).all()
        rows, found = rows[: len(expected)], found[: len(expected)]
        assert (rows >= 0).all() and allowed[rows].all() and len(np.unique(rows)) == len(rows)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        np.testing.assert_allclose(found, scores[rows], rtol=1e-5)
        order = list(zip((-found).tolist(), rows.tolist(), strict=True))
        assert order == sorted(order)
        require_earlier_twins(rows.tolist(), truth.docs, allowed)


def require_earlier_twins(rows: list[int], docs: Sequence[Words], allowed: Mask) -> None:
    """A document is returned only if all equal documents in earlier rows are."""
    found = {tuple(sorted(docs[row])): row for row in sorted(rows)}
    for row in np.flatnonzero(allowed).tolist():
        assert row in rows or row > found.get(tuple(sorted(docs[row])), -1)


@dataclass(frozen=True)
class Case:
    parts: list[list[Words]]
    live: list[Mask | None]
    allowed: Mask | None

    @property
    def docs(self) -> list[Words]:
        return [words for part in self.parts for words in part]

    @property
    def live_rows(self) -> Mask:
        masks = zip(self.parts, self.live, strict=True)
        return np.concatenate([np.ones(len(part), np.bool_) if mask is None else mask for part, mask in masks])


def zipf_docs(random: np.random.Generator, rows: int, length: int, vocabulary: int = 400) -> list[Words]:
    """Words with Zipf's distribution, lengths from 0 to about three times `length`, some documents twice."""
    chances = 1 / np.arange(1, vocabulary + 1)
    lengths = np.minimum(random.gamma(1.5, length / 1.5, rows).astype(int), 5 * length)
    drawn = random.choice(vocabulary, lengths.sum(), p=chances / chances.sum())
    docs = [[f"w{word}" for word in words] for words in np.split(drawn, np.cumsum(lengths)[:-1])]
    for row in random.integers(0, rows, rows // 20):
        docs[row] = docs[random.integers(0, rows)]
    return docs


def zipf_queries(random: np.random.Generator) -> list[Words]:
    """Frequent and rare words, some twice, some unknown."""
    queries = [[f"w{word}" for word in random.integers(0, 420, random.integers(1, 9))] for _ in range(4)]
    queries += [[f"w{word}" for word in random.integers(0, 8, 3)], ["w0"], ["w1", "w1", "w300"], ["unknown"]]
    return [*queries, [f"w{word}" for word in range(0, 400, 7)]]
