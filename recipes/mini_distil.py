"""Distils dense teachers into the encoder and the dense, multi and lexical heads of a model.

    python -m recipes.mini_distil --model runs/mini/start --pairs runs/mini/pairs.jsonl --vectors runs/mini/teachers \\
        --teachers gte-small all-mpnet-base-v2 granite-embedding-30m-english --to runs/mini/distilled

A pair's score by the teachers is the sum of their centred cosines, each divided by its own temperature; temperatures and the
scale of the sum are those with the least cross-entropy of pairs in random batches. A batch consists of seeds and some of their
nearest neighbours by the teachers, so that the passages of a batch are hard to tell apart. The loss of each head is the
KL divergence of the softmax of its scores in the batch from that of the teachers; dense and multi scores are divided by a
temperature, and the token heads get a share of the labels. The model at the end is the exponential moving average of the
parameters.

One thread per process computes fastest: `torchrun --nproc-per-node 2 -m recipes.mini_distil …` uses two cores. An interrupted
run goes on from its last checkpoint. Needs `pip install 'trilens[train]'` and, to be fast, a processor with bfloat16.
"""

import argparse
import json
import os
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.functional import kl_div, log_softmax, softmax

from recipes.mini_teachers import read_pairs, read_vectors
from trilens.kernels.array_types import Float32s, Int32s
from trilens.train.freezing import freeze, train_only
from trilens.train.grad_cache import encode
from trilens.train.losses.late import mean_maxsim
from trilens.train.model import load_model, stacks_of
from trilens.train.step_inputs import text_reader

TRAINED = ("dense", "lexical", "multi")
EACH, NEIGHBOURS = 4, 24  # pairs of a seed and its neighbours; neighbours to draw from
LENGTHS = (250, 400, 400, 600)  # characters of the passages of a batch
MULTI_TEMPERATURE, LEXICAL_TEMPERATURE, LEXICAL_WEIGHT = 0.05, 15.0, 0.3
LABEL_SHARE = 0.3  # of the targets of token heads
HEAD_RATES = {"dense": 5e-4, "multi": 4e-4, "lexical": 2e-4}
WARM_UP, LOWEST_RATE, WEIGHT_DECAY, CLIP = 30, 0.03, 0.01, 1.0
AVERAGE = 0.995  # decay of the moving average
SAVE_EVERY, LOG_EVERY = 100, 20
TEMPERATURES, SCALES = np.geomspace(0.01, 0.3, 18), np.geomspace(0.15, 1.5, 15)
TUNING_BATCHES, TUNING_SIZE = 8, 256


class JointTeacher:
    """The scaled sum of the scores of several teachers over the pairs that all have vectors of."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        vectors = [[read_vectors(folder, name, side) for side in ("question", "passage")] for name in names]
        self.size = min(len(side) for sides in vectors for side in sides)
        centred = [[side[: self.size] - passages[: self.size].mean(0) for side in (q, passages)] for q, passages in vectors]
        rng = np.random.default_rng(1)
        batches = [rng.choice(self.size, min(TUNING_SIZE, self.size), replace=False) for _ in range(TUNING_BATCHES)]
        self.report: dict[str, float] = {}
        parts = []
        for name, sides in zip(names, centred, strict=True):
            temperature = min(TEMPERATURES, key=lambda t: cross_entropy(sides[0] / t, sides[1], batches))
            self.report[name] = cross_entropy(sides[0] / temperature, sides[1], batches)
            parts.append([side / temperature**0.5 for side in sides])
        joined = [np.concatenate(sides, 1) for sides in zip(*parts, strict=True)]
        scale = min(SCALES, key=lambda s: cross_entropy(s * joined[0], joined[1], batches))
        self.report["joint"] = cross_entropy(scale * joined[0], joined[1], batches)
        self._questions, self._passages = (scale * joined[0]).astype(np.float32), joined[1].astype(np.float32)

    def scores(self, rows: Sequence[int]) -> Tensor:
        """Scores of the questions of some pairs for all their passages."""
        return torch.from_numpy(self._questions[rows] @ self._passages[rows].T)

    def neighbours(self) -> Int32s:
        """The nearest other passages of each passage."""
        unit = self._passages / np.linalg.norm(self._passages, axis=1, keepdims=True)
        nearest = np.zeros((self.size, NEIGHBOURS), np.int32)
        for start in range(0, self.size, 1000):
            similar = unit[start : start + 1000] @ unit.T
            similar[np.arange(len(similar)), np.arange(start, start + len(similar))] = -1
            nearest[start : start + 1000] = np.argpartition(-similar, NEIGHBOURS, axis=1)[:, :NEIGHBOURS]
        return nearest


def cross_entropy(questions: Float32s, passages: Float32s, batches: Sequence[Any]) -> float:
    """Mean cross-entropy of the passages of pairs in batches."""
    scores = [torch.from_numpy(questions[batch] @ passages[batch].T) for batch in batches]
    return float(np.mean([-log_softmax(batch, 1).diagonal().mean() for batch in scores]))


def draw_batch(draw: random.Random, neighbours: Int32s, seeds: int) -> list[int]:
    """Distinct pairs: seeds, each followed by some of its neighbours."""
    rows: dict[int, None] = {}
    while len(rows) < seeds * EACH:
        seed = draw.randrange(len(neighbours))
        rows |= dict.fromkeys([seed, *map(int, draw.sample(neighbours[seed].tolist(), EACH - 1))])
    return [*rows][: seeds * EACH]


def losses(queries: dict[str, Any], docs: dict[str, Any], teacher: Tensor, temperature: float) -> dict[str, Tensor]:
    """The loss of each head."""
    target = softmax(teacher, 1)
    mixed = (1 - LABEL_SHARE) * target + LABEL_SHARE * torch.eye(len(teacher))
    dense = queries["sentence_embedding"].float() @ docs["sentence_embedding"].float().T / temperature
    late = mean_maxsim(queries["multi"].float(), docs["multi"].float(), queries["multi_mask"], docs["multi_mask"])
    lexical = queries["lexical"].float() @ docs["lexical"].float().T
    return {
        "dense": divergence(dense, target) + 0.5 * divergence(dense.T, softmax(teacher.T, 1)),
        "multi": divergence(late / MULTI_TEMPERATURE, mixed),
        "lexical": LEXICAL_WEIGHT * divergence(lexical / LEXICAL_TEMPERATURE, mixed),
    }


def divergence(scores: Tensor, target: Tensor) -> Tensor:
    """Mean KL divergence of the softmax of scores from a target distribution."""
    return kl_div(log_softmax(scores, 1), target, reduction="none").sum(1).mean()


class Averaged:
    """The optimiser's parameters with their exponential moving average, and their checkpoint."""

    def __init__(self, groups: list[dict[str, Any]], steps: int, checkpoint: Path) -> None:
        self.parameters: list[nn.Parameter] = [parameter for group in groups for parameter in group["params"]]
        self._optimizer = torch.optim.AdamW(groups, weight_decay=WEIGHT_DECAY)
        self._schedule = torch.optim.lr_scheduler.LambdaLR(
            self._optimizer, lambda step: min((step + 1) / WARM_UP, max(LOWEST_RATE, (steps - step) / max(1, steps - WARM_UP)))
        )
        self._average = [parameter.detach().clone() for parameter in self.parameters]
        self._checkpoint = checkpoint
        self.step = 0
        if checkpoint.exists():
            state = torch.load(checkpoint, weights_only=True)
            self.step, self._average = state["step"], state["average"]
            self._optimizer.load_state_dict(state["optimizer"])
            self._schedule.load_state_dict(state["schedule"])
            put(self.parameters, state["parameters"])

    def update(self, loss: Tensor) -> None:
        """One optimiser step with the gradients of all processes."""
        self._optimizer.zero_grad()
        torch.autograd.backward(loss)
        if dist.is_initialized():
            gradients = torch.cat([parameter.grad.flatten() for parameter in self.parameters if parameter.grad is not None])
            dist.all_reduce(gradients)
            gradients /= dist.get_world_size()
            start = 0
            for parameter in self.parameters:
                if parameter.grad is not None:
                    size = parameter.numel()
                    parameter.grad.copy_(gradients[start : start + size].view_as(parameter))
                    start += size
        nn.utils.clip_grad_norm_(self.parameters, CLIP)
        self._optimizer.step()
        self._schedule.step()
        self.step += 1
        decay = min(AVERAGE, self.step / (self.step + 9))
        with torch.no_grad():
            for average, parameter in zip(self._average, self.parameters, strict=True):
                average.lerp_(parameter, 1 - decay)

    def save(self) -> None:
        """Write the checkpoint atomically."""
        state = {"step": self.step, "average": self._average, "parameters": [p.detach() for p in self.parameters]}
        state |= {"optimizer": self._optimizer.state_dict(), "schedule": self._schedule.state_dict()}
        unfinished = self._checkpoint.with_suffix(".part")
        torch.save(state, unfinished)
        unfinished.replace(self._checkpoint)

    def take_average(self) -> None:
        """Replace the parameters by their moving average."""
        put(self.parameters, self._average)


def put(parameters: Sequence[nn.Parameter], values: Sequence[Tensor]) -> None:
    """Copy values into parameters."""
    with torch.no_grad():
        for parameter, value in zip(parameters, values, strict=True):
            parameter.copy_(value)


def main() -> None:
    """Train, and save the averaged model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="folder of the starting model, by mini_model.py")
    parser.add_argument("--pairs", type=Path, required=True, help="pairs.jsonl of mini_data.py")
    parser.add_argument("--vectors", type=Path, required=True, help="output of mini_teachers.py")
    parser.add_argument("--teachers", nargs="+", required=True, help="names of the teachers")
    parser.add_argument("--to", type=Path, required=True, help="output folder")
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--seeds", type=int, default=9, help=f"seeds of a batch, each with {EACH - 1} neighbours")
    parser.add_argument("--frozen-layers", type=int, default=6, help="first layers that are not trained")
    parser.add_argument("--rate", type=float, default=7e-5, help="learning rate of the encoder")
    parser.add_argument("--temperature", type=float, default=0.01, help="of dense scores")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(3)
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if world > 1:
        dist.init_process_group("gloo")
    options.to.mkdir(parents=True, exist_ok=True)
    pairs, teacher = read_pairs(options.pairs), JointTeacher(options.vectors, options.teachers)
    neighbours = teacher.neighbours()
    model = load_model(options.model)
    model.eval()  # without dropout
    stack, read = stacks_of(model)["query"], text_reader(model)
    freeze(model, embeddings=True, layers=options.frozen_layers)
    train_only(model, TRAINED, TRAINED)
    groups = [{"params": [p for p in stack.backbone.parameters() if p.requires_grad], "lr": options.rate}]
    groups += [{"params": [*getattr(stack.heads, head).parameters()], "lr": rate} for head, rate in HEAD_RATES.items()]
    state = Averaged([group for group in groups if group["params"]], options.steps, options.to / "checkpoint.pt")
    log, sums, started, first = options.to / "log.jsonl", dict[str, float](), time.monotonic(), state.step
    if rank == 0 and not first:
        log.write_text(json.dumps({"pairs": teacher.size, "cross_entropy": teacher.report}) + "\n", encoding="utf-8")
    while state.step < options.steps:
        draw = random.Random(state.step * world + rank)
        rows, longest = draw_batch(draw, neighbours, options.seeds), random.Random(state.step).choice(LENGTHS)
        texts = {"query": [pairs[row]["question"] for row in rows]}
        texts["document"] = [pairs[row]["passage"][:longest] for row in rows]
        with torch.autocast("cpu", torch.bfloat16):
            queries, docs = (encode(model, read(side, task=task) | {"task": task}) for task, side in texts.items())
        parts = losses(queries, docs, teacher.scores(rows), options.temperature)
        state.update(torch.stack([*parts.values()]).sum())
        for head, part in parts.items():
            sums[head] = sums.get(head, 0.0) + float(part.detach()) / LOG_EVERY
        if state.step % LOG_EVERY == 0 and rank == 0:
            row = {"step": state.step, **{head: round(value, 4) for head, value in sums.items()}}
            row["seconds_per_step"] = round((time.monotonic() - started) / (state.step - first), 2)
            with log.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(row) + "\n")
        if state.step % LOG_EVERY == 0:
            sums.clear()
        if state.step % SAVE_EVERY == 0 and rank == 0:
            state.save()
    state.take_average()
    if rank == 0:
        stack.heads.wanted = tuple(stack.heads.description.heads)
        model.save_pretrained(str(options.to / "model"), create_model_card=False)


if __name__ == "__main__":
    main()
