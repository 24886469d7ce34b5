"""Teachers: models whose scores of a query's docs are learned from."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trilens.encode.folder import Head
from trilens.train.cached import encode, join
from trilens.train.feed import Teacher, reader
from trilens.train.negatives.cross_encoder import CrossEncoderScorer
from trilens.train.objectives import grouped, own_scores
from trilens.train.recipe import TeacherPart

AT_ONCE = 8  # docs of a bi-encoder


class CrossEncoderTeacher:
    """Reads query and doc together; the best there is, and the slowest."""

    def __init__(self, name: str) -> None:
        self._scorer = CrossEncoderScorer(name, raw=True)

    def __call__(self, queries: Sequence[str], docs: Sequence[Sequence[str]]) -> Tensor:
        """Scores (queries, docs of each) as the model gives them, before any sigmoid."""
        return torch.from_numpy(np.stack(self._scorer.score(queries, docs)))


class BiEncoderTeacher:
    """Another retriever, by one of its heads."""

    def __init__(self, name: str, head: Head) -> None:
        from trilens.train.checkpoints import load_checkpoint
        from trilens.train.model import stacks_of

        self._model: Any = load_checkpoint(name).eval()
        self._head = head
        self._read = reader(self._model)
        for stack in stacks_of(self._model).values():
            stack.heads.wanted = (head,)

    @torch.no_grad()
    def __call__(self, queries: Sequence[str], docs: Sequence[Sequence[str]]) -> Tensor:
        """Scores (queries, docs of each)."""
        flat = [doc for group in docs for doc in group]
        # Short docs with short ones: padded to the longest of all, most of what is computed would be padding.
        order = sorted(range(len(flat)), key=lambda at: len(flat[at]))
        asked = encode(self._model, self._read(list(queries), task="query"))
        batches = (order[start : start + AT_ONCE] for start in range(0, len(order), AT_ONCE))
        parts = [encode(self._model, self._read([flat[at] for at in batch], task="document")) for batch in batches]
        back = torch.tensor(order).argsort()
        found = {name: value[back] for name, value in join(parts).items()}
        return own_scores(self._head, asked, grouped(found, len(queries)))


def make_teacher(part: TeacherPart | None) -> Teacher | None:
    """The teacher that a recipe names."""
    if part is None:
        return None
    return CrossEncoderTeacher(part.model) if part.kind == "cross-encoder" else BiEncoderTeacher(part.model, part.head)
