"""Samplers of hard negatives: from a table of candidates, or from a search over token bags."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from trilens.datasets.answers import AnswerKind
from trilens.kernels.array_types import Int64s
from trilens.train.data.examples import Examples
from trilens.train.encoder import TorchEncoder
from trilens.train.negatives.bag_of_tokens import BagNegatives
from trilens.train.negatives.negative_table import NegativeTable, refresh


class NegativeSampler(Protocol):
    """Draws `count` negatives for each of the given examples, as passage numbers; a draw does not depend on earlier draws.

    `save` and `load` store the sampler's state in a folder of the checkpoint; a sampler may be stateless.
    """

    def draw(self, epoch: int, examples: Sequence[int], count: int) -> list[Int64s]: ...

    def save(self, folder: Path) -> None: ...

    def load(self, folder: Path) -> None: ...


class TableSampler:
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


class BagSampler:
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

    def save(self, folder: Path) -> None:
        """Nothing to save: the index depends on the texts only."""

    def load(self, folder: Path) -> None:
        """Nothing to load."""
