"""The vocabulary head in training: memory and time of one forward and backward pass, plain, SpladePooling and fused.

    ./scripts/bench train

The last states of a batch of texts times the word embeddings, the maximum over positions, and the gradient of both. Every
figure comes from a fresh process. `peak_mb` is the most memory that the process ever held (VmHWM), torch itself included;
`pass_mb` is that less what it held just before the pass: torch, the states and the embeddings. `published` activates every
product before the maximum, as the VDR code does; `plain` takes the maximum first and masks in place, the least that a form with
all products can hold; SpladePooling gets the products that a masked-language head would give it.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import elu

from benchmarks.record import record

SEED = 7
FORMS = ("published", "splade-pooling", "plain", "fused")


def main() -> None:
    """Measure each form in a process of its own, then write one row for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--words", type=int, default=30_522)
    parser.add_argument("--dims", type=int, default=384)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3, help="processes for each form")
    parser.add_argument("--form", choices=FORMS, help="run one form once and print what it took; used by this script itself")
    options = parser.parse_args()
    if options.form:
        print(json.dumps(measure(options)))
        return
    shape = {name: getattr(options, name) for name in ("texts", "tokens", "words", "dims", "threads")}
    runs: dict[str, list[dict[str, float]]] = {form: [] for form in FORMS}
    for _ in range(options.repeats):  # in turns, so that a busy machine is unfair to nobody
        for form in FORMS:
            runs[form].append(in_a_process(form, shape))
    for form in FORMS:
        found = summary(runs[form], runs["plain"])
        facts = {"data": f"drawn by seed {SEED}", "seed": SEED, "repeats": options.repeats}
        record("train", what="vocabulary head", form=form, **shape, **facts, **found)


def summary(runs: list[dict[str, float]], plain: list[dict[str, float]]) -> dict[str, float]:
    """Medians, the spread of the time, and how the form compares with the plain one."""
    middle = {name: median(run[name] for run in runs) for name in runs[0]}
    base = {name: median(run[name] for run in plain) for name in plain[0]}
    return {
        **{name: round(value, 3) for name, value in middle.items()},
        "seconds_best": round(min(run["seconds"] for run in runs), 3),
        "seconds_worst": round(max(run["seconds"] for run in runs), 3),
        "times_less_pass_memory": round(base["pass_mb"] / middle["pass_mb"], 2),
        "times_less_peak_memory": round(base["peak_mb"] / middle["peak_mb"], 2),
        "times_faster": round(base["seconds"] / middle["seconds"], 2),
    }


def in_a_process(form: str, shape: dict[str, int]) -> dict[str, float]:
    """What `measure` finds in a fresh interpreter."""
    arguments = [word for name, value in shape.items() for word in (f"--{name}", str(value))]
    command = [sys.executable, "-m", "benchmarks.train", "--form", form, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measure(options: Any) -> dict[str, float]:
    """One forward and one backward pass of one form: seconds of both and of each, and the memory."""
    torch.set_num_threads(options.threads)
    generator = torch.Generator().manual_seed(SEED)
    states = torch.randn(options.texts, options.tokens, options.dims, generator=generator).requires_grad_()
    words = (torch.randn(options.words, options.dims, generator=generator) / options.dims**0.5).requires_grad_()
    mask = torch.ones(options.texts, options.tokens, dtype=torch.bool)
    weights = torch.randn(options.texts, options.words, generator=generator)
    head = form_of(options.form)
    head(states[:1, :8], words[:64], mask[:1, :8]).sum().backward()  # what is set up on first use is none of the pass
    states.grad = words.grad = None
    before = held("VmRSS")
    start = perf_counter()
    found = head(states, words, mask)
    forward = perf_counter()
    (found * weights).sum().backward()
    end = perf_counter()
    peak = held("VmHWM")
    return {
        "seconds": end - start,
        "forward_seconds": forward - start,
        "backward_seconds": end - forward,
        "peak_mb": peak,
        "pass_mb": peak - before,
    }


def form_of(name: str) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """A function from states, words and mask to the pooled words (texts, words)."""
    if name == "plain":
        return plain
    if name == "published":
        return published
    if name == "fused":
        from trilens.train.vocabulary import best_products

        return best_products
    from sentence_transformers.sparse_encoder.modules import SpladePooling

    pooling = SpladePooling().train()

    def splade(states: Tensor, words: Tensor, mask: Tensor) -> Tensor:
        pooled: Tensor = pooling({"token_embeddings": states @ words.T, "attention_mask": mask})["sentence_embedding"]
        return pooled

    return splade


def published(states: Tensor, words: Tensor, mask: Tensor) -> Tensor:
    """All products at once, elu + 1 of all of them; masked positions then lose to all others, since these are above 0."""
    return ((elu(states @ words.T) + 1) * mask[:, :, None]).max(1).values


def plain(states: Tensor, words: Tensor, mask: Tensor) -> Tensor:
    """All products at once."""
    products = states @ words.T
    return products.masked_fill_(~mask[:, :, None], -torch.inf).max(1).values


def held(name: str) -> float:
    """Megabytes by /proc."""
    with Path("/proc/self/status").open(encoding="utf-8") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name)) / 1024


if __name__ == "__main__":
    main()
