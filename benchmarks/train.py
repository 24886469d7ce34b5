"""The vocabulary head in training: memory and time of one forward and backward pass, plain, SpladePooling and fused.

    ./scripts/bench train

The pass multiplies the last hidden states of a batch by the word embeddings, takes the maximum over positions, and computes the
gradients of both. Each measurement is a fresh process. `peak_mb` is the peak resident memory of the process (VmHWM), including
torch; `pass_mb` is the peak minus the memory just before the pass: torch, states and embeddings. `published` applies the
activation to all products before the maximum, like the VDR code; `plain` takes the maximum first and masks in place, the
minimum for a form that materialises all products; SpladePooling gets the logits that a masked language model head would
produce.
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
    """Measure each form in separate processes, then record one row per form."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--words", type=int, default=30_522)
    parser.add_argument("--dims", type=int, default=384)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3, help="processes per form")
    parser.add_argument("--form", choices=FORMS, help="run one form once and print its cost; used internally")
    options = parser.parse_args()
    if options.form:
        print(json.dumps(measure(options)))
        return
    shape = {name: getattr(options, name) for name in ("texts", "tokens", "words", "dims", "threads")}
    runs: dict[str, list[dict[str, float]]] = {form: [] for form in FORMS}
    for _ in range(options.repeats):  # alternate, so that load on the machine affects all forms
        for form in FORMS:
            runs[form].append(in_a_process(form, shape))
    for form in FORMS:
        results = summary(runs[form], runs["plain"])
        facts = {"data": f"drawn by seed {SEED}", "seed": SEED, "repeats": options.repeats}
        record("train", what="vocabulary head", form=form, **shape, **facts, **results)


def summary(runs: list[dict[str, float]], plain: list[dict[str, float]]) -> dict[str, float]:
    """Medians, spread of the time, and ratios to the plain form."""
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
    """Run `measure` in a fresh interpreter."""
    arguments = [word for name, value in shape.items() for word in (f"--{name}", str(value))]
    command = [sys.executable, "-m", "benchmarks.train", "--form", form, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    results: dict[str, float] = json.loads(done.stdout)
    return results


def measure(options: Any) -> dict[str, float]:
    """Time and memory of one forward and backward pass of one form."""
    torch.set_num_threads(options.threads)
    generator = torch.Generator().manual_seed(SEED)
    states = torch.randn(options.texts, options.tokens, options.dims, generator=generator).requires_grad_()
    words = (torch.randn(options.words, options.dims, generator=generator) / options.dims**0.5).requires_grad_()
    mask = torch.ones(options.texts, options.tokens, dtype=torch.bool)
    weights = torch.randn(options.texts, options.words, generator=generator)
    head = form_of(options.form)
    head(states[:1, :8], words[:64], mask[:1, :8]).sum().backward()  # excludes one-time initialisation
    states.grad = words.grad = None
    before = memory_mb("VmRSS")
    start = perf_counter()
    pooled = head(states, words, mask)
    forward = perf_counter()
    (pooled * weights).sum().backward()
    end = perf_counter()
    peak = memory_mb("VmHWM")
    return {
        "seconds": end - start,
        "forward_seconds": forward - start,
        "backward_seconds": end - forward,
        "peak_mb": peak,
        "pass_mb": peak - before,
    }


def form_of(name: str) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Pooling function of a form: (states, words, mask) → (texts, words)."""
    if name == "plain":
        return plain
    if name == "published":
        return published
    if name == "fused":
        from trilens.train.best_products import best_products

        return best_products
    from sentence_transformers.sparse_encoder.modules import SpladePooling

    pooling = SpladePooling().train()

    def splade(states: Tensor, words: Tensor, mask: Tensor) -> Tensor:
        pooled: Tensor = pooling({"token_embeddings": states @ words.T, "attention_mask": mask})["sentence_embedding"]
        return pooled

    return splade


def published(states: Tensor, words: Tensor, mask: Tensor) -> Tensor:
    """elu + 1 of all products, then the maximum; masked positions are 0 and never win, since all others are positive."""
    return ((elu(states @ words.T) + 1) * mask[:, :, None]).max(1).values


def plain(states: Tensor, words: Tensor, mask: Tensor) -> Tensor:
    """Maximum over all products, masked in place."""
    products = states @ words.T
    return products.masked_fill_(~mask[:, :, None], -torch.inf).max(1).values


def memory_mb(name: str) -> float:
    """Memory of this process in megabytes, from /proc."""
    with Path("/proc/self/status").open(encoding="utf-8") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name)) / 1024


if __name__ == "__main__":
    main()
