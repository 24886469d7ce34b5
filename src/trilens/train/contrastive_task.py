"""The contrastive training task: objectives over queries, positives and hard negatives."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from sentence_transformers import SentenceTransformer
from transformers import TrainerCallback, TrainerControl, TrainerState

from trilens.kernels.array_types import Int64s
from trilens.train.data.examples import Examples
from trilens.train.data.mixture import Mixture
from trilens.train.encoder import TorchEncoder
from trilens.train.freezing import train_only
from trilens.train.model import description_of
from trilens.train.negatives.negative_table import NegativeTable, mined_table
from trilens.train.negatives.samplers import (
    BagSampler,
    MixedSampler,
    NegativeSampler,
    RandomSampler,
    RefreshSampler,
    TableSampler,
)
from trilens.train.negatives.sources import Bag, Mined, Random, Refreshed
from trilens.train.objectives import Objectives
from trilens.train.recipe import ModelSection, Recipe
from trilens.train.state_cache import StateCache
from trilens.train.step_inputs import ContrastiveInputs, TextReader, text_reader
from trilens.train.teacher import make_teacher
from trilens.train.trainer import TrainingTask

CHARACTERS_PER_TOKEN = 4


def contrastive_task(recipe: Recipe, model: SentenceTransformer, data: Mixture, folder: Path) -> TrainingTask:
    """The task of a recipe with objectives; `folder` stores cached token states."""
    loss = Objectives(model, recipe.objectives, recipe.batch.sub_batch)
    train_only(model, sorted(loss.trained), sorted(loss.heads))
    samplers = [
        (make_sampler(recipe, place, model, data.examples, folder), source) for place, source in enumerate(recipe.negatives)
    ]
    read = _reader(recipe.model, model, data.examples, folder)
    known = read.known if isinstance(read, StateCache) else None
    callbacks: list[TrainerCallback] = [
        RefreshNegatives(sampler, TorchEncoder(model, heads=[source.lens], known=known), source)
        for sampler, source in samplers
        if isinstance(sampler, RefreshSampler) and isinstance(source, Refreshed)
    ]
    negatives = MixedSampler(data.examples, [(sampler, source.count) for sampler, source in samplers], recipe.run.seed)
    inputs = ContrastiveInputs(data.examples, read, negatives, recipe.run.seed, make_teacher(recipe.teacher))
    return TrainingTask(loss, inputs, data.order, _lengths(data.examples, model), data.examples.groups(), callbacks)


class RefreshNegatives(TrainerCallback):
    """Searches negatives with the model in training every `every` steps."""

    def __init__(self, sampler: RefreshSampler, encoder: TorchEncoder, source: Refreshed) -> None:
        self._sampler, self._encoder, self._source = sampler, encoder, source

    def on_step_end(self, args: Any, state: TrainerState, control: TrainerControl, **others: Any) -> None:
        """Refresh the table, before a checkpoint of this step is written."""
        source = self._source
        if state.global_step % source.every == 0:
            self._sampler.refresh(self._encoder, source.lens, source.depth, source.skip, source.answer_kind)


def make_sampler(recipe: Recipe, place: int, model: Any, examples: Examples, folder: Path) -> NegativeSampler:
    """The sampler of the negatives at this place of the recipe."""
    source, seed = recipe.negatives[place], recipe.run.seed
    if isinstance(source, Bag):
        return BagSampler(examples, TorchEncoder(model), source.depth, source.answer_kind, seed)
    if isinstance(source, Refreshed):
        return RefreshSampler(examples, seed, least=source.count)
    if isinstance(source, Random):
        return RandomSampler(examples, seed)
    if isinstance(source, Mined):
        return TableSampler(_mined(source, examples, seed, folder / f"mined-{place}-{_rank()}"))
    return TableSampler(NegativeTable.of_given(examples, seed, least=source.count))


def _mined(source: Mined, examples: Examples, seed: int, folder: Path) -> NegativeTable:
    """The table of mined negatives; a resumed run reads it."""
    if folder.exists():
        return NegativeTable.load(folder)
    found_by = (source.lens, source.model, source.depth + source.skip)
    first, answers = source.skip + 1, source.answer_kind
    table = mined_table(examples, *found_by, first=first, least=source.count, answers=answers, seed=seed)
    table.save(folder)
    return table


def _rank() -> str:
    """The number of this process: each has its own files."""
    return os.environ.get("RANK", "0")


def _reader(section: ModelSection, model: SentenceTransformer, examples: Examples, folder: Path) -> TextReader:
    """A reader of texts; if layers are frozen and cached, computes the cached states first."""
    if not section.freeze and not section.cache_states:
        return text_reader(model)
    cache = StateCache(model, folder / f"states-{_rank()}", None if section.freeze else section.freeze_layers)
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
