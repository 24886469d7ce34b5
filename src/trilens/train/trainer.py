"""`Trainer`: the sentence-transformers trainer for a `TrainingTask`, with complete checkpoints and a log."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.base.evaluation import BaseEvaluator
from torch import Tensor, nn
from torch.utils.data import DataLoader
from transformers import PrinterCallback, TrainerCallback, TrainerControl, TrainerState

from trilens.errors import TrainingFailed
from trilens.kernels.array_types import Int64s
from trilens.train.checkpointing import PREFIX, seal
from trilens.train.key_batches import ExampleKeys, KeyBatchSampler, Order
from trilens.train.ragged_lists import RaggedLists
from trilens.train.step_inputs import StepInputs

OBJECTIVE_FILE = "objective.safetensors"
INPUTS_FOLDER = "negatives"


@dataclass(frozen=True)
class TrainingTask:
    """The loss of a run and the examples it is computed on.

    `loss` takes the result of `inputs.sides`. `order` gives the examples of each epoch, `lengths` their estimated tokens;
    examples that share a key of `groups` must not share a step. `callbacks` are specific to the task.
    """

    loss: nn.Module
    inputs: StepInputs
    order: Order
    lengths: Int64s
    groups: RaggedLists | None
    callbacks: list[TrainerCallback]


class Trainer(SentenceTransformerTrainer):
    """Trains the loss of a task on the batches of a sampler."""

    def __init__(
        self,
        model: SentenceTransformer,
        args: SentenceTransformerTrainingArguments,
        task: TrainingTask,
        batches: KeyBatchSampler,
        keys: ExampleKeys,
        **options: Any,
    ) -> None:
        self.step_inputs, self.batches = task.inputs, batches
        super().__init__(model=model, args=args, train_dataset=keys, loss=task.loss, data_collator=collate, **options)
        self.remove_callback(PrinterCallback)  # standard output is for results

    def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
        """Do nothing: the model card is written from the recipe and the result."""

    def _build_dataloader(self, dataset: Any, batch_size: int, dataset_kind: str) -> DataLoader[int]:
        return DataLoader(dataset, batch_sampler=self.batches, collate_fn=self.data_collator, num_workers=0)

    def compute_loss(
        self, model: nn.Module, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Draw the texts of the step and sum the loss terms."""
        loss = self.loss
        if loss.model is not model:
            loss = self.override_model_in_loss(loss, model)
        loss.step = self.state.global_step + 1
        terms = loss(*self.step_inputs.sides(inputs["keys"]))
        self.track_loss_components(terms | loss.accuracies)
        total = torch.stack(list(terms.values())).sum()
        return (total, {}) if return_outputs else total

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        # Without the model card of sentence-transformers, which describes another way to use the model.
        self.model.save_pretrained(output_dir or self.args.output_dir, create_model_card=False)

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        super()._save_checkpoint(model, trial)
        if self.args.should_save:
            folder = Path(self._get_output_dir(trial)) / f"{PREFIX}{self.state.global_step}"
            save_file(own_parameters(self.loss), folder / OBJECTIVE_FILE)
            self.step_inputs.save(folder / INPUTS_FOLDER)
            seal(folder)

    def _load_best_model(self) -> None:
        # The base class silently keeps the last model if the best one cannot be read.
        self._load_from_checkpoint(self.state.best_model_checkpoint)

    def _load_from_checkpoint(self, checkpoint_path: str, *rest: Any) -> None:
        super()._load_from_checkpoint(checkpoint_path)
        self.loss.load_state_dict(load_file(Path(checkpoint_path) / OBJECTIVE_FILE), strict=False)
        self.step_inputs.load(Path(checkpoint_path) / INPUTS_FOLDER)


def collate(keys: list[int]) -> dict[str, Tensor]:
    """The keys of a batch: texts are drawn in `compute_loss`."""
    return {"keys": torch.tensor(keys)}


def own_parameters(loss: nn.Module) -> dict[str, Tensor]:
    """The parameters of a loss that do not belong to the model, such as RetroMAE's decoder."""
    return {name: value.contiguous() for name, value in loss.state_dict().items() if not name.startswith("model.")}


class StopOnNan(TrainerCallback):
    """Stops the run on non-finite gradients, before the optimiser spreads them to all weights."""

    def on_pre_optimizer_step(
        self, args: Any, state: TrainerState, control: TrainerControl, model: nn.Module, **others: Any
    ) -> None:
        """Check all gradients before the weights change."""
        for name, parameter in model.named_parameters():
            if parameter.grad is not None and not torch.isfinite(parameter.grad).all():
                raise TrainingFailed(
                    f"the gradient of {name} is not finite after step {state.global_step}; the weights are unchanged: lower "
                    "the learning rate or the clip, or use bfloat16 instead of float16, and resume from the last checkpoint"
                )


class TrainingLog(TrainerCallback):
    """Writes losses and dev metrics to `log.jsonl`; a resumed run drops lines after its checkpoint, so none is repeated."""

    def __init__(self, file: Path, report: Callable[[int, dict[str, float]], None]) -> None:
        self._file, self._report = file, report
        self._before, self._start = 0.0, perf_counter()

    @property
    def seconds(self) -> float:
        """Duration of the run over all resumptions; steps repeated after an interruption count once."""
        return self._before + perf_counter() - self._start

    def on_train_begin(self, args: Any, state: TrainerState, control: TrainerControl, **others: Any) -> None:
        """Drop the lines after the step to resume from."""
        kept = [row for row in read_log(self._file) if row["step"] <= state.global_step] if state.global_step else []
        self._file.write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
        if kept:
            self._before, self._start = kept[-1].get("seconds", 0.0), perf_counter()

    def on_log(self, args: Any, state: TrainerState, control: TrainerControl, logs: dict[str, float], **others: Any) -> None:
        """Append a line."""
        if not state.is_world_process_zero:
            return
        row = {name: value for name, value in logs.items() if name not in UNINTERESTING}
        if row:
            row = {"step": state.global_step} | row | {"seconds": round(self.seconds, 1)}
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        self._report(state.global_step, logs)

    def on_step_end(self, args: Any, state: TrainerState, control: TrainerControl, **others: Any) -> None:
        """Report progress, and log at each checkpoint, because losses are averages since the previous line.

        The last step is evaluated even if it is no multiple of `dev.every`.
        """
        self._report(state.global_step, {})
        if args.eval_strategy != "no" and state.global_step >= state.max_steps:
            control.should_evaluate = True
        if control.should_save:
            control.should_log = True


UNINTERESTING = {
    "epoch",
    "total_flos",
    "train_loss",
    "train_runtime",
    "eval_runtime",
    "eval_samples_per_second",
    "eval_steps_per_second",
    "train_samples_per_second",
    "train_steps_per_second",
}


def read_log(file: Path) -> list[dict[str, float]]:
    """The lines of a log, up to a line truncated by an interruption."""
    rows = []
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        try:
            rows.append(json.loads(line))
        except ValueError:
            break
    return rows


class DevEvaluator(BaseEvaluator):
    """Wraps a function from model to dev metrics as the evaluator of the trainer."""

    def __init__(self, function: Callable[[SentenceTransformer], dict[str, float]], primary: str) -> None:
        super().__init__()
        self._function = function
        self.primary_metric = primary

    def __call__(self, model: SentenceTransformer, *args: Any, **options: Any) -> dict[str, float]:
        return self._function(model)
