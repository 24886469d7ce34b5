"""The lens protocol: `LensType` describes a retrieval method, `Lens` indexes a collection by it, `Searcher` searches the index.

A *part* is what one segment stores for one lens: a few memory-mapped arrays. A searcher covers all parts of a snapshot;
rows are numbered through the parts in order.

A *shared part* is stored once for all segments of a collection, such as a page of a codebook. It is written from the batch
that needs it and never changed; a lens appends more as the collection grows. Every method receives the shared parts of its
lens, oldest first, so positions in that list are stable.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence, Set
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel

from trilens.encode.encoder import Encoded, Encoder
from trilens.encode.folder import Head, TermWeighting
from trilens.encode.model import ModelEncoder
from trilens.errors import CollectionDamaged
from trilens.frozen import Frozen
from trilens.index.topk import TopK
from trilens.kernels.array_types import Float32s, Float64s, Int64s, Mask
from trilens.lenses.feedback import Expansion, FeedbackPassages
from trilens.lenses.parts import Match, ScoreParts
from trilens.lenses.statistics import LensStatistics, Sample, ScaleSums
from trilens.represent import Representation

FEWEST_ROWS = 20  # in a collection of fewer passages no score is called weak
NO_ROWS: Int64s = np.empty(0, np.int64)


class LensConfig(Frozen):
    """Build-time configuration of a lens, stored with the collection. This base has no options."""


class LensParams(Frozen):
    """Search parameters of a lens, passed with each search. This base has none."""


class Colour(NamedTuple):
    """The colour of a lens on light and on dark ground, as CSS."""

    light: str
    dark: str


@dataclass(frozen=True, slots=True)
class ExplainTarget:
    """One query and one row whose score is to be explained.

    `encoded` holds the encoded query alone. `passage` is the text of the row as it was encoded. `score` is None if the lens has
    no score for the row.
    """

    query: str
    encoded: Encoded
    row: int
    passage: str
    score: float | None
    params: Any = None


class ScoreScale(NamedTuple):
    """What scores mean, for each query of a batch.

    zero   the score of a passage that has nothing to do with the query
    best   the score of a passage that matches in every respect
    least  the share of the way from zero to best below which a match is weak
    """

    zero: Float64s
    best: Float64s
    least: float

    @staticmethod
    def of(sums: ScaleSums) -> "ScoreScale":
        """From sums over random rows."""
        return ScoreScale(sums.zero / np.maximum(1, sums.known), sums.best / max(1, sums.rows), sums.least)

    def span(self, query: int) -> tuple[float, float]:
        """The score that means nothing, and the way from there to the least that is not weak: 0 for a query without content."""
        return float(self.zero[query]), max(0.0, self.least * float(self.best[query] - self.zero[query]))

    def strength(self, query: int, score: float) -> float | None:
        """How far a score is on the way to the least that is not weak, which is 1; None for a query without any content."""
        zero, way = self.span(query)
        return (score - zero) / way if way > 0 else None


def sums_by_query(values: Float64s, indptr: Int64s) -> Float64s:
    """The sums of the values between successive offsets, which do not depend on the other queries of a batch."""
    return np.array([values[start:end].sum() for start, end in pairwise(indptr.tolist())], np.float64)


class Searcher(ABC):
    """Searches and scores the rows of one lens in one snapshot."""

    def __init__(self, parts: Sequence[Any], live: Sequence[Mask | None]) -> None:
        """`live` masks the rows of each part that are not deleted; None where all are live."""
        self._parts = parts
        self._live = live
        self._first_rows: list[int] = np.cumsum([0, *(len(part) for part in parts)]).tolist()

    @cached_property
    def rows(self) -> int:
        """Number of live rows."""
        return sum(len(part) if mask is None else int(mask.sum()) for part, mask in zip(self._parts, self._live, strict=True))

    @abstractmethod
    def search(self, queries: Encoded, k: int, allowed: Mask | None = None, exact: bool = False, params: Any = None) -> TopK:
        """The k best rows of each query among the allowed rows (None: all live rows).

        `exact` disables every approximation. `params` is an instance of the lens type's `params`, or None for the defaults.
        """

    @abstractmethod
    def score(self, queries: Encoded, rows: Int64s, params: Any = None, allowed: Mask | None = None) -> Float32s:
        """The exact scores of the rows (queries, n) of each query; -inf where a row is -1 or has no score.

        They equal the scores of an exhaustive search with these params among the allowed rows.
        """

    @abstractmethod
    def explain(self, target: ExplainTarget) -> ScoreParts:
        """The parts of the score of a row; they add up to `target.score`."""

    def expand(
        self, queries: Encoded, feedback: Sequence[FeedbackPassages], expansion: Expansion, params: Any = None
    ) -> tuple[Encoded, list[dict[str, float]]]:
        """The queries expanded by pseudo-relevance feedback, and the added terms of each with their weights.

        Called only if the lens type names its `expansion` method.
        """
        raise NotImplementedError

    def token_mass(self, queries: Encoded) -> Float64s | None:
        """The total weight of each query's tokens, if scores are sums over query tokens; otherwise None.

        A fusion with `per_token` divides scores by it.
        """
        return None

    def matches(self, query: Encoded, rows: Sequence[int], texts: Sequence[str], params: Any = None) -> list[list[Match]]:
        """The places of the texts, as they were encoded, that match one query; no model runs.

        `rows` are the rows of the texts. A lens whose scores have no places returns none.
        """
        return [[] for _ in texts]

    def vectors(self, rows: Int64s) -> Representation | None:
        """The vectors of rows, distinct and ascending, from which scores are computed; None if a lens has none, as bm25."""
        return None

    def query_vectors(self, queries: Encoded, params: Any = None) -> Representation | None:
        """The vectors of queries whose inner products with `vectors`, or their MaxSim, are the scores of a search."""
        return None

    def statistics(self, queries: Encoded, params: Any = None) -> LensStatistics:
        """What the scores of these queries depend on, counted in the live rows."""
        return LensStatistics()

    def given(self, rows: int, statistics: LensStatistics) -> "Searcher":
        """This searcher with the statistics of a collection of `rows` live rows, of which it searches a part."""
        return copy(self)

    def scale(self, queries: Encoded, params: Any = None) -> ScoreScale | None:
        """What scores mean; None if the lens cannot tell weak matches from others, or there are too few passages."""
        sums = self.scale_sums(queries, params) if len(self.sample.rows) >= FEWEST_ROWS else None
        return None if sums is None else ScoreScale.of(sums)

    def scale_sums(self, queries: Encoded, params: Any = None) -> ScaleSums | None:
        """What `scale` is made of, summed over the sample; None if the lens cannot tell weak matches from others."""
        return None

    draw_sample: Callable[[], Sample] | None = None
    """Draws some random live rows; set by the snapshot, which knows the documents of the rows."""

    @property
    def sample(self) -> Sample:
        """Some random live rows: the same passages in every search, however they are stored."""
        return self.draw_sample() if self.draw_sample else Sample(NO_ROWS)

    def sum_scales(self, queries: Encoded, params: Any, best: Float64s, least: float) -> ScaleSums:
        """The sums of a lens over the sample; `best` are the best scores of each query, already summed."""
        scores = self.score(queries, np.tile(self.sample.rows, (len(best), 1)), params).astype(np.float64)
        known = np.isfinite(scores)
        return ScaleSums(np.where(known, scores, 0.0).sum(axis=1), known.sum(axis=1), best, len(self.sample.rows), least)

    def _mask(self, i: int, allowed: Mask | None) -> Mask | None:
        """The rows of part i that count."""
        return self._live[i] if allowed is None else allowed[self._first_rows[i] : self._first_rows[i + 1]]

    def _by_part(self, rows: Int64s) -> Iterator[tuple[int, Int64s]]:
        """Each part that ascending rows are in, with their numbers within it."""
        edges = np.searchsorted(rows, self._first_rows)
        for i, (first, last) in enumerate(pairwise(edges.tolist())):
            if first < last:
                yield i, rows[first:last] - self._first_rows[i]

    def _locate(self, row: int) -> tuple[int, int]:
        """The part of a row, and the row's number within it."""
        i = int(np.searchsorted(self._first_rows, row, side="right")) - 1
        return i, row - self._first_rows[i]


def require_alike(values: Set[int], what: str) -> None:
    """Raise if segments differ in a property that they share in every whole collection; `what` shows its values at {}."""
    if len(values) > 1:
        raise CollectionDamaged(f"segments hold {what.format(sorted(values))}; expected one number: run `trilens check`")


class Lens(ABC):
    """Builds, merges and opens the parts of one lens. Lenses that share an encoder share its pass over the texts."""

    name: str
    encoder: Encoder
    shares: ClassVar[bool] = False
    """Whether the lens writes shared parts."""

    def query_encoder(self, params: Any = None) -> Encoder:
        """The encoder of queries in a search with these params."""
        return self.encoder

    def share(self, encoded: Encoded, shared: Sequence[Any], folder: Path) -> bool:
        """Write another shared part if this batch needs one, before the batch is built; returns whether it was written."""
        return False

    def open_shared(self, folder: Path) -> Any:
        """Map a shared part."""
        raise NotImplementedError

    @abstractmethod
    def build(self, encoded: Encoded, folder: Path, shared: Sequence[Any] = ()) -> None:
        """Write the part of one segment."""

    @abstractmethod
    def merge(self, parts: Sequence[Any], keep: Sequence[Mask], folder: Path, shared: Sequence[Any] = ()) -> None:
        """Write the part of a segment that holds the kept rows of several parts, in order."""

    @abstractmethod
    def open(self, folder: Path) -> Any:
        """Map a part. It has a length: its number of rows."""

    @abstractmethod
    def searcher(self, parts: Sequence[Any], live: Sequence[Mask | None], shared: Sequence[Any] = ()) -> Searcher:
        """A searcher over these parts."""

    def is_separable(self, params: Any = None) -> bool:
        """Whether scores with these params depend on the row and the statistics of the collection alone."""
        return True

    def figures(self, parts: Sequence[Any], shared: Sequence[Any] = ()) -> dict[str, Any]:
        """Statistics of this lens that `trilens info` shows."""
        return {}

    def mix_passages(self, queries: Encoded, passages: Encoded) -> Encoded:
        """The queries combined with one generated passage each (HyDE). Called only if the lens type has `hyde`."""
        raise NotImplementedError

    def score_texts(self, queries: Sequence[str], texts: Sequence[str]) -> Float32s:
        """Scores (queries, texts) of texts that are not indexed. Called only if the lens type has `late`."""
        raise NotImplementedError

    def explain_text(self, target: ExplainTarget) -> ScoreParts:
        """The parts of a score of `score_texts`. Called only if the lens type has `late`."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class LensSetup:
    """Arguments of `LensType.make`: the configuration, the collection's model and the term weighting of that model."""

    config: Any
    model: ModelEncoder
    weighting: TermWeighting


@dataclass(frozen=True)
class LensType:
    """A retrieval method: its name, options, capabilities and factory.

    heads       heads of the collection's model that the lens needs
    config      build-time configuration, stored under `config_key` (lens types may share a key; default: the name)
    params      search parameters
    reads       "vector" if documents carry the representation themselves, so that the lens stands alone in its collection
    expansion   name of its pseudo-relevance feedback method; "" if queries cannot be expanded
    hyde        whether queries can be mixed with generated passages; other lenses search the query with the passage appended
    query_copies  how often the query stands before an appended passage
    late        whether texts that are not indexed can be scored, so that the lens can re-rank where it is not built
    score_params  whether search parameters change exact scores, so that they apply to re-ranking
    stored_as   its name in catalogs and segment folders, where that differs from `name`
    batch_rows  rows to encode at once where memory allows
    """

    name: str
    description: str
    colour: Colour
    make: Callable[[LensSetup], Lens]
    heads: tuple[Head, ...] = ()
    config: type[BaseModel] = LensConfig
    config_key: str = ""
    params: type[BaseModel] = LensParams
    reads: Literal["text", "vector"] = "text"
    expansion: str = ""
    hyde: bool = False
    query_copies: int = 1
    late: bool = False
    score_params: bool = True
    stored_as: str = ""
    batch_rows: int = 8192

    @property
    def generated(self) -> bool:
        """Whether queries can be expanded with generated passages."""
        return self.hyde or self.reads == "text"

    def __post_init__(self) -> None:
        object.__setattr__(self, "config_key", self.config_key or self.name)
        object.__setattr__(self, "stored_as", self.stored_as or self.name)
