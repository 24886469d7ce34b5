"""What each step of a run reads: which examples, which of their docs, and the tensors of them.

The loader hands out nothing but numbers. Texts are drawn and read when the step begins, by a rule that knows only the seed, the
round over the examples and the example; so a run that goes on from a checkpoint reads what it would have read without a stop,
and negatives that the model itself has found are of the step at which they are used.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from torch import Tensor
from torch.utils.data import Dataset

from trilens.errors import BadInput
from trilens.train.batches import plan
from trilens.train.cached import Features
from trilens.train.data.examples import Examples
from trilens.train.lists import Lists
from trilens.train.model import stacks_of
from trilens.train.negatives.drawing import Negatives

Numbers = NDArray[np.int64]
Order = Callable[[int], Numbers]
"""The examples of a round over the data."""


class Teacher(Protocol):
    """Scores of a query's docs by a better model (queries, docs of each)."""

    def __call__(self, queries: Sequence[str], docs: Sequence[Sequence[str]]) -> Tensor: ...


class Read(Protocol):
    """Texts as a model is given them; `task` is "query" or "document"."""

    def __call__(self, texts: list[str], *, task: str) -> dict[str, Any]: ...


class Keys(Dataset[int]):
    """A key for each example of each round: round · examples + example. It is its own content."""

    # What the trainer of sentence-transformers asks of a dataset: it needs no columns, and nothing is left to prepare.
    column_names: tuple[str, ...] = ("key",)
    _sentence_transformers_preprocessed = True

    def __init__(self, rounds: int, examples: int) -> None:
        self._size = rounds * examples

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, key: int) -> int:
        return key


class KeyBatches:
    """The batches of a whole run, round after round, as `plan` makes them; a batch sampler for torch's loader.

    `order` says which examples come in a round; `lengths` and `groups` are those of all examples. `sizes` go to `plan`.
    """

    def __init__(
        self, order: Order, lengths: Numbers, groups: Lists | None, batches: int, world: int, seed: int, **sizes: Any
    ) -> None:
        self._order, self._lengths, self._groups = order, lengths, groups
        self._batches, self._world, self._seed, self._sizes = batches, world, seed, sizes
        self.batch_size = None  # batches differ in size
        self.drop_last = False

    def __len__(self) -> int:
        return self._batches

    def __iter__(self) -> Iterator[list[int]]:
        left, epoch = self._batches, 0
        while left:
            for batch in self.round(epoch)[:left]:
                yield (epoch * len(self._lengths) + batch).tolist()
                left -= 1
            epoch += 1

    def round(self, epoch: int) -> list[Numbers]:
        """The batches of one round over all examples."""
        rows = self._order(epoch)
        groups = None if self._groups is None else self._groups.take(rows)
        found = plan(self._lengths[rows], seed=self._seed, epoch=epoch, world=self._world, groups=groups, **self._sizes)
        return [rows[batch] for batch in found]


class Feed:
    """Draws the docs of examples and reads them."""

    def __init__(
        self, examples: Examples, read: Read, negatives: Negatives, count: int, seed: int, teacher: Teacher | None = None
    ) -> None:
        self._examples, self._read, self._negatives, self._count, self._seed = examples, read, negatives, count, seed
        self._teacher = teacher

    def sides(self, keys: Tensor) -> tuple[list[Features], Tensor | None]:
        """Queries and docs as a model is given them, and a teacher's scores (queries, group), where there is a teacher."""
        epochs, numbers = np.divmod(keys.cpu().numpy(), len(self._examples))
        queries = [self._examples.query(int(number)) for number in numbers]
        groups = self._groups(int(epochs[0]), [int(number) for number in numbers])
        docs = [[self._examples.passage(int(passage)) for passage in group] for group in groups]
        sides = [self._read(queries, task="query"), self._read([doc for group in docs for doc in group], task="document")]
        moved = [{name: _moved(value, keys.device) for name, value in side.items()} for side in sides]
        return moved, self._scores(queries, docs, numbers, groups)

    def save(self, folder: Path) -> None:
        """What a checkpoint has to keep of the negatives."""
        self._negatives.save(folder)

    def load(self, folder: Path) -> None:
        """What a checkpoint has kept."""
        self._negatives.load(folder)

    def _groups(self, epoch: int, numbers: Sequence[int]) -> list[Numbers]:
        """The positive of each example, then its negatives; where those end, the source of negatives has filled up."""
        groups = []
        for number, found in zip(numbers, self._negatives.draw(epoch, numbers, self._count), strict=True):
            rng = np.random.default_rng([self._seed, epoch, number])
            positives = self._examples.positives(number)
            group = [int(rng.choice(positives)), *(int(passage) for passage in found[: self._count])]
            if len(group) <= self._count:
                query = self._examples.query(number)
                raise BadInput(f"the question {query!r} has no negatives; expected passages that do not answer it: add some")
            groups.append(np.array(group))
        return groups

    def _scores(
        self, queries: Sequence[str], docs: Sequence[Sequence[str]], numbers: Numbers, groups: Sequence[Numbers]
    ) -> Tensor | None:
        if self._teacher is not None:
            return self._teacher(queries, docs)
        known = [self._known(int(number)) for number in numbers]
        if any(not scores for scores in known):
            return None
        if lacking := [i for i, group in enumerate(groups) if any(int(passage) not in known[i] for passage in group)]:
            raise BadInput(
                f"the data has no score for a doc of the question {queries[lacking[0]]!r}; expected one for each: draw fewer "
                "negatives than the data gives (negatives.count), or name a teacher"
            )
        return torch.tensor([[known[i][int(passage)] for passage in group] for i, group in enumerate(groups)])

    def _known(self, number: int) -> dict[int, float]:
        scores = self._examples.teacher(number)
        if scores is None:
            return {}
        passages = np.concatenate([self._examples.positives(number), self._examples.negatives(number)])
        return dict(zip(passages.tolist(), scores.tolist(), strict=True))


def reader(model: SentenceTransformer) -> Read:
    """Reads texts for the tower that they go through."""
    stacks = stacks_of(model)

    def read(texts: list[str], *, task: str) -> dict[str, Any]:
        return stacks[task].backbone.preprocess(texts, task=task)

    return read


def _moved(value: Any, device: torch.device) -> Any:
    return value.to(device) if isinstance(value, Tensor) else value
