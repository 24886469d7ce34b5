"""`ContrastiveInputs`: draws the docs of a step's examples and tokenises them.

The loader yields keys only (`key_batches.py`). Positives and negatives are drawn when a step starts, determined by seed, epoch
and example: a resumed run sees the texts it would have seen without the interruption, and mined negatives are always those of
the current model.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor

from trilens.errors import BadInput
from trilens.kernels.array_types import Int64s
from trilens.train.data.examples import Examples
from trilens.train.grad_cache import Features
from trilens.train.model import stacks_of
from trilens.train.negatives.samplers import MixedSampler


class StepInputs(Protocol):
    """Makes the model inputs of a step from its keys; `save` and `load` store its state in a folder of the checkpoint."""

    def sides(self, keys: Tensor) -> tuple[list[Features], Tensor | None]: ...

    def save(self, folder: Path) -> None: ...

    def load(self, folder: Path) -> None: ...


class Teacher(Protocol):
    """Scores the docs of each query with another model (queries, docs per query)."""

    def __call__(self, queries: Sequence[str], docs: Sequence[Sequence[str]]) -> Tensor: ...


class TextReader(Protocol):
    """Tokenises texts into model inputs; `task` is "query" or "document"."""

    def __call__(self, texts: list[str], *, task: str) -> dict[str, Any]: ...


class DrawnGroups:
    """Queries with a positive and its negatives each, and teacher scores if there are any."""

    def __init__(self, examples: Examples, negatives: MixedSampler, seed: int, teacher: Teacher | None = None) -> None:
        self._examples, self._negatives, self._seed = examples, negatives, seed
        self._teacher = teacher

    def drawn(self, keys: Tensor) -> tuple[list[str], list[list[str]], Tensor | None]:
        """The queries of a step, the docs of each, positive first, and the teacher scores (queries, group) if there are any."""
        epochs, numbers = np.divmod(keys.cpu().numpy(), len(self._examples))
        queries = [self._examples.query(int(number)) for number in numbers]
        groups = self._groups(int(epochs[0]), [int(number) for number in numbers])
        docs = [[self._examples.passage(int(passage)) for passage in group] for group in groups]
        return queries, docs, self._scores(queries, docs, numbers, groups)

    def save(self, folder: Path) -> None:
        """Save the state of the negative samplers."""
        self._negatives.save(folder)

    def load(self, folder: Path) -> None:
        """Load the state of the negative samplers."""
        self._negatives.load(folder)

    def _groups(self, epoch: int, numbers: Sequence[int]) -> list[Int64s]:
        """A positive of each example, then its negatives."""
        groups = []
        for number, negatives in zip(numbers, self._negatives.draw(epoch, numbers), strict=True):
            rng = np.random.default_rng([self._seed, epoch, number])
            positives = self._examples.positives(number)
            group = [int(rng.choice(positives)), *negatives.tolist()]
            if len(group) <= self._negatives.count:
                query = self._examples.query(number)
                raise BadInput(f"the question {query!r} has no negatives; expected passages that do not answer it: add some")
            groups.append(np.array(group))
        return groups

    def _scores(
        self, queries: Sequence[str], docs: Sequence[Sequence[str]], numbers: Int64s, groups: Sequence[Int64s]
    ) -> Tensor | None:
        if self._teacher is not None:
            return self._teacher(queries, docs)
        scores = [self._scores_in_data(int(number)) for number in numbers]
        if any(not by_passage for by_passage in scores):
            return None
        if lacking := [i for i, group in enumerate(groups) if any(int(passage) not in scores[i] for passage in group)]:
            raise BadInput(
                f"the data has no score for a doc of the question {queries[lacking[0]]!r}; expected one for each: draw only "
                "given negatives, at most as many as the data has (negatives), or give a teacher"
            )
        return torch.tensor([[scores[i][int(passage)] for passage in group] for i, group in enumerate(groups)])

    def _scores_in_data(self, number: int) -> dict[int, float]:
        scores = self._examples.teacher(number)
        if scores is None:
            return {}
        passages = np.concatenate([self._examples.positives(number), self._examples.negatives(number)])
        return dict(zip(passages.tolist(), scores.tolist(), strict=True))


class ContrastiveInputs(DrawnGroups):
    """The drawn queries and docs, each encoded by itself."""

    def __init__(
        self,
        examples: Examples,
        read: TextReader,
        negatives: MixedSampler,
        seed: int,
        teacher: Teacher | None = None,
    ) -> None:
        super().__init__(examples, negatives, seed, teacher)
        self._read = read

    def sides(self, keys: Tensor) -> tuple[list[Features], Tensor | None]:
        """Model inputs of queries and docs, and the teacher scores (queries, group), None if there are none."""
        queries, docs, scores = self.drawn(keys)
        sides = [self._read(queries, task="query"), self._read([doc for group in docs for doc in group], task="document")]
        return [{name: _moved(value, keys.device) for name, value in side.items()} for side in sides], scores


def text_reader(model: SentenceTransformer) -> TextReader:
    """A reader that tokenises texts with the tower of their task."""
    stacks = stacks_of(model)

    def read(texts: list[str], *, task: str) -> dict[str, Any]:
        return stacks[task].backbone.preprocess(texts, task=task)

    return read


def _moved(value: Any, device: torch.device) -> Any:
    return value.to(device) if isinstance(value, Tensor) else value
