"""A training run from a recipe: builds the parts, trains or goes on, and leaves a model, a log, curves and a card.

runs/NAME/recipe.yaml   as it was run, with all defaults
         /log.jsonl     losses and measures by step
         /curves.png    the same as a picture
         /checkpoint-N  the last one and the best one
         /model         the best model, for `trilens export`, sentence-transformers or another recipe
         /result.json   measures before and after, seconds
         /README.md     the model card
"""

import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainingArguments
from tokenizers import Tokenizer
from torch import nn
from transformers import EarlyStoppingCallback, TrainerCallback, TrainerControl, TrainerState, set_seed
from transformers.utils import logging as transformers_logging

from trilens.encode.folder import Head, ModelDescription
from trilens.errors import BadInput
from trilens.text.answers import AnswerKind
from trilens.train import dev as measuring
from trilens.train.build import build_model, with_heads
from trilens.train.card import write_card
from trilens.train.checkpoints import load_checkpoint
from trilens.train.curves import draw_curves
from trilens.train.data.examples import Examples
from trilens.train.data.mixture import Mixture
from trilens.train.data.sources import read_examples
from trilens.train.encoder import TorchEncoder
from trilens.train.feed import Feed, KeyBatches, Keys, Read, reader
from trilens.train.fitting import fit_heads
from trilens.train.freezing import freeze, recompute_layers
from trilens.train.keeping import last_complete
from trilens.train.model import description_of, stacks_of
from trilens.train.negatives.drawing import FromBags, FromTable
from trilens.train.objectives import Objectives
from trilens.train.pretraining import RetroMaeLoss, TextFeed
from trilens.train.recipe import ModelPart, NegativesPart, Recipe, as_yaml
from trilens.train.states import StateCache
from trilens.train.teacher import make_teacher
from trilens.train.trainer import Log, Measure, StopOnNan, Trainer

CHARACTERS_PER_TOKEN = 4

Report = Callable[[int, dict[str, float]], None]


@dataclass(frozen=True, slots=True)
class Result:
    """Measures by `head:measure`, and where the model is."""

    name: str
    model: str
    before: dict[str, float]
    after: dict[str, float]
    steps: int
    best_step: int | None
    seconds: float


def train(recipe: Recipe, folder: Path, report: Report = lambda step, values: None) -> Result:
    """Train, or go on where a run in the folder stopped."""
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    log = Log(folder / "log.jsonl", report)
    _claim(recipe, folder)
    set_seed(recipe.run.seed)
    data, dev = _data(recipe)
    model = _model(recipe, data.examples)
    heads: list[measuring.Searched] = [*recipe.model.heads]
    if "sparse" in heads:
        heads.append("tokens")
    if recipe.dev.retrieved:
        heads.append("retrieved")
    primary = f"{recipe.dev.head or recipe.model.heads[0]}:{recipe.dev.measure}"

    def measure(trained: SentenceTransformer) -> dict[str, float]:
        found = measuring.measure(TorchEncoder(trained), dev, heads, recipe.dev.retrieved or 0)
        if primary not in found:
            raise BadInput(f"dev.measure is {recipe.dev.measure!r}; expected one of {sorted(measuring.NAMES.values())}")
        return found

    checkpoint = last_complete(folder)
    arguments = _arguments(recipe, folder, primary, measure_first=checkpoint is None)
    trainer = _trainer(recipe, arguments, model, data, Measure(measure, primary), [StopOnNan(), log])
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    after = measured_best(trainer.state) or measure(trainer.model)
    return _finish(recipe, folder, trainer, after, log.seconds)


def measured_best(state: TrainerState) -> dict[str, float] | None:
    """What the best checkpoint, which is the model at the end, was measured at; None if nothing was measured on the way."""
    rows = [measures(row) for row in state.log_history if row["step"] == state.best_global_step]
    return next((row for row in rows if row), None)


def measures(row: dict[str, float]) -> dict[str, float]:
    """The measures by head in a line of the trainer's log."""
    return {name.removeprefix("eval_"): value for name, value in row.items() if ":" in name}


def _claim(recipe: Recipe, folder: Path) -> None:
    """A folder holds one run; going on needs the very same recipe."""
    text, file = as_yaml(recipe), folder / "recipe.yaml"
    if file.exists():
        if file.read_text(encoding="utf-8") != text:
            raise BadInput(
                f"{folder} holds a run of another recipe; expected the same one to go on: name another folder with --to"
            )
        return
    if folder.exists() and any(folder.iterdir()):
        raise BadInput(f"{folder} is not empty and holds no run; expected an empty folder: name another one with --to")
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def _data(recipe: Recipe) -> tuple[Mixture, measuring.DevSet]:
    part, seed = recipe.dev, recipe.run.seed
    data = read_examples(recipe.data.sources, seed)
    if part.source is not None:
        held = read_examples([part.source], seed).examples
    else:
        data, held = data.hold_out(part.hold_out)
    if recipe.data.limit is not None and recipe.data.limit < len(data.examples):
        chosen = np.random.default_rng(seed).choice(len(data.examples), recipe.data.limit, replace=False)
        data = Mixture(data.examples.take(np.sort(chosen)).narrowed(), data.weights, seed, data.reports)
    return data, measuring.DevSet.of(held, part.passages, seed)


def starting_model(recipe: Recipe) -> SentenceTransformer:
    """What a recipe begins with: its encoder or checkpoint, with heads that have learned nothing of the data."""
    part = recipe.model
    changes = part.model_dump(include=set(ModelDescription.model_fields) - {"heads"}, exclude_none=True)
    changes["name"] = recipe.name
    if part.checkpoint is not None:
        return with_heads(load_checkpoint(part.checkpoint), part.heads, changes, recipe.run.seed)
    return build_model(part.start, part.heads, part.towers, changes, recipe.run.seed, part.layers)


def _model(recipe: Recipe, examples: Examples) -> SentenceTransformer:
    part, model = recipe.model, starting_model(recipe)
    if part.fit_to:
        fit_heads(model, evenly(examples, part.fit_to), recipe.run.seed)
    freeze(model, embeddings=part.freeze_embeddings, layers=part.freeze_layers)
    if part.freeze:
        for stack in stacks_of(model).values():
            stack.backbone.requires_grad_(False)
    recompute_layers(model, part.gradient_checkpointing)
    return model


def evenly(examples: Examples, count: int) -> list[str]:
    """So many of the passages, evenly spaced."""
    return [examples.passage(number) for number in range(0, examples.passage_count, max(1, examples.passage_count // count))]


def _trainer(
    recipe: Recipe,
    arguments: SentenceTransformerTrainingArguments,
    model: SentenceTransformer,
    data: Mixture,
    measure: Measure,
    callbacks: list[TrainerCallback],
) -> Trainer:
    run = recipe.run
    if recipe.dev.patience:
        callbacks.append(EarlyStoppingCallback(recipe.dev.patience))
    batches = run.steps * run.accumulate * arguments.world_size
    sizes = {"size": recipe.batch.sizes} if recipe.batch.sizes else {"size": recipe.batch.size, "borders": recipe.batch.buckets}
    if recipe.retromae is not None:
        stack = stacks_of(model)["document"]
        train_only(model, (), ())
        loss: nn.Module = RetroMaeLoss(model, stack.backbone.model)
        longest, count = description_of(model).max_doc_tokens, data.examples.passage_count
        feed: Feed | TextFeed = TextFeed(
            data.examples, Tokenizer.from_str(stack.backbone.tokenizer_json), longest, recipe.retromae, run.seed
        )
        plan = KeyBatches(
            lambda epoch: np.arange(count), np.full(count, longest), None, batches, arguments.world_size, run.seed, **sizes
        )
    else:
        loss = Objectives(model, recipe.objectives, recipe.batch.sub_batch)
        train_only(model, sorted(loss.trained), sorted(loss.heads))
        negatives = _negatives(recipe, model, data.examples)
        read = _reader(recipe.model, model, data.examples, Path(arguments.output_dir))
        if recipe.negatives.source == "refresh":
            known = read.known if isinstance(read, StateCache) else None
            callbacks.append(
                Refresh(negatives, TorchEncoder(model, heads=[recipe.negatives.lens], known=known), recipe.negatives)
            )
        feed = Feed(data.examples, read, negatives, recipe.negatives.count, run.seed, make_teacher(recipe.teacher))
        lengths, count = _lengths(data.examples, model), len(data.examples)
        plan = KeyBatches(data.order, lengths, data.examples.groups(), batches, arguments.world_size, run.seed, **sizes)
    keys = Keys(batches + 1, count)
    return Trainer(model, arguments, loss, feed, plan, keys, evaluator=measure, callbacks=callbacks)


def train_only(model: SentenceTransformer, heads: Sequence[Head], computed: Sequence[Head]) -> None:
    """Train these heads; the others stay as they are, and those that are not `computed` cost nothing."""
    for stack in stacks_of(model).values():
        stack.heads.wanted = tuple(computed)
        for head in stack.heads.description.heads:
            getattr(stack.heads, head).requires_grad_(head in heads)


def _reader(part: ModelPart, model: SentenceTransformer, examples: Examples, folder: Path) -> Read:
    """Reads texts, with the states that training leaves as they are; those are computed here and now."""
    if not part.freeze and not part.cache_states:
        return reader(model)
    rank = os.environ.get("RANK", "0")  # each process has its own
    cache = StateCache(model, folder / f"states-{rank}", None if part.freeze else part.freeze_layers)
    cache.add("query", (examples.query(at) for at in range(len(examples))))
    cache.add("document", (examples.passage(number) for number in range(examples.passage_count)))
    return cache


def _negatives(recipe: Recipe, model: SentenceTransformer, examples: Examples) -> FromTable | FromBags:
    part = recipe.negatives
    if part.source == "bag":
        return FromBags(examples, TorchEncoder(model), part.depth, answer_kind(part), recipe.run.seed)
    return FromTable(examples, recipe.run.seed, least=part.count)


def answer_kind(part: NegativesPart) -> AnswerKind | None:
    """How passages with an answer are told."""
    return "string" if part.answers else None


class Refresh(TrainerCallback):
    """Looks for negatives with the model in training every so many steps."""

    def __init__(self, negatives: FromTable | FromBags, encoder: TorchEncoder, part: NegativesPart) -> None:
        self._negatives, self._encoder, self._part = negatives, encoder, part

    def on_step_end(self, args: Any, state: TrainerState, control: TrainerControl, **others: Any) -> None:
        """After every `part.every` steps, before a checkpoint is written."""
        if state.global_step % self._part.every == 0 and isinstance(self._negatives, FromTable):
            part = self._part
            self._negatives.refresh(self._encoder, part.lens, part.depth, part.skip, answer_kind(part))


def _lengths(examples: Examples, model: SentenceTransformer) -> NDArray[np.int64]:
    """About how many tokens the longest text of each example has: its characters, at four to a token."""
    description = description_of(model)
    longest = max(description.max_doc_tokens, description.max_query_tokens)
    sizes = [
        max(len(examples.query(at)), *(len(examples.passage(int(number))) for number in examples.positives(at)))
        for at in range(len(examples))
    ]
    return np.minimum(np.array(sizes, np.int64) // CHARACTERS_PER_TOKEN + 2, longest)


def _arguments(recipe: Recipe, folder: Path, primary: str, measure_first: bool) -> SentenceTransformerTrainingArguments:
    run, cuda = recipe.run, torch.cuda.is_available()
    auto = "bfloat16" if cuda and torch.cuda.is_bf16_supported() else "float32"
    precision = auto if run.precision == "auto" else run.precision
    if precision == "float16" and not cuda:
        raise BadInput("run.precision is 'float16', but there is no GPU; expected 'auto', 'float32' or 'bfloat16'")
    measured = recipe.dev.every is not None
    given = run.head_learning_rate or {}
    by_head = given if isinstance(given, dict) else {head: given for head in recipe.model.heads if head != "dense"}
    rates = {rf"{head}\.(linear|norm|weigh|transform|bias)\b": rate for head, rate in by_head.items()}
    return SentenceTransformerTrainingArguments(
        output_dir=str(folder),
        max_steps=run.steps,
        gradient_accumulation_steps=run.accumulate,
        learning_rate=run.learning_rate,
        learning_rate_mapping=rates,
        warmup_steps=run.warm_up,
        lr_scheduler_type="linear",
        weight_decay=run.weight_decay,
        max_grad_norm=run.clip,
        bf16=precision == "bfloat16",
        fp16=precision == "float16",
        use_cpu=not cuda,
        ddp_backend="gloo" if not cuda and int(os.environ.get("WORLD_SIZE", "1")) > 1 else None,
        ddp_find_unused_parameters=False,
        seed=run.seed,
        eval_strategy="steps" if measured else "no",
        eval_steps=recipe.dev.every,
        eval_on_start=measure_first,
        save_strategy="steps",
        save_steps=run.save_every,
        save_total_limit=2,
        load_best_model_at_end=measured,
        metric_for_best_model=f"eval_{primary}",
        greater_is_better=True,
        logging_steps=run.log_every,
        logging_first_step=True,
        logging_nan_inf_filter=False,
        restore_callback_states_from_checkpoint=True,
        disable_tqdm=True,
        report_to=[],
        remove_unused_columns=False,
        dataloader_pin_memory=cuda,
    )


def _finish(recipe: Recipe, folder: Path, trainer: Trainer, after: dict[str, float], seconds: float) -> Result:
    before = next(row for row in map(measures, trainer.state.log_history) if row)
    target = folder / "model"
    for states in folder.glob("states-*"):
        shutil.rmtree(states)
    result = Result(recipe.name, str(target), before, after, trainer.state.global_step, trainer.state.best_global_step, seconds)
    if trainer.is_world_process_zero():
        shutil.rmtree(target, ignore_errors=True)
        trainer.model.save_pretrained(str(target), create_model_card=False)
        (folder / "result.json").write_text(json.dumps(asdict(result), indent=1) + "\n", encoding="utf-8")
        draw_curves(folder / "log.jsonl", folder / "curves.png", recipe.name)
        write_card(recipe, result, folder)
    return result
