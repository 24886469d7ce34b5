"""Distils several teachers into the upper half of the encoder and all heads of a model.

    python -m recipes.mini_distil --model runs/mini/start --pairs runs/mini/pairs.jsonl --vectors runs/mini/teachers \\
        --teachers all-mpnet-base-v2=0.4 granite-embedding-30m-english=0.2 --own dense=0.3 multi=0.1 --to runs/mini/distilled

A pair's score by the teachers is the weighted sum of its standard scores by each: the cosines of the dense teachers (output of
`mini_teachers.py`), and the dense and token vectors of the model itself before training. A batch consists of seeds and some of
their nearest neighbours by the dense teachers, so that its passages are hard to tell apart. The loss of each head is the KL
divergence of the softmax of its scores in the batch from that of the teachers, whose sharpness is the one with the least
cross-entropy of pairs. The token heads get a share of the labels. The states after the frozen layers are computed once. The
model at the end is the weighted mean of the starting parameters and the exponential moving average of the trained ones.

One thread per process computes fastest: `torchrun --nproc-per-node 2 -m recipes.mini_distil …` uses two cores. An interrupted
run goes on from its last checkpoint. Needs `pip install 'trilens[train]'` and, to be fast, a processor with bfloat16.
"""

import argparse
import json
import os
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn
from torch.nn.functional import kl_div, log_softmax, softmax
from torch.nn.utils.rnn import pad_sequence

from recipes.mini_teachers import read_pairs, read_vectors
from trilens.kernels.array_types import Float32s, Int32s
from trilens.represent import Multi
from trilens.train.encoder import TorchEncoder
from trilens.train.freezing import freeze, train_only
from trilens.train.grad_cache import Features, encode, join, split
from trilens.train.losses.late import mean_maxsim
from trilens.train.model import load_model, stacks_of
from trilens.train.state_cache import StateCache

TRAINED = ("dense", "multi", "sparse", "lexical")
SPARSE_EVERY = 4  # steps; the vocabulary head costs half as much as the layers
GROUP = 12  # texts encoded together
EACH, NEIGHBOURS = 4, 24  # pairs of a seed and its neighbours; neighbours to draw from
TEMPERATURES = {"multi": 0.05, "sparse": 0.02, "lexical": 15.0}
WEIGHTS = {"dense": 1.0, "multi": 1.0, "sparse": 1.0, "lexical": 0.3}
PASSAGES_TO_QUERIES, PASSAGES_TO_PASSAGES = 0.5, 0.25  # shares of these losses of dense
LABEL_SHARE = 0.3  # of the targets of token heads
HEAD_RATES = {"multi": 3e-4, "sparse": 1e-4, "lexical": 2e-4}
WARM_UP, LOWEST_RATE, WEIGHT_DECAY, CLIP = 30, 0.03, 0.01, 1.0
AVERAGE = 0.995  # decay of the moving average
SAVE_EVERY, LOG_EVERY = 100, 20
SHARPNESS, TUNING_BATCHES, TUNING_SIZE = np.geomspace(0.3, 8, 24), 12, 128
PRECISION = torch.bfloat16


class OwnTeacher:
    """Dense and token vectors of the pairs by the model as it is before training, computed once."""

    def __init__(self, model: SentenceTransformer, cache: StateCache, texts: dict[str, list[str]], folder: Path) -> None:
        encoder = TorchEncoder(model, heads=("dense", "multi"), known=cache.known)
        self.dense, self._multi = list[Float32s](), list[Multi]()
        for task, encode_side in (("query", encoder.encode_queries), ("document", encoder.encode_docs)):
            file = folder / f"{task}.npz"
            if not file.exists():
                with torch.autocast("cpu", PRECISION):
                    side = encode_side(texts[task])
                assert side.dense is not None and side.multi is not None
                unfinished = file.with_suffix(".part.npz")
                np.savez(
                    unfinished,
                    dense=side.dense.vectors,
                    vectors=side.multi.vectors.astype(np.float16),
                    offsets=side.multi.offsets,
                    tokens=side.multi.tokens,
                )
                unfinished.rename(file)
            stored = np.load(file)
            self.dense.append(stored["dense"])
            self._multi.append(Multi(stored["offsets"], stored["vectors"].astype(np.float32), stored["tokens"]))

    def late(self, rows: Sequence[int]) -> Tensor:
        """Mean MaxSim of the questions of some pairs with all their passages."""
        (queries, query_mask), (docs, doc_mask) = (tokens_of(side, rows) for side in self._multi)
        return mean_maxsim(queries, docs, query_mask, doc_mask)


def tokens_of(vectors: Multi, rows: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Token vectors of some texts, padded to the longest, and their mask."""
    texts = [torch.from_numpy(vectors.vectors[vectors.offsets[row] : vectors.offsets[row + 1]]) for row in rows]
    mask = pad_sequence([torch.ones(len(text), dtype=torch.bool) for text in texts], batch_first=True)
    return pad_sequence(texts, batch_first=True), mask


class JointTeacher:
    """The weighted sum of the standard scores of teachers, sharpened so that pairs have the least cross-entropy."""

    def __init__(self, dense: dict[str, list[Float32s]], weights: dict[str, float], own: OwnTeacher) -> None:
        self.size = min(len(side) for sides in dense.values() for side in sides)
        self._own, self._late = own, weights.get("multi", 0.0)
        rng = np.random.default_rng(1)
        batches = [rng.choice(self.size, TUNING_SIZE, replace=False).tolist() for _ in range(TUNING_BATCHES)]
        joined = []
        for name, sides in dense.items():
            questions, passages = (side[: self.size] - sides[1][: self.size].mean(0) for side in sides)
            spread = np.std(np.concatenate([(questions[rows] @ passages[rows].T).ravel() for rows in batches]))
            scale = np.sqrt(weights[name] / spread)
            joined.append((questions * scale, passages * scale))
        self._questions, self._passages = (np.concatenate(sides, 1).astype(np.float32) for sides in zip(*joined, strict=True))
        self._late /= float(torch.cat([own.late(rows).flatten() for rows in batches]).std())
        self._sharpness = 1.0
        scores = [self.scores(rows) for rows in batches]
        found = {float(sharp): np.mean([cross_entropy(sharp * score) for score in scores]) for sharp in SHARPNESS}
        self._sharpness = min(found, key=lambda sharp: found[sharp])
        self.report = {"sharpness": round(self._sharpness, 3), "cross_entropy": round(float(found[self._sharpness]), 4)}

    def scores(self, rows: Sequence[int]) -> Tensor:
        """Scores of the questions of some pairs for all their passages."""
        dense = torch.from_numpy(self._questions[rows] @ self._passages[rows].T)
        return self._sharpness * (dense + self._late * self._own.late(rows) if self._late else dense)

    def passage_scores(self, rows: Sequence[int]) -> Tensor:
        """Scores of the passages of some pairs for each other, by the dense teachers."""
        return self._sharpness * torch.from_numpy(self._passages[rows] @ self._passages[rows].T)

    def neighbours(self) -> Int32s:
        """The nearest other passages of each passage."""
        unit = self._passages / np.linalg.norm(self._passages, axis=1, keepdims=True)
        nearest = np.zeros((self.size, NEIGHBOURS), np.int32)
        for start in range(0, self.size, 1000):
            similar = unit[start : start + 1000] @ unit.T
            similar[np.arange(len(similar)), np.arange(start, start + len(similar))] = -1
            nearest[start : start + 1000] = np.argpartition(-similar, NEIGHBOURS, axis=1)[:, :NEIGHBOURS]
        return nearest


def cross_entropy(scores: Tensor) -> float:
    """Mean cross-entropy of the passage of each question among all in the batch."""
    return float(-log_softmax(scores, 1).diagonal().mean())


def draw_batch(draw: random.Random, neighbours: Int32s, seeds: int) -> list[int]:
    """Distinct pairs: seeds, each followed by some of its neighbours."""
    rows: dict[int, None] = {}
    while len(rows) < seeds * EACH:
        seed = draw.randrange(len(neighbours))
        rows |= dict.fromkeys([seed, *map(int, draw.sample(neighbours[seed].tolist(), EACH - 1))])
    return [*rows][: seeds * EACH]


def encoded(model: SentenceTransformer, side: Features, task: str) -> Features:
    """The head outputs of texts, computed in groups of similar length, so that little is padding."""
    order = side["attention_mask"].sum(1).argsort()
    by_length = {name: value[order] if isinstance(value, Tensor) else value for name, value in side.items()}
    outputs = join([encode(model, group | {"task": task}) for group in split(by_length, GROUP)])
    back = order.argsort()
    return {name: value[back] for name, value in outputs.items()}


def losses(
    queries: dict[str, Any], docs: dict[str, Any], teacher: JointTeacher, rows: Sequence[int], temperature: float
) -> Iterator[tuple[str, Tensor]]:
    """The weighted loss of each head."""
    scores = teacher.scores(rows)
    target = softmax(scores, 1)
    mixed = (1 - LABEL_SHARE) * target + LABEL_SHARE * torch.eye(len(rows))
    vectors, passages = queries["sentence_embedding"].float(), docs["sentence_embedding"].float()
    dense = vectors @ passages.T / temperature
    others = ~torch.eye(len(rows), dtype=torch.bool)
    alike, alike_target = (
        similar[others].view(len(rows), -1) for similar in (passages @ passages.T / temperature, teacher.passage_scores(rows))
    )
    yield (
        "dense",
        divergence(dense, target)
        + PASSAGES_TO_QUERIES * divergence(dense.T, softmax(scores.T, 1))
        + PASSAGES_TO_PASSAGES * divergence(alike, softmax(alike_target, 1)),
    )
    late = mean_maxsim(queries["multi"].float(), docs["multi"].float(), queries["multi_mask"], docs["multi_mask"])
    products = {"multi": late} | {
        head: queries[head].float() @ docs[head].float().T for head in ("sparse", "lexical") if head in queries
    }
    for head, product in products.items():
        yield head, WEIGHTS[head] * divergence(product / TEMPERATURES[head], mixed)


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
        self._start = [parameter.detach().clone() for parameter in self.parameters]
        self._average = [parameter.clone() for parameter in self._start]
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

    def take_average(self, share: float) -> None:
        """Replace the parameters by their moving average, which counts by this share, and their values at the start."""
        put(self.parameters, [start.lerp(average, share) for start, average in zip(self._start, self._average, strict=True)])


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
    parser.add_argument("--teachers", nargs="+", required=True, type=weight, metavar="NAME=WEIGHT", help="dense teachers")
    parser.add_argument("--own", nargs="+", default=[], type=weight, metavar="HEAD=WEIGHT", help="dense and multi as teachers")
    parser.add_argument("--to", type=Path, required=True, help="output folder")
    parser.add_argument("--steps", type=int, default=1800)
    parser.add_argument("--seeds", type=int, default=12, help=f"seeds of a batch, each with {EACH - 1} neighbours")
    parser.add_argument("--frozen-layers", type=int, default=6, help="first layers that are not trained")
    parser.add_argument("--rate", type=float, default=7e-5, help="learning rate of the encoder")
    parser.add_argument("--share", type=float, default=0.75, help="of the trained weights in the mean with the starting ones")
    parser.add_argument("--temperature", type=float, default=0.01, help="of dense scores")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(3)
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if world > 1:
        dist.init_process_group("gloo")
    options.to.mkdir(parents=True, exist_ok=True)
    pairs, model = read_pairs(options.pairs), load_model(options.model)
    model.eval()  # without dropout
    stacks_of(model)["query"].backbone.model.set_attn_implementation("eager")  # four times as fast as torch's own in bfloat16
    texts = {task: [pair[side] for pair in pairs] for task, side in (("query", "question"), ("document", "passage"))}
    cache = StateCache(model, options.to / f"states-{rank}", options.frozen_layers)
    with torch.autocast("cpu", PRECISION):
        for task in texts:
            cache.add(task, texts[task])
    own, weights = OwnTeacher(model, cache, texts, options.to / f"states-{rank}"), dict(options.teachers + options.own)
    dense = {
        name: [read_vectors(options.vectors, name, side) for side in ("question", "passage")] for name, _ in options.teachers
    }
    teacher = JointTeacher(dense | ({"dense": own.dense} if "dense" in weights else {}), weights, own)
    neighbours = teacher.neighbours()
    stack = stacks_of(model)["query"]
    freeze(model, embeddings=True, layers=options.frozen_layers)
    train_only(model, TRAINED, TRAINED)
    groups = [{"params": [p for p in stack.backbone.parameters() if p.requires_grad], "lr": options.rate}]
    groups += [{"params": [*getattr(stack.heads, head).parameters()], "lr": rate} for head, rate in HEAD_RATES.items()]
    state = Averaged(groups, options.steps, options.to / "checkpoint.pt")
    log, sums, started, first = options.to / "log.jsonl", dict[str, list[float]](), time.process_time(), state.step
    if rank == 0 and not first:
        log.write_text(json.dumps({"pairs": teacher.size, "weights": weights, **teacher.report}) + "\n", encoding="utf-8")
    while state.step < options.steps:
        rows = draw_batch(random.Random(state.step * world + rank), neighbours, options.seeds)
        stack.heads.wanted = TRAINED if state.step % SPARSE_EVERY == 0 else ("dense", "multi", "lexical")
        with torch.autocast("cpu", PRECISION):
            queries, docs = (encoded(model, cache([texts[task][row] for row in rows], task=task), task) for task in texts)
        parts = dict(losses(queries, docs, teacher, rows, options.temperature))
        state.update(torch.stack([*parts.values()]).sum())
        for head, part in parts.items():
            sums.setdefault(head, []).append(float(part.detach()))
        if state.step % LOG_EVERY == 0:
            row = {"step": state.step, **{head: round(float(np.mean(values)), 4) for head, values in sums.items()}}
            row["seconds_per_step"] = round((time.process_time() - started) / (state.step - first), 2)
            sums.clear()
            if rank == 0:
                with log.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(row) + "\n")
        if state.step % SAVE_EVERY == 0 and rank == 0:
            state.save()
    state.take_average(options.share)
    if rank == 0:
        stack.heads.wanted = tuple(stack.heads.description.heads)
        model.save_pretrained(str(options.to / "model"), create_model_card=False)


def weight(argument: str) -> tuple[str, float]:
    """NAME=WEIGHT of the command line."""
    name, _, value = argument.partition("=")
    return name, float(value)


if __name__ == "__main__":
    main()
