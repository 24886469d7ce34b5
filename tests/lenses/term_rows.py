"""Rows of weighted terms, the term lenses over them, and the exact search that they are compared with."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trilens.encode.encoder import Encoded
from trilens.encode.folder import TermWeighting
from trilens.encode.model import ModelEncoder
from trilens.index.exact import exact_sparse
from trilens.index.sparse_parts import SparsePart
from trilens.index.topk import TopK
from trilens.lenses.lexical import LexicalLens
from trilens.lenses.sparse import SparseLens
from trilens.lenses.term_lens import EncodedField, TermLens, TermSearcher
from trilens.lenses.term_settings import SparseConfig
from trilens.lenses.tokens import TokensLens
from trilens.represent import Sparse

DIM = 300
Mask = NDArray[np.bool_]
KINDS: dict[EncodedField, type[TermLens]] = {"sparse": SparseLens, "lexical": LexicalLens, "bag": TokensLens}


def lens_of(field: EncodedField, config: SparseConfig | None = None, weighting: TermWeighting | None = None) -> TermLens:
    """The lens over a representation, without a model: the tests make the vectors."""
    return KINDS[field](ModelEncoder("", ()), config or SparseConfig(), weighting or TermWeighting())


def sparse(rows: Sequence[dict[int, float]], dim: int = DIM) -> Sparse:
    pairs = [pair for row in rows for pair in sorted(row.items())]
    terms, weights = np.array([term for term, _ in pairs], np.int32), np.array([weight for _, weight in pairs], np.float32)
    return Sparse(np.cumsum([0, *(len(row) for row in rows)]), terms, weights, dim)


def drawn(random: np.random.Generator, rows: int, terms: int, dim: int = DIM, ties: bool = False) -> Sparse:
    """Rows with about this many terms each, some frequent and most rare; a tenth of the rows are empty."""
    chances = 1 / np.arange(1, dim + 1)
    drawn_rows = []
    for _ in range(rows):
        count = 0 if random.random() < 0.1 else int(random.integers(1, 2 * terms))
        row_terms = random.choice(dim, min(count, dim), replace=False, p=chances / chances.sum())
        weights = random.choice([0.5, 1.0, 2.0], len(row_terms)) if ties else random.gamma(2, 1, len(row_terms)) + 1e-3
        drawn_rows.append(dict(zip(row_terms.tolist(), weights.tolist(), strict=True)))
    return sparse(drawn_rows, dim)


def skewed(random: np.random.Generator, rows: int, dim: int, terms: int) -> Sparse:
    """Rows that share terms by topic, like those of real texts."""
    topics = [random.choice(dim, 4 * terms, replace=False) for _ in range(12)]
    drawn_rows = []
    for _ in range(rows):
        pieces = [random.choice(topics[random.integers(12)], terms), random.choice(dim, terms // 4)]
        row_terms = np.unique(np.concatenate(pieces))
        drawn_rows.append(dict(zip(row_terms.tolist(), (random.gamma(1.5, 1, len(row_terms)) + 0.01).tolist(), strict=True)))
    return sparse(drawn_rows, dim)


def as_bag(rows: Sparse) -> Sparse:
    return Sparse(rows.indptr, rows.terms, np.ones(len(rows.terms), np.float32), rows.dim)


def encoded(rows: Sparse) -> Encoded:
    return Encoded(sparse=rows, lexical=rows, bag=as_bag(rows))


def build(lens: TermLens, rows: Sparse, folder: Path) -> SparsePart:
    lens.build(encoded(rows), folder)
    return lens.open(folder)


def stored(searcher: TermSearcher, rows: int, dim: int = DIM) -> Sparse:
    """The rows as the parts store them."""
    pairs = [searcher.row(row) for row in range(rows)]
    terms, weights = (np.concatenate([pair[column] for pair in pairs]) for column in (0, 1))
    return Sparse(np.cumsum([0, *(len(pair[0]) for pair in pairs)]), terms, weights, dim)


def best(queries: Sparse, rows: Sparse, k: int, allowed: Mask | None = None) -> TopK:
    """The oracle: rows that share no term with the query are not found."""
    top = exact_sparse(queries, rows, k, allowed)
    shared = top.scores > 0
    return TopK(np.where(shared, top.rows, -1), np.where(shared, top.scores, -np.inf).astype(np.float32))


def assert_same(found: TopK, expected: TopK) -> None:
    assert found.rows.tolist() == expected.rows.tolist()
    assert found.scores.tolist() == expected.scores.tolist()
