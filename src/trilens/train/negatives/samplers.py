"""Samplers of hard negatives: from a table of candidates, from a search over token bags, at random, or from several."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from trilens.datasets.answers import AnswerKind
from trilens.kernels.array_types import Int64s
from trilens.train.data.examples import Examples
from trilens.train.encoder import TorchEncoder
from trilens.train.negatives.bag_of_tokens import BagNegatives
from trilens.train.negatives.negative_table import NegativeTable, refresh
from trilens.train.negatives.random_negatives import random_negatives


class NegativeSampler(Protocol):
    """Draws `count` negatives for each of the given examples, as passage numbers; a draw does not depend on earlier draws.

    `save` and `load` store the sampler's state in a folder of the checkpoint; a sampler may be stateless.
    """

    def draw(self, epoch: int, examples: Sequence[int], count: int) -> list[Int64s]: ...

    def save(self, folder: Path) -> None: ...

    def load(self, folder: Path) -> None: ...


class _Stateless:
    """Saves nothing: the draws depend on the texts and the model only."""

    def save(self, folder: Path) -> None:
        """Nothing to save."""

    def load(self, folder: Path) -> None:
        """Nothing to load."""


class TableSampler(_Stateless):
    """Samples from a fixed table of candidates."""

    def __init__(self, table: NegativeTable) -> None:
        self._table = table

    def draw(self, epoch: int, examples: Sequence[int], count: int) -> list[Int64s]:
        """See `NegativeSampler`."""
        return [self._table.draw(epoch, example, count) for example in examples]


class RefreshSampler:
    """Samples from a table of candidates: initially the negatives in the data, later those of the last `refresh`."""

    def __init__(self, examples: Examples, seed: int, least: int) -> None:
        self._examples, self._seed, self._least = examples, seed, least
        self._table = NegativeTable.of_given(examples, seed, least)

    def draw(self, epoch: int, examples: Sequence[int], count: int) -> list[Int64s]:
        """See `NegativeSampler`."""
        return [self._table.draw(epoch, example, count) for example in examples]

    def refresh(self, encoder: TorchEncoder, lens: str, depth: int, skip: int, answers: AnswerKind | None) -> None:
        """Replace the table by the results of a search with the current model (ANCE)."""
        options = {"first": skip + 1, "least": self._least, "answers": answers, "seed": self._seed}
        self._table = refresh(self._examples, encoder, lens, depth + skip, **options)  # type: ignore[arg-type]

    def save(self, folder: Path) -> None:
        """See `NegativeSampler`."""
        self._table.save(folder)

    def load(self, folder: Path) -> None:
        """See `NegativeSampler`."""
        self._table = NegativeTable.load(folder)


class BagSampler(_Stateless):
    """Samples from the results of a search over token bags, with the query weights of the model in training."""

    def __init__(self, examples: Examples, encoder: TorchEncoder, depth: int, answers: AnswerKind | None, seed: int) -> None:
        self._examples, self._encoder, self._depth, self._answers, self._seed = examples, encoder, depth, answers, seed
        self._bags = BagNegatives(
            examples, encoder.doc_bags([examples.passage(number) for number in range(examples.passage_count)])
        )

    def draw(self, epoch: int, examples: Sequence[int], count: int) -> list[Int64s]:
        """See `NegativeSampler`."""
        queries = self._encoder.encode_queries([self._examples.query(example) for example in examples], heads=["sparse"]).sparse
        assert queries is not None
        options = {"depth": self._depth, "answers": self._answers, "seed": self._seed, "step": epoch}
        return list(self._bags.draw(queries, examples, count, **options))  # type: ignore[arg-type]


class RandomSampler(_Stateless):
    """Samples from all passages."""

    def __init__(self, examples: Examples, seed: int) -> None:
        self._examples, self._seed = examples, seed

    def draw(self, epoch: int, examples: Sequence[int], count: int) -> list[Int64s]:
        """See `NegativeSampler`; fewer if there are fewer passages."""
        return [
            random_negatives(
                self._examples, example, count, np.empty(0, np.int64), np.random.default_rng([self._seed, epoch, example])
            )
            for example in examples
        ]


class MixedSampler:
    """Samples a fixed number of negatives from each of several samplers; no passage is drawn twice for an example.

    What a sampler lacks is filled up with random passages, and with repetitions if there are too few passages.
    """

    def __init__(self, examples: Examples, samplers: Sequence[tuple[NegativeSampler, int]], seed: int) -> None:
        self._examples, self._samplers, self._seed = examples, samplers, seed
        self.count = sum(count for _, count in samplers)

    def draw(self, epoch: int, examples: Sequence[int]) -> list[Int64s]:
        """`count` negatives for each example; none for an example to which all passages are relevant."""
        drawn = [np.empty(0, np.int64) for _ in examples]
        wanted = 0
        for sampler, count in self._samplers:
            offered = sampler.draw(epoch, examples, wanted + count) if count else drawn
            wanted += count
            drawn = [self._extended(*row, epoch, wanted) for row in zip(examples, drawn, offered, strict=True)]
        return drawn

    def _extended(self, example: int, taken: Int64s, offered: Int64s, epoch: int, wanted: int) -> Int64s:
        """The passages taken so far and others of those offered, `wanted` in total."""
        _, first = np.unique(offered, return_index=True)
        distinct = offered[np.sort(first)]
        drawn = np.concatenate([taken, distinct[~np.isin(distinct, taken)]])[:wanted]
        if len(drawn) < wanted:
            random = np.random.default_rng([self._seed, epoch, example, wanted])
            drawn = np.concatenate([drawn, random_negatives(self._examples, example, wanted - len(drawn), drawn, random)])
        return np.resize(drawn, wanted) if len(drawn) else drawn

    def save(self, folder: Path) -> None:
        """Save the state of each sampler."""
        folder.mkdir(parents=True, exist_ok=True)
        for number, (sampler, _) in enumerate(self._samplers):
            sampler.save(folder / str(number))

    def load(self, folder: Path) -> None:
        """Load the state of each sampler."""
        for number, (sampler, _) in enumerate(self._samplers):
            sampler.load(folder / str(number))
