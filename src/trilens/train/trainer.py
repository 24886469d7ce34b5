"""The trainer of sentence-transformers, fed by `feed.py`, with checkpoints that are complete or do not count."""

import json
from collections.abc import Callable
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
from trilens.train.feed import Feed, KeyBatches, Keys
from trilens.train.keeping import PREFIX, seal
from trilens.train.pretraining import TextFeed

OBJECTIVE_FILE = "objective.safetensors"
FEED_FOLDER = "negatives"


class Trainer(SentenceTransformerTrainer):
    """Trains `loss`, which takes what a feed gives: sides and a teacher's scores."""

    def __init__(
        self,
        model: SentenceTransformer,
        args: SentenceTransformerTrainingArguments,
        loss: nn.Module,
        feed: Feed | TextFeed,
        batches: KeyBatches,
        keys: Keys,
        **options: Any,
    ) -> None:
        self.feed, self.batches = feed, batches
        super().__init__(model=model, args=args, train_dataset=keys, loss=loss, data_collator=collate, **options)
        self.remove_callback(PrinterCallback)  # standard output is for results

    def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
        """Nothing: the card of a run is written from its recipe and its log."""

    def _build_dataloader(self, dataset: Any, batch_size: int, dataset_kind: str) -> DataLoader[int]:
        return DataLoader(dataset, batch_sampler=self.batches, collate_fn=self.data_collator, num_workers=0)

    def compute_loss(
        self, model: nn.Module, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Draw and read the texts, then the sum of the parts of the loss."""
        loss = self.loss
        if loss.model is not model:
            loss = self.override_model_in_loss(loss, model)
        loss.step = self.state.global_step + 1
        parts = loss(*self.feed.sides(inputs["keys"]))
        self.track_loss_components(parts)
        total = torch.stack(list(parts.values())).sum()
        return (total, {}) if return_outputs else total

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        # Without the card that sentence-transformers would write, which describes another way to use the model.
        self.model.save_pretrained(output_dir or self.args.output_dir, create_model_card=False)

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        super()._save_checkpoint(model, trial)
        if self.args.should_save:
            folder = Path(self._get_output_dir(trial)) / f"{PREFIX}{self.state.global_step}"
            save_file(own_parameters(self.loss), folder / OBJECTIVE_FILE)
            self.feed.save(folder / FEED_FOLDER)
            seal(folder)

    def _load_best_model(self) -> None:
        # That of sentence-transformers goes on with the last model where the best cannot be read.
        self._load_from_checkpoint(self.state.best_model_checkpoint)

    def _load_from_checkpoint(self, checkpoint_path: str, *rest: Any) -> None:
        super()._load_from_checkpoint(checkpoint_path)
        own = load_file(Path(checkpoint_path) / OBJECTIVE_FILE)
        self.loss.load_state_dict(own, strict=False)
        self.feed.load(Path(checkpoint_path) / FEED_FOLDER)


def collate(keys: list[int]) -> dict[str, Tensor]:
    """Nothing but the keys: see `feed.py`."""
    return {"keys": torch.tensor(keys)}


def own_parameters(loss: nn.Module) -> dict[str, Tensor]:
    """What a loss learns beside the model, such as RetroMAE's decoder."""
    return {name: value.contiguous() for name, value in loss.state_dict().items() if not name.startswith("model.")}


class StopOnNan(TrainerCallback):
    """Refuses to go on with gradients that are not numbers: the optimiser would make all weights so."""

    def on_pre_optimizer_step(
        self, args: Any, state: TrainerState, control: TrainerControl, model: nn.Module, **others: Any
    ) -> None:
        """Before the weights change."""
        for name, parameter in model.named_parameters():
            if parameter.grad is not None and not torch.isfinite(parameter.grad).all():
                raise TrainingFailed(
                    f"the gradient of {name} is not finite after step {state.global_step}; nothing was changed by it: lower "
                    "the learning rate or the clip, or use bfloat16 instead of float16, and go on from the last checkpoint"
                )


class Log(TrainerCallback):
    """Writes losses and measures to `log.jsonl`, and nothing twice: what a killed run wrote after its last checkpoint goes."""

    def __init__(self, file: Path, report: Callable[[int, dict[str, float]], None]) -> None:
        self._file, self._report = file, report
        self._before, self._start = 0.0, perf_counter()

    @property
    def seconds(self) -> float:
        """How long the run took, over all its parts; what is done again after a kill counts once."""
        return self._before + perf_counter() - self._start

    def on_train_begin(self, args: Any, state: TrainerState, control: TrainerControl, **others: Any) -> None:
        """Leave out what comes after the step to go on from."""
        kept = [row for row in read_log(self._file) if row["step"] <= state.global_step] if state.global_step else []
        self._file.write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
        if kept:
            self._before, self._start = kept[-1].get("seconds", 0.0), perf_counter()

    def on_log(self, args: Any, state: TrainerState, control: TrainerControl, logs: dict[str, float], **others: Any) -> None:
        """One line."""
        if not state.is_world_process_zero:
            return
        row = {name: value for name, value in logs.items() if name not in UNINTERESTING}
        if row:
            row = {"step": state.global_step} | row | {"seconds": round(self.seconds, 1)}
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        self._report(state.global_step, logs)

    def on_step_end(self, args: Any, state: TrainerState, control: TrainerControl, **others: Any) -> None:
        """For a progress bar; and a line at each checkpoint, as losses are means since the line before."""
        self._report(state.global_step, {})
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
    """The lines of a log; the last one may be cut off where a process was killed."""
    rows = []
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        try:
            rows.append(json.loads(line))
        except ValueError:
            break
    return rows


class Measure(BaseEvaluator):
    """A function of the model as the evaluator that the trainer calls."""

    def __init__(self, function: Callable[[SentenceTransformer], dict[str, float]], primary: str) -> None:
        super().__init__()
        self._function = function
        self.primary_metric = primary

    def __call__(self, model: SentenceTransformer, *args: Any, **options: Any) -> dict[str, float]:
        return self._function(model)
