"""The contrastive training task: objectives over queries, positives and hard negatives."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from sentence_transformers import SentenceTransformer
from transformers import TrainerCallback, TrainerControl, TrainerState

from trilens.datasets.answers import AnswerKind
from trilens.kernels.array_types import Int64s
from trilens.train.data.examples import Examples
from trilens.train.data.mixture import Mixture
from trilens.train.encoder import TorchEncoder
from trilens.train.freezing import train_only
from trilens.train.model import description_of
from trilens.train.negatives.samplers import BagSampler, TableSampler
from trilens.train.objectives import Objectives
from trilens.train.recipe import ModelSection, NegativesSection, Recipe
from trilens.train.state_cache import StateCache
from trilens.train.step_inputs import ContrastiveInputs, TextReader, text_reader
from trilens.train.teacher import make_teacher
from trilens.train.trainer import TrainingTask

CHARACTERS_PER_TOKEN = 4


def contrastive_task(recipe: Recipe, model: SentenceTransformer, data: Mixture, folder: Path) -> TrainingTask:
    """The task of a recipe with objectives; `folder` stores cached token states."""
    loss = Objectives(model, recipe.objectives, recipe.batch.sub_batch)
    train_only(model, sorted(loss.trained), sorted(loss.heads))
    sampler = _sampler(recipe, model, data.examples)
    read = _reader(recipe.model, model, data.examples, folder)
    callbacks: list[TrainerCallback] = []
    if recipe.negatives.source == "refresh" and isinstance(sampler, TableSampler):
        known = read.known if isinstance(read, StateCache) else None
        encoder = TorchEncoder(model, heads=[recipe.negatives.lens], known=known)
        callbacks.append(RefreshNegatives(sampler, encoder, recipe.negatives))
    teacher = make_teacher(recipe.teacher)
    inputs = ContrastiveInputs(data.examples, read, sampler, recipe.negatives.count, recipe.run.seed, teacher)
    return TrainingTask(loss, inputs, data.order, _lengths(data.examples, model), data.examples.groups(), callbacks)


class RefreshNegatives(TrainerCallback):
    """Searches negatives with the model in training every `every` steps."""

    def __init__(self, sampler: TableSampler, encoder: TorchEncoder, section: NegativesSection) -> None:
        self._sampler, self._encoder, self._section = sampler, encoder, section

    def on_step_end(self, args: Any, state: TrainerState, control: TrainerControl, **others: Any) -> None:
        """Refresh the table, before a checkpoint of this step is written."""
        section = self._section
        if state.global_step % section.every == 0:
            self._sampler.refresh(self._encoder, section.lens, section.depth, section.skip, _answer_kind(section))


def _sampler(recipe: Recipe, model: SentenceTransformer, examples: Examples) -> TableSampler | BagSampler:
    section = recipe.negatives
    if section.source == "bag":
        return BagSampler(examples, TorchEncoder(model), section.depth, _answer_kind(section), recipe.run.seed)
    return TableSampler(examples, recipe.run.seed, least=section.count)


def _answer_kind(section: NegativesSection) -> AnswerKind | None:
    return "string" if section.answers else None


def _reader(section: ModelSection, model: SentenceTransformer, examples: Examples, folder: Path) -> TextReader:
    """A reader of texts; if layers are frozen and cached, computes the cached states first."""
    if not section.freeze and not section.cache_states:
        return text_reader(model)
    rank = os.environ.get("RANK", "0")  # one cache per process
    cache = StateCache(model, folder / f"states-{rank}", None if section.freeze else section.freeze_layers)
    cache.add("query", (examples.query(example) for example in range(len(examples))))
    cache.add("document", (examples.passage(number) for number in range(examples.passage_count)))
    return cache


def _lengths(examples: Examples, model: SentenceTransformer) -> Int64s:
    """Estimated tokens of the longest text of each example, at four characters per token."""
    description = description_of(model)
    longest = max(description.max_doc_tokens, description.max_query_tokens)
    sizes = [
        max(len(examples.query(example)), *(len(examples.passage(int(number))) for number in examples.positives(example)))
        for example in range(len(examples))
    ]
    return np.minimum(np.array(sizes, np.int64) // CHARACTERS_PER_TOKEN + 2, longest)
