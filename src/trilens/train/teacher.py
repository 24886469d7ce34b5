"""Teacher models for distillation: cross-encoders, bi-encoders and ensembles of heads that score the docs of a query."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trilens.encode.folder import Head
from trilens.encode.models import resolve_model
from trilens.encode.onnx import OnnxEncoder
from trilens.train.grad_cache import encode, join
from trilens.train.losses.ensemble import ensemble_scores
from trilens.train.negatives.cross_encoder import open_cross_encoder
from trilens.train.negatives.scorers import EncoderScorer
from trilens.train.objectives import grouped, own_scores
from trilens.train.recipe import TeacherSection
from trilens.train.step_inputs import Teacher, text_reader

AT_ONCE = 8  # docs of a bi-encoder


class CrossEncoderTeacher:
    """Scores with a cross-encoder, the most accurate and slowest kind of teacher."""

    def __init__(self, name: str) -> None:
        self._scorer = open_cross_encoder(name, raw=True)

    def __call__(self, queries: Sequence[str], docs: Sequence[Sequence[str]]) -> Tensor:
        """Raw scores (queries, docs per query), before any sigmoid."""
        return torch.from_numpy(np.stack(self._scorer.score(queries, docs)))


class BiEncoderTeacher:
    """Scores with one head of another retriever."""

    def __init__(self, name: str, head: Head) -> None:
        from trilens.train.checkpoints import load_checkpoint
        from trilens.train.model import stacks_of

        self._model: Any = load_checkpoint(name).eval()
        self._head = head
        self._read = text_reader(self._model)
        for stack in stacks_of(self._model).values():
            stack.heads.wanted = (head,)

    @torch.no_grad()
    def __call__(self, queries: Sequence[str], docs: Sequence[Sequence[str]]) -> Tensor:
        """Scores (queries, docs per query)."""
        flat = [doc for group in docs for doc in group]
        # Sorted by length: padded to the longest of all docs, most of the computation would be padding.
        order = sorted(range(len(flat)), key=lambda doc: len(flat[doc]))
        query_outputs = encode(self._model, self._read(list(queries), task="query"))
        batches = (order[start : start + AT_ONCE] for start in range(0, len(order), AT_ONCE))
        parts = [encode(self._model, self._read([flat[doc] for doc in batch], task="document")) for batch in batches]
        inverse = torch.tensor(order).argsort()
        doc_outputs = {name: value[inverse] for name, value in join(parts).items()}
        return own_scores(self._head, query_outputs, grouped(doc_outputs, len(queries)))


class EnsembleTeacher:
    """The weighted sum of the standard scores that the heads of a model folder give each group, as in a fusion by zscore."""

    def __init__(self, name: str, weights: Mapping[Head, float]) -> None:
        encoder = OnnxEncoder(resolve_model(name), heads=[*weights])
        self._scorers = {head: EncoderScorer(encoder, head) for head in weights}
        self._weights = weights

    def __call__(self, queries: Sequence[str], docs: Sequence[Sequence[str]]) -> Tensor:
        """Scores (queries, docs per query). A doc without a score, such as one without tokens, gets the lowest of its group."""
        scores = {head: torch.from_numpy(np.stack(scorer.score(queries, docs))) for head, scorer in self._scorers.items()}
        return ensemble_scores({head: _lowest_for_missing(values) for head, values in scores.items()}, self._weights)


def _lowest_for_missing(scores: Tensor) -> Tensor:
    known = scores.isfinite()
    lowest = scores.where(known, torch.inf).amin(1, keepdim=True)
    return scores.where(known, lowest.where(lowest.isfinite(), 0))


def make_teacher(section: TeacherSection | None) -> Teacher | None:
    """The teacher of a recipe, None if it has none."""
    if section is None:
        return None
    if section.kind == "cross-encoder":
        return CrossEncoderTeacher(section.model)
    if section.kind == "ensemble":
        return EnsembleTeacher(section.model, section.weights)
    return BiEncoderTeacher(section.model, section.head)
