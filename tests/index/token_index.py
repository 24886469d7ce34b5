"""Clustered token vectors, their index, and MaxSim computed from all decoded tokens."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from trilens.encode.encoder import Encoded
from trilens.encode.model import ModelEncoder
from trilens.errors import BadInput
from trilens.index.codebook import Codebook, Page
from trilens.index.multi_params import MultiParams
from trilens.index.multi_part import MultiPart
from trilens.index.multi_search import TokenSearcher
from trilens.index.topk import TopK
from trilens.lenses.multi import MultiConfig, MultiLens
from trilens.represent import Multi

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]

DIMS, CLUSTERS, ROWS = 32, 80, 700
EMPTY_ROWS = [0, 13, 14, 350, ROWS - 1]
EVERYTHING = MultiParams(method="plaid", reach=10_000, probes=100_000, candidates=ROWS - len(EMPTY_ROWS) - 1, margin=10)
METHODS = {
    "exact": MultiParams(method="exact"),
    "plaid": MultiParams(method="plaid", reach=8, probes=8, candidates=60),
    "xtr": MultiParams(method="xtr", reach=8, probes=8, candidates=0, tokens=200),
    "xtr by k'": MultiParams(method="xtr", reach=8, probes=8, candidates=0, nth=100),
    "xtr and MaxSim": MultiParams(method="xtr", reach=8, probes=8, candidates=60),
}
every_method = pytest.mark.parametrize("params", METHODS.values(), ids=METHODS)


def lens_of(**options: Any) -> MultiLens:
    """A lens without a model: the tests make the vectors."""
    return MultiLens(ModelEncoder("", ()).heads_encoder("multi"), MultiConfig(**options))


LENS = lens_of()


def unit(vectors: NDArray[np.floating]) -> Floats:
    units: Floats = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return units


def ragged(vectors: NDArray[np.floating], lengths: Sequence[int]) -> Multi:
    """Texts with these numbers of tokens."""
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    return Multi(offsets, vectors.astype(np.float32), np.arange(len(vectors), dtype=np.int32))


def texts(seed: int, lengths: Sequence[int], centres: int = 0) -> Multi:
    """Token vectors of length 1, each text about three of the clusters, which are the same for every seed."""
    random = np.random.default_rng(seed)
    middle = np.random.default_rng(centres).normal(size=(CLUSTERS, DIMS))
    about = [random.choice(random.choice(CLUSTERS, 3, replace=False), length) for length in lengths]
    return ragged(unit(middle[np.concatenate(about)] + 0.5 * random.normal(size=(sum(lengths), DIMS))), lengths)


def tokens_of(multi: Multi, row: int) -> Floats:
    return multi.vectors[multi.offsets[row] : multi.offsets[row + 1]]


def stretched(multi: Multi, seed: int = 0) -> Multi:
    """The same directions with lengths from 0.5 to 3."""
    lengths = np.random.default_rng(seed).uniform(0.5, 3, (len(multi.vectors), 1)).astype(np.float32)
    return replace(multi, vectors=multi.vectors * lengths)


def some_lengths(seed: int, rows: int, most: int = 24) -> list[int]:
    return [int(length) for length in np.random.default_rng(seed).integers(1, most, rows)]


def doc_lengths() -> list[int]:
    lengths = some_lengths(1, ROWS)
    for row in EMPTY_ROWS:
        lengths[row] = 0
    return lengths


DOCS = texts(2, doc_lengths())
QUERY_LENGTHS = [1, 31, 32, 33, 70, *some_lengths(3, 35)]
QUERIES = texts(4, QUERY_LENGTHS)


def searcher_of(parts: Sequence[MultiPart], live: Sequence[Mask | None], pages: Sequence[Page]) -> TokenSearcher:
    return TokenSearcher(Codebook(pages) if pages else None, parts, live)


@dataclass
class TokenIndex:
    """Parts and the pages of their codebook."""

    parts: list[MultiPart]
    pages: list[Page]

    def searcher(self, live: Sequence[Mask | None] | None = None) -> TokenSearcher:
        return searcher_of(self.parts, live or [None] * len(self.parts), self.pages)

    def decode(self) -> list[Floats]:
        """The tokens of every row."""
        codebook = Codebook(self.pages)
        rows = []
        for part in self.parts:
            decoded = codebook.decode(part.codes)
            rows += [decoded[start:end] for start, end in pairwise(part.offsets)]
        return rows


def share(multi: Multi, pages: Sequence[Page], folder: Path, by: MultiLens = LENS) -> list[Page]:
    """The pages, with one more if the batch needs it."""
    return [*pages, by.open_shared(folder)] if by.share(Encoded(multi=multi), pages, folder) else list(pages)


def build(multi: Multi, pages: Sequence[Page], folder: Path, by: MultiLens = LENS) -> MultiPart:
    by.build(Encoded(multi=multi), folder, pages)
    return by.open(folder)


def make_index(folder: Path) -> TokenIndex:
    """All rows in one part."""
    pages = share(DOCS, [], folder / "page")
    assert len(pages[0].leaders) > 8  # more than the methods reach
    return TokenIndex([build(DOCS, pages, folder / "part")], pages)


def slow_maxsim(queries: Multi, rows: Sequence[Floats]) -> NDArray[np.float64]:
    """(queries, rows)."""
    scores = np.empty((len(queries), len(rows)))
    for query in range(len(scores)):
        query_tokens = tokens_of(queries, query).astype(np.float64)
        scores[query] = [(query_tokens @ row.T.astype(np.float64)).max(axis=1, initial=-np.inf).sum() for row in rows]
    return scores


def require_best(top: TopK, scores: NDArray[np.float64], atol: float = 1e-4) -> None:
    """The answer has the highest of all scores, in order, with rows that have them."""
    k = top.rows.shape[1]
    ordered = -np.sort(-scores, axis=1)[:, :k]
    for query in range(len(scores)):
        found = int((top.rows[query] >= 0).sum())
        assert found == min(k, int(np.isfinite(scores[query]).sum()))
        assert (top.rows[query, found:] == -1).all() and (top.scores[query, found:] == -np.inf).all()
        assert len(set(top.rows[query, :found].tolist())) == found
        np.testing.assert_allclose(top.scores[query, :found], ordered[query, :found], atol=atol)
        np.testing.assert_allclose(scores[query, top.rows[query, :found]], ordered[query, :found], atol=atol)


def require_own_scores(top: TopK, scores: NDArray[np.float64], atol: float = 1e-4) -> None:
    """Each row of the answer has its own score, in order, and is there once."""
    for query in range(len(scores)):
        rows = top.rows[query][top.rows[query] >= 0]
        np.testing.assert_allclose(top.scores[query, : len(rows)], scores[query, rows], atol=atol)
        assert (np.diff(top.scores[query, : len(rows)]) <= 0).all()
        assert len(set(rows.tolist())) == len(rows)


def recall(top: TopK, truth: TopK) -> float:
    return float(np.mean([np.isin(rows, best).mean() for rows, best in zip(top.rows, truth.rows, strict=True)]))


def same(top: TopK, other: TopK) -> bool:
    return top.rows.tobytes() == other.rows.tobytes() and top.scores.tobytes() == other.scores.tobytes()


def one_line(call: Callable[[], object]) -> str:
    """The message with which a call is refused."""
    with pytest.raises(BadInput) as caught:
        call()
    message = str(caught.value)
    assert message and "\n" not in message
    return message
