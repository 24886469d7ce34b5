"""The plan of batches as a batch sampler of sentence-transformers' trainer."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sentence_transformers.base.sampler import DefaultBatchSampler

from trilens.errors import BadInput
from trilens.train.batches import plan
from trilens.train.lists import Lists

Order = Callable[[int], NDArray[np.int64]]
"""The numbers of the examples of an epoch, such as `Mixture.order`."""


class PlannedBatchSampler(DefaultBatchSampler):
    """Gives the batches of `plan` for the epoch that the trainer sets.

    Processes take turns: the first gets the first batch of each step. `order` says which examples an epoch has, and how often;
    without it, every example of the dataset comes once.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        drop_last: bool = False,
        valid_label_columns: list[str] | None = None,
        generator: Any = None,
        seed: int = 0,
        *,
        lengths: NDArray[np.integer],
        groups: Lists | None = None,
        sizes: Mapping[int, int] | None = None,
        world: int = 1,
        order: Order | None = None,
    ) -> None:
        super().__init__(dataset, batch_size, drop_last, valid_label_columns, generator, seed)
        if len(dataset) != len(lengths):
            raise BadInput(f"the dataset has {len(dataset)} examples, and there are {len(lengths)} lengths; expected as many")
        self._lengths = lengths
        self._groups = groups
        self._sizes = sizes
        self._world = world
        self._order = order
        self._planned: tuple[int, list[NDArray[np.int64]]] | None = None

    def batches(self) -> list[NDArray[np.int64]]:
        """All batches of this epoch."""
        if self._planned is None or self._planned[0] != self.epoch:
            self._planned = (self.epoch, self._plan(self.epoch))
        return self._planned[1]

    def __iter__(self) -> Iterator[list[int]]:
        return (batch.tolist() for batch in self.batches())

    def __len__(self) -> int:
        return len(self.batches())

    def _plan(self, epoch: int) -> list[NDArray[np.int64]]:
        rows = np.arange(len(self._lengths)) if self._order is None else self._order(epoch)
        found = plan(
            self._lengths[rows],
            size=self.batch_size if self._sizes is None else self._sizes,
            seed=self.seed,
            epoch=epoch,
            world=self._world,
            groups=None if self._groups is None else self._groups.take(rows),
            drop_last=self.drop_last,
        )
        return [rows[batch] for batch in found]


def planned_sampler(**options: Any) -> Callable[..., PlannedBatchSampler]:
    """What `batch_sampler` of the training arguments takes; `options` are the named ones of `PlannedBatchSampler`."""

    def make(dataset: Any, **given: Any) -> PlannedBatchSampler:
        return PlannedBatchSampler(dataset, **given, **options)

    return make
