"""Where a run draws the hard negatives of its examples from."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from trilens.text.answers import AnswerKind
from trilens.train.data.examples import Examples
from trilens.train.encoder import TorchEncoder
from trilens.train.negatives.bag_of_tokens import BagNegatives
from trilens.train.negatives.refresh import NegativeTable, refresh

Numbers = NDArray[np.int64]


class Negatives(Protocol):
    """Draws `count` negatives of each of some examples, as numbers of passages; what was drawn depends on no earlier draw.

    What is kept of it in a checkpoint is written to a folder of its own; most keep nothing.
    """

    def draw(self, epoch: int, examples: Sequence[int], count: int) -> list[Numbers]: ...

    def save(self, folder: Path) -> None: ...

    def load(self, folder: Path) -> None: ...


class FromTable:
    """A table: at first the negatives that the data gives, until `refresh` puts another in its place."""

    def __init__(self, examples: Examples, seed: int, least: int) -> None:
        self._examples, self._seed, self._least = examples, seed, least
        self._table = NegativeTable.of_given(examples, seed, least)

    def draw(self, epoch: int, examples: Sequence[int], count: int) -> list[Numbers]:
        """See `Negatives`."""
        return [self._table.draw(epoch, example, count) for example in examples]

    def refresh(self, encoder: TorchEncoder, lens: str, depth: int, skip: int, answers: AnswerKind | None) -> None:
        """Search the passages with the model as it is (ANCE)."""
        options = {"first": skip + 1, "least": self._least, "answers": answers, "seed": self._seed}
        self._table = refresh(self._examples, encoder, lens, depth + skip, **options)  # type: ignore[arg-type]

    def save(self, folder: Path) -> None:
        """See `Negatives`."""
        self._table.save(folder)

    def load(self, folder: Path) -> None:
        """See `Negatives`."""
        self._table = NegativeTable.load(folder)


class FromBags:
    """Passages as bare bags of tokens, searched with the weights that the model in training gives the query."""

    def __init__(self, examples: Examples, encoder: TorchEncoder, depth: int, answers: AnswerKind | None, seed: int) -> None:
        self._examples, self._encoder, self._depth, self._answers, self._seed = examples, encoder, depth, answers, seed
        self._bags = BagNegatives(
            examples, encoder.doc_bags([examples.passage(number) for number in range(examples.passage_count)])
        )

    def draw(self, epoch: int, examples: Sequence[int], count: int) -> list[Numbers]:
        """See `Negatives`."""
        queries = self._encoder.encode_queries([self._examples.query(example) for example in examples], heads=["sparse"]).sparse
        assert queries is not None
        options = {"depth": self._depth, "answers": self._answers, "seed": self._seed, "step": epoch}
        return list(self._bags.draw(queries, examples, count, **options))  # type: ignore[arg-type]

    def save(self, folder: Path) -> None:
        """Nothing: it is made of the texts alone."""

    def load(self, folder: Path) -> None:
        """Nothing was kept."""
