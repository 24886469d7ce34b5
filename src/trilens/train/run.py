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
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainingArguments
from transformers import EarlyStoppingCallback, TrainerCallback, set_seed
from transformers.utils import logging as transformers_logging

from trilens.errors import BadInput
from trilens.train import dev as measuring
from trilens.train.card import write_card
from trilens.train.curves import draw_curves
from trilens.train.data.examples import Examples
from trilens.train.data.sources import read_examples
from trilens.train.encoder import TorchEncoder
from trilens.train.feed import Feed, Given, KeyBatches, Keys, Negatives
from trilens.train.keeping import last_complete
from trilens.train.model import build_model, freeze, set_wanted
from trilens.train.negatives.found import BagNegatives, Refresh, RefreshedNegatives
from trilens.train.objectives import Objectives
from trilens.train.pretraining import RetroMaeLoss, TextFeed
from trilens.train.recipe import Recipe, as_yaml
from trilens.train.teacher import make_teacher
from trilens.train.trainer import Log, Measure, StopOnNan, Trainer

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
    start = perf_counter()
    _claim(recipe, folder)
    set_seed(recipe.run.seed)
    examples, dev = _data(recipe)
    model = _model(recipe)
    heads = list(recipe.model.heads) + (["tokens"] if "sparse" in recipe.model.heads else [])
    primary = f"{recipe.dev.head or recipe.model.heads[0]}:{recipe.dev.measure}"

    def measure(trained: SentenceTransformer) -> dict[str, float]:
        found = measuring.measure(TorchEncoder(trained), dev, heads)
        if primary not in found:
            raise BadInput(f"dev.measure is {recipe.dev.measure!r}; expected one of {sorted(measuring.NAMES.values())}")
        return found

    checkpoint = last_complete(folder)
    arguments = _arguments(recipe, folder, primary, measure_first=checkpoint is None)
    trainer = _trainer(recipe, arguments, model, examples, Measure(measure, primary), report)
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    return _finish(recipe, folder, trainer, measure(trainer.model), perf_counter() - start)


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


def _data(recipe: Recipe) -> tuple[Examples, measuring.DevSet]:
    examples = read_examples(recipe.data.sources, seed=recipe.run.seed)
    part = recipe.dev
    if part.source is not None:
        held = read_examples([part.source], seed=recipe.run.seed)
    else:
        examples, held = examples.hold_out(part.hold_out, recipe.run.seed)
    if recipe.data.limit is not None:
        examples = examples.sample(recipe.data.limit, recipe.run.seed)
    return examples, measuring.DevSet.of(held, part.passages, recipe.run.seed)


def _model(recipe: Recipe) -> SentenceTransformer:
    part = recipe.model
    given = part.model_dump(
        exclude={"backbone", "heads", "towers", "freeze_embeddings", "freeze_layers", "gradient_checkpointing"}
    )
    model = build_model(
        part.backbone,
        part.heads,
        towers=part.towers,
        name=recipe.name,
        **{name: getattr(part, name) for name, value in given.items() if value is not None},
    )
    freeze(model, embeddings=part.freeze_embeddings, layers=part.freeze_layers)
    if part.gradient_checkpointing:
        model.gradient_checkpointing_enable()
    return model


def _trainer(
    recipe: Recipe,
    arguments: SentenceTransformerTrainingArguments,
    model: SentenceTransformer,
    examples: Examples,
    measure: Measure,
    report: Report,
) -> Trainer:
    run, world = recipe.run, arguments.world_size
    callbacks: list[TrainerCallback] = [StopOnNan(), Log(Path(arguments.output_dir) / "log.jsonl", report)]
    if recipe.dev.patience:
        callbacks.append(EarlyStoppingCallback(recipe.dev.patience))
    if recipe.retromae is not None:
        backbone = model[0].auto_model
        loss: Any = RetroMaeLoss(model, backbone)
        tokenizer = model.tokenizer.backend_tokenizer
        longest = model[1].description.max_doc_tokens
        feed: Any = TextFeed(examples, tokenizer, longest, recipe.retromae.encoder_mask, run.seed)
        set_wanted(model, frozenset())
        lengths, groups = np.full(examples.passage_count, longest), []
    else:
        loss = Objectives(model, recipe.objectives, recipe.batch.sub_batch)
        set_wanted(model, loss.heads)
        negatives, more = _negatives(recipe, model, examples)
        callbacks += more
        feed = Feed(examples, model.preprocess, negatives, recipe.negatives.count, run.seed, make_teacher(recipe.teacher))
        lengths, groups = _lengths(examples, model), examples.keys()
    batches = KeyBatches(
        lengths,
        groups,
        run.steps * run.accumulate * world,
        world,
        run.seed,
        size=recipe.batch.sizes or recipe.batch.size,
        buckets=recipe.batch.buckets,
    )
    keys = Keys(run.steps * run.accumulate * world + 1, len(lengths))
    return Trainer(model, arguments, loss, feed, batches, keys, evaluator=measure, callbacks=callbacks)


def _negatives(recipe: Recipe, model: SentenceTransformer, examples: Examples) -> tuple[Negatives, list[TrainerCallback]]:
    part = recipe.negatives
    if part.source == "given":
        return Given(examples, recipe.run.seed), []
    if part.source == "bag":
        return BagNegatives(examples, TorchEncoder(model), part, recipe.run.seed), []
    found = RefreshedNegatives(examples, recipe.run.seed)
    return found, [Refresh(found, TorchEncoder(model), part)]


def _lengths(examples: Examples, model: SentenceTransformer) -> Any:
    """About how many tokens the longest text of each example has: its characters, at four to a token."""
    longest = model[1].description.max_doc_tokens
    return np.minimum(examples.characters() // 4 + 2, longest)


def _arguments(recipe: Recipe, folder: Path, primary: str, measure_first: bool) -> SentenceTransformerTrainingArguments:
    run, cuda = recipe.run, torch.cuda.is_available()
    auto = "bfloat16" if cuda and torch.cuda.is_bf16_supported() else "float32"
    precision = auto if run.precision == "auto" else run.precision
    if precision == "float16" and not cuda:
        raise BadInput("run.precision is 'float16', but there is no GPU; expected 'auto', 'float32' or 'bfloat16'")
    measured = recipe.dev.every is not None
    heads = "|".join(head for head in recipe.model.heads if head != "dense")
    rates = {rf"({heads})\.(linear|norm)\.": run.head_learning_rate} if heads and run.head_learning_rate else {}
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
        ddp_backend=None if cuda else "gloo",
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
    first = next(row for row in trainer.state.log_history if any(":" in name for name in row))
    before = {name.removeprefix("eval_"): value for name, value in first.items() if ":" in name}
    target = folder / "model"
    result = Result(recipe.name, str(target), before, after, trainer.state.global_step, trainer.state.best_global_step, seconds)
    if trainer.is_world_process_zero():
        shutil.rmtree(target, ignore_errors=True)
        trainer.model.save_pretrained(str(target))
        (folder / "result.json").write_text(json.dumps(asdict(result), indent=1) + "\n", encoding="utf-8")
        draw_curves(folder / "log.jsonl", folder / "curves.png", recipe.name)
        write_card(recipe, result, folder)
    return result
