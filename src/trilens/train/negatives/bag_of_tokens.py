"""`BagNegatives`: hard negatives from an index of token bags, which only needs a tokeniser and so never becomes stale."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import numpy as np

from trilens.datasets.answers import AnswerKind, AnswerMatcher
from trilens.encode.encoder import Encoded, Encoder, Progress
from trilens.encode.model import ModelEncoder
from trilens.errors import BadInput
from trilens.index.sparse_parts import BagPart
from trilens.index.topk import TopK
from trilens.kernels.array_types import Int64s
from trilens.lenses.tokens import TokensLens
from trilens.represent import Sparse
from trilens.train.data.examples import Examples
from trilens.train.negatives.random_negatives import random_negatives

CHUNK = 8192


class BagNegatives:
    """An index of the passages as bags of tokens, searched with the term weights or token bags of queries."""

    def __init__(self, examples: Examples, bags: Sparse) -> None:
        if len(bags) != examples.passage_count:
            raise BadInput(f"there are {len(bags)} bags for {examples.passage_count} passages; expected one for each")
        self._examples = examples
        self._folder = TemporaryDirectory(prefix="trilens-bags-")
        BagPart.build(bags, Path(self._folder.name))
        self._searcher = TokensLens(cast(ModelEncoder, None)).searcher([BagPart.open(Path(self._folder.name))], [None])

    @staticmethod
    def of(examples: Examples, encoder: Encoder, progress: Progress | None = None) -> "BagNegatives":
        """Tokenise all passages; works with any encoder that produces bags."""
        parts = []
        for start in range(0, examples.passage_count, CHUNK):
            numbers = range(start, min(start + CHUNK, examples.passage_count))
            bag = encoder.encode_docs([examples.passage(number) for number in numbers], progress).bag
            if bag is None:
                raise BadInput("the encoder makes no bags of tokens; expected one with a vocabulary, such as BagEncoder")
            parts.append(bag)
        return BagNegatives(examples, Sparse.concat(parts))

    def search(self, queries: Sparse, rows: Sequence[int], depth: int) -> TopK:
        """The top `depth` passages for the queries of these examples, without their positives."""
        if len(queries) != len(rows):
            raise BadInput(f"there are {len(queries)} queries for {len(rows)} examples; expected one for each")
        twins = [self._examples.twins(row) for row in rows]
        # Positives and their copies occupy ranks that do not count.
        spare = max((int(self._copies[same].sum()) for same in twins), default=0)
        top = self._searcher.search(Encoded(sparse=queries), depth + spare)
        kept, scores = np.full((len(rows), depth), -1, np.int64), np.full((len(rows), depth), -np.inf, np.float32)
        for query, same in enumerate(twins):
            hits = top.rows[query]
            allowed = (hits >= 0) & ~np.isin(self._examples.passages.same[hits], same)
            count = min(depth, int(allowed.sum()))
            kept[query, :count], scores[query, :count] = hits[allowed][:count], top.scores[query][allowed][:count]
        return TopK(kept, scores)

    def draw(
        self,
        queries: Sparse,
        rows: Sequence[int],
        count: int,
        *,
        depth: int = 100,
        pool: int | None = None,
        answers: AnswerKind | None = None,
        seed: int = 0,
        step: int = 0,
    ) -> Int64s:
        """Draw `count` negatives for each example (examples, count), from the first `pool` of the top `depth`.

        `answers` drops passages that contain an answer. If too few remain, random passages are added; if there are too few
        passages altogether, some are repeated.
        """
        top = self.search(queries, rows, depth)
        drawn = np.empty((len(rows), count), np.int64)
        for index, row in enumerate(rows):
            random = np.random.default_rng([seed, step, row])
            candidates = self._without_answers(row, top.rows[index][top.rows[index] >= 0], answers)
            sample = random.permutation(candidates[: max(count, pool or depth)])[:count]
            if len(sample) < count:
                more = random_negatives(self._examples, row, count - len(sample), sample, random)
                sample = np.concatenate([sample, more])
            if not len(sample):
                raise BadInput(f"example {row} has no negatives: all {self._examples.passage_count} passages are its positives")
            drawn[index] = np.resize(sample, count)
        return drawn

    @cached_property
    def _copies(self) -> Int64s:
        """For each passage that is the first with its text, the number of passages with that text."""
        same = self._examples.passages.same
        return np.bincount(same, minlength=len(same)).astype(np.int64)

    def _without_answers(self, row: int, numbers: Int64s, kind: AnswerKind | None) -> Int64s:
        matcher = AnswerMatcher(self._examples.answers(row), kind) if kind else None
        if not matcher:
            return numbers
        return np.array([n for n in numbers.tolist() if not matcher.matches(self._examples.passage(n))], np.int64)
