"""Keys of examples and the batch sampler over them: the data loader yields keys only, texts are drawn when a step starts.

A key is epoch · examples + example, so the texts of a step depend on nothing but the seed and its keys.
"""

from collections.abc import Callable, Iterator
from typing import Any

from torch.utils.data import Dataset

from trilens.kernels.array_types import Int64s
from trilens.train.batches import plan
from trilens.train.ragged_lists import RaggedLists

Order = Callable[[int], Int64s]
"""The example numbers of an epoch, in order."""


class ExampleKeys(Dataset[int]):
    """The dataset of all keys; item i is i."""

    # Required by the sentence-transformers trainer: no columns to select, nothing to preprocess.
    column_names: tuple[str, ...] = ("key",)
    _sentence_transformers_preprocessed = True

    def __init__(self, epochs: int, examples: int) -> None:
        self._size = epochs * examples

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, key: int) -> int:
        return key


class KeyBatchSampler:
    """A batch sampler for torch's loader: the batches of all epochs of a run, planned by `plan`.

    `order` gives the examples of an epoch; `lengths` and `groups` are those of all examples. `sizes` are passed to `plan`.
    """

    def __init__(
        self, order: Order, lengths: Int64s, groups: RaggedLists | None, batches: int, world: int, seed: int, **sizes: Any
    ) -> None:
        self._order, self._lengths, self._groups = order, lengths, groups
        self._batches, self._world, self._seed, self._sizes = batches, world, seed, sizes
        self.batch_size = None  # batches differ in size
        self.drop_last = False

    def __len__(self) -> int:
        return self._batches

    def batches_of(self, epochs: int) -> int:
        """Number of batches of the first `epochs` epochs."""
        return sum(len(self.epoch(epoch)) for epoch in range(epochs))

    def __iter__(self) -> Iterator[list[int]]:
        remaining, epoch = self._batches, 0
        while remaining:
            for batch in self.epoch(epoch)[:remaining]:
                yield (epoch * len(self._lengths) + batch).tolist()
                remaining -= 1
            epoch += 1

    def epoch(self, epoch: int) -> list[Int64s]:
        """The batches of one epoch, as example numbers."""
        rows = self._order(epoch)
        groups = None if self._groups is None else self._groups.take(rows)
        batches = plan(self._lengths[rows], seed=self._seed, epoch=epoch, world=self._world, groups=groups, **self._sizes)
        return [rows[batch] for batch in batches]
