"""Negatives found while training, in an index of bags of tokens: passages are only tokenised, so it never gets stale."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from trilens.encode.encoder import Encoded, Encoder, Progress
from trilens.errors import BadInput
from trilens.index.sparse import SparseSearcher
from trilens.index.sparse_parts import BagPart
from trilens.index.topk import TopK
from trilens.represent import Sparse
from trilens.text.answers import AnswerKind, AnswerMatcher
from trilens.train.data.examples import Examples
from trilens.train.negatives.others import random_others

Ints = NDArray[np.int64]
CHUNK = 8192


class BagNegatives:
    """The passages of the examples as bags, to be searched with the weights or the bags of queries."""

    def __init__(self, examples: Examples, bags: Sparse) -> None:
        if len(bags) != examples.passage_count:
            raise BadInput(f"there are {len(bags)} bags for {examples.passage_count} passages; expected one for each")
        self._examples = examples
        self._folder = TemporaryDirectory(prefix="trilens-bags-")
        BagPart.build(bags, Path(self._folder.name))
        self._searcher = SparseSearcher("bag", [BagPart.open(Path(self._folder.name))], [None])

    @staticmethod
    def of(examples: Examples, encoder: Encoder, progress: Progress | None = None) -> "BagNegatives":
        """Tokenise all passages; any encoder that gives bags will do."""
        parts = []
        for start in range(0, examples.passage_count, CHUNK):
            numbers = range(start, min(start + CHUNK, examples.passage_count))
            bag = encoder.encode_docs([examples.passage(number) for number in numbers], progress).bag
            if bag is None:
                raise BadInput("the encoder gives no bags of tokens; expected one with a vocabulary, such as BagEncoder")
            parts.append(bag)
        return BagNegatives(examples, Sparse.concat(parts))

    def search(self, queries: Sparse, rows: Sequence[int], depth: int) -> TopK:
        """The best `depth` passages for the queries of these examples which are not their positives."""
        if len(queries) != len(rows):
            raise BadInput(f"there are {len(queries)} queries for {len(rows)} examples; expected one for each")
        twins = [self._examples.twins(row) for row in rows]
        # Positives may have copies, which are as many rows that do not count.
        spare = max((int(self._copies[some].sum()) for some in twins), default=0)
        top = self._searcher.search(Encoded(sparse=queries), depth + spare)
        kept, scores = np.full((len(rows), depth), -1, np.int64), np.full((len(rows), depth), -np.inf, np.float32)
        for at, some in enumerate(twins):
            found = top.rows[at]
            good = (found >= 0) & ~np.isin(self._examples.passages.same[found], some)
            count = min(depth, int(good.sum()))
            kept[at, :count], scores[at, :count] = found[good][:count], top.scores[at][good][:count]
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
    ) -> Ints:
        """`count` negatives for each of these examples (examples, count): any of the first `pool` of the best `depth`.

        `answers` drops passages that hold an answer. What is wanting is drawn from all passages. Where even those are too few,
        some come twice.
        """
        top = self.search(queries, rows, depth)
        drawn = np.empty((len(rows), count), np.int64)
        for at, row in enumerate(rows):
            random = np.random.default_rng([seed, step, row])
            found = self._without_answers(row, top.rows[at][top.rows[at] >= 0], answers)
            chosen = random.permutation(found[: max(count, pool or depth)])[:count]
            if len(chosen) < count:
                more = random_others(self._examples, row, count - len(chosen), chosen, random)
                chosen = np.concatenate([chosen, more])
            if not len(chosen):
                raise BadInput(f"example {row} has no negatives: all {self._examples.passage_count} passages are its positives")
            drawn[at] = np.resize(chosen, count)
        return drawn

    @cached_property
    def _copies(self) -> Ints:
        """How many passages have the text of each one that came first with it."""
        same = self._examples.passages.same
        return np.bincount(same, minlength=len(same)).astype(np.int64)

    def _without_answers(self, row: int, numbers: Ints, kind: AnswerKind | None) -> Ints:
        matcher = AnswerMatcher(self._examples.answers(row), kind) if kind else None
        if not matcher:
            return numbers
        return np.array([n for n in numbers.tolist() if not matcher.matches(self._examples.passage(n))], np.int64)
