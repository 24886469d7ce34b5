"""`train`: runs a recipe, or resumes it, and writes the model, a log, curves and a model card.

runs/NAME/recipe.yaml   the recipe with all defaults
         /log.jsonl     losses and dev metrics by step
         /curves.png    the same as an image
         /checkpoint-N  the last and the best checkpoint
         /model         the best model, for `trilens export` or another recipe
         /result.json   dev metrics before and after, duration
         /README.md     the model card
"""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainingArguments
from transformers import EarlyStoppingCallback, TrainerCallback, TrainerState, set_seed
from transformers.utils import logging as transformers_logging

from trilens.encode.folder import ModelDescription
from trilens.errors import BadInput
from trilens.train.build import build_model, with_heads
from trilens.train.card import write_card
from trilens.train.checkpointing import last_complete
from trilens.train.checkpoints import load_checkpoint
from trilens.train.contrastive_task import contrastive_task
from trilens.train.cross_model import OUTPUT_LAYERS, cross_model
from trilens.train.cross_task import cross_evaluator, cross_task
from trilens.train.curves import draw_curves
from trilens.train.data.examples import Examples
from trilens.train.data.mixture import Mixture
from trilens.train.data.sources import read_examples
from trilens.train.dev import MEASURES, DevHead, DevSet, by_name, dev_metrics
from trilens.train.encoder import TorchEncoder
from trilens.train.fitting import fit_heads
from trilens.train.freezing import freeze, recompute_layers
from trilens.train.key_batches import ExampleKeys, KeyBatchSampler
from trilens.train.model import stacks_of
from trilens.train.recipe import Recipe, as_yaml
from trilens.train.retromae_task import retromae_task
from trilens.train.trainer import DevEvaluator, StopOnNan, Trainer, TrainingLog, TrainingTask

ReportProgress = Callable[[int, dict[str, float]], None]
"""Called with the step and the values logged at it."""


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """Dev metrics by `head:metric` before and after training, and the path of the model."""

    name: str
    model: str
    before: dict[str, float]
    after: dict[str, float]
    steps: int
    best_step: int | None
    seconds: float


def train(recipe: Recipe, folder: Path, report: ReportProgress = lambda step, values: None) -> TrainingResult:
    """Run a recipe in a folder, or resume its interrupted run there."""
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    log = TrainingLog(folder / "log.jsonl", report)
    _claim(recipe, folder)
    set_seed(recipe.run.seed)
    data, held_out = _data(recipe)
    model, evaluator = _begin(recipe, data.examples, held_out)
    checkpoint = last_complete(folder)
    task = _task(recipe, model, data, folder)
    steps, batches = _batches(recipe, task)
    arguments = _arguments(recipe, folder, steps, evaluator.primary_metric, evaluate_first=checkpoint is None)
    trainer = _trainer(recipe, arguments, model, task, batches, evaluator, log)
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    after = best_metrics(trainer.state) or evaluator(trainer.model)
    return _finish(recipe, folder, trainer, after, log.seconds)


def best_metrics(state: TrainerState) -> dict[str, float] | None:
    """Dev metrics of the best checkpoint; None if no evaluation ran."""
    rows = [logged_metrics(row) for row in state.log_history if row["step"] == state.best_global_step]
    return next((row for row in rows if row), None)


def logged_metrics(row: dict[str, float]) -> dict[str, float]:
    """The dev metrics in a line of the trainer's log."""
    return {name.removeprefix("eval_"): value for name, value in row.items() if ":" in name}


def starting_model(recipe: Recipe) -> SentenceTransformer:
    """The initial model of a recipe: its encoder or checkpoint, with heads not yet fitted to the data."""
    section = recipe.model
    changes = section.model_dump(include=set(ModelDescription.model_fields) - {"heads"}, exclude_none=True, by_alias=True)
    changes["name"] = recipe.name
    if section.checkpoint is not None:
        return with_heads(load_checkpoint(section.checkpoint), section.heads, changes, recipe.run.seed)
    return build_model(section.start, section.heads, section.towers, changes, recipe.run.seed, section.layers)


def _claim(recipe: Recipe, folder: Path) -> None:
    """Create the run folder; an existing one must hold a run of exactly this recipe, or one that failed at once."""
    text, file = as_yaml(recipe), folder / "recipe.yaml"
    if file.exists() and any(entry != file for entry in folder.iterdir()):
        if file.read_text(encoding="utf-8") != text:
            raise BadInput(f"{folder} holds a run of another recipe; expected the same recipe to resume: use another --to")
        return
    if not file.exists() and folder.exists() and any(folder.iterdir()):
        raise BadInput(f"{folder} is not empty and holds no run; expected an empty folder: use another --to")
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def _begin(recipe: Recipe, examples: Examples, held_out: Examples) -> tuple[Any, DevEvaluator]:
    """The model to train, and what measures it on the dev examples."""
    if recipe.cross is not None:
        cross = cross_model(recipe.model, recipe.cross)
        return cross, cross_evaluator(recipe, recipe.cross, cross, held_out)
    model = _model(recipe, examples)
    return model, _evaluator(recipe, DevSet.of(held_out, recipe.dev.passages, recipe.run.seed))


def _data(recipe: Recipe) -> tuple[Mixture, Examples]:
    """The training data, and the dev examples."""
    section, seed = recipe.dev, recipe.run.seed
    data = read_examples(recipe.data.sources, seed)
    if section.source is not None:
        held_out = read_examples([section.source], seed).examples
    else:
        data, held_out = data.hold_out(section.hold_out)
    if recipe.data.limit is not None and recipe.data.limit < len(data.examples):
        sample = np.random.default_rng(seed).choice(len(data.examples), recipe.data.limit, replace=False)
        data = Mixture(data.examples.take(np.sort(sample)).narrowed(), data.weights, seed, data.reports)
    return data, held_out


def _model(recipe: Recipe, examples: Examples) -> SentenceTransformer:
    section, model = recipe.model, starting_model(recipe)
    if section.fit_to:
        fit_heads(model, _spaced_passages(examples, section.fit_to), recipe.run.seed)
    freeze(model, embeddings=section.freeze_embeddings, layers=section.freeze_layers)
    if section.freeze:
        for stack in stacks_of(model).values():
            stack.backbone.requires_grad_(False)
    recompute_layers(model, section.gradient_checkpointing)
    return model


def _spaced_passages(examples: Examples, count: int) -> list[str]:
    """About `count` evenly spaced passages."""
    return [examples.passage(number) for number in range(0, examples.passage_count, max(1, examples.passage_count // count))]


def _evaluator(recipe: Recipe, dev: DevSet) -> DevEvaluator:
    heads: list[DevHead] = [*recipe.model.heads]
    if "sparse" in heads:
        heads.append("tokens")
    if recipe.dev.retrieved:
        heads.append("retrieved")
    (measure,) = by_name([recipe.dev.measure])

    def evaluate(model: SentenceTransformer) -> dict[str, float]:
        return dev_metrics(TorchEncoder(model), dev, heads, recipe.dev.retrieved or 0, [*MEASURES, measure])

    return DevEvaluator(evaluate, f"{recipe.dev.head or recipe.model.heads[0]}:{measure}")


def _task(recipe: Recipe, model: Any, data: Mixture, folder: Path) -> TrainingTask:
    if recipe.retromae is not None:
        return retromae_task(recipe.retromae, model, data, recipe.run.seed)
    if recipe.cross is not None:
        return cross_task(recipe, recipe.cross, model, data, folder)
    return contrastive_task(recipe, model, data, folder)


def _batches(recipe: Recipe, task: TrainingTask) -> tuple[int, KeyBatchSampler]:
    """The number of steps, and the batches that they read."""
    run, world = recipe.run, _processes()
    sizes = {"size": recipe.batch.sizes} if recipe.batch.sizes else {"size": recipe.batch.size, "borders": recipe.batch.buckets}
    sampler = partial(KeyBatchSampler, task.order, task.lengths, task.groups, world=world, seed=run.seed, **sizes)
    per_step = run.accumulate * world
    steps = run.steps or -(-sampler(batches=0).batches_of(run.epochs or 1) // per_step)
    return steps, sampler(batches=steps * per_step)


def _trainer(
    recipe: Recipe,
    arguments: SentenceTransformerTrainingArguments,
    model: Any,
    task: TrainingTask,
    batches: KeyBatchSampler,
    evaluator: DevEvaluator,
    log: TrainingLog,
) -> Trainer:
    keys = ExampleKeys(len(batches) + 1, len(task.lengths))
    callbacks: list[TrainerCallback] = [StopOnNan(), log]
    if recipe.dev.patience:
        callbacks.append(EarlyStoppingCallback(recipe.dev.patience))
    return Trainer(model, arguments, task, batches, keys, evaluator=evaluator, callbacks=[*callbacks, *task.callbacks])


def _processes() -> int:
    """The number of processes of the run, as torchrun tells them."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def _arguments(
    recipe: Recipe, folder: Path, steps: int, primary: str, evaluate_first: bool
) -> SentenceTransformerTrainingArguments:
    run, cuda = recipe.run, torch.cuda.is_available()
    auto = "bfloat16" if cuda and torch.cuda.is_bf16_supported() else "float32"
    precision = auto if run.precision == "auto" else run.precision
    if precision == "float16" and not cuda:
        raise BadInput("run.precision is 'float16', which needs a GPU; expected 'auto', 'float32' or 'bfloat16'")
    evaluated = recipe.dev.every is not None
    head_rate = run.head_learning_rate or {}
    by_head = head_rate if isinstance(head_rate, dict) else {head: head_rate for head in recipe.model.heads if head != "dense"}
    rates = {rf"{head}\.(linear|norm|weigh|transform|bias)\b": rate for head, rate in by_head.items()}
    if recipe.cross is not None and isinstance(head_rate, float):
        rates = {OUTPUT_LAYERS: head_rate}
    return SentenceTransformerTrainingArguments(
        output_dir=str(folder),
        max_steps=steps,
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
        ddp_backend="gloo" if not cuda and _processes() > 1 else None,
        ddp_find_unused_parameters=False,
        seed=run.seed,
        eval_strategy="steps" if evaluated else "no",
        eval_steps=recipe.dev.every,
        eval_on_start=evaluate_first,
        save_strategy="steps",
        save_steps=run.save_every,
        save_total_limit=2,
        load_best_model_at_end=evaluated,
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


def _finish(recipe: Recipe, folder: Path, trainer: Trainer, after: dict[str, float], seconds: float) -> TrainingResult:
    before = next(row for row in map(logged_metrics, trainer.state.log_history) if row)
    target = folder / "model"
    for cached in (*folder.glob("states-*"), *folder.glob("mined-*")):
        shutil.rmtree(cached)
    result = TrainingResult(
        recipe.name, str(target), before, after, trainer.state.global_step, trainer.state.best_global_step, seconds
    )
    if trainer.is_world_process_zero():
        shutil.rmtree(target, ignore_errors=True)
        trainer.model.save_pretrained(str(target), create_model_card=False)
        (folder / "result.json").write_text(json.dumps(asdict(result), indent=1) + "\n", encoding="utf-8")
        draw_curves(folder / "log.jsonl", folder / "curves.png", recipe.name)
        write_card(recipe, result, folder)
    return result
