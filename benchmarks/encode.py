"""Encoding throughput, all heads in one pass, against sentence-transformers in torch with the same weights.

    ./scripts/bench encode --model /models/gte-small --int8 MODEL --float32 MODEL

`--model` is the checkpoint in sentence-transformers format. `--int8` is the model folder exported from it (default: the bundled
model); `--float32` one exported with `trilens export --precision float32`, which is done automatically if it is missing (needs
`pip install trilens[export]`). All encode the same texts, truncated at the same length, with the same number of threads, in
alternating processes. The texts are a judged collection, so nDCG@10 of exact dense search is reported with the throughput. The
loss is relative to torch.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contest import ask, python_for, taking_part
from benchmarks.record import add_checkpoint, add_data, record, record_missing, spread, started
from benchmarks.tasks import SEED, K, Task, ndcg, read_task, write_lines
from trilens.encode.folder import CONFIG_FILE, ModelConfig, ModelFolder
from trilens.encode.models import resolve_model
from trilens.errors import TrilensError
from trilens.store.config import DEFAULT_MODEL

TORCH = "sentence-transformers"


@dataclass(frozen=True, slots=True)
class Entry:
    """An encoder configuration."""

    system: str
    precision: str
    model: str
    heads: tuple[str, ...]
    max_tokens: int


def entries(options: argparse.Namespace) -> list[Entry]:
    """trilens in both precisions, with the dense head and with all heads, and torch."""
    configurations = []
    int8 = resolve_model(options.int8)
    for folder in (int8, options.float32 or exported(options.model, ModelFolder.open(int8).config)):
        if folder is not None:
            config = ModelFolder.open(folder).config
            both = (("dense",), tuple(config.heads))
            configurations += [Entry("trilens", config.precision, str(folder), heads, config.max_doc_tokens) for heads in both]
    with taking_part("encode", TORCH):
        python_for(TORCH)
        configurations.append(Entry(TORCH, "float32", options.model, ("dense",), configurations[0].max_tokens))
    return configurations


def exported(model: str, like: ModelConfig) -> Path | None:
    """Export the checkpoint in float32 with all heads and the truncation lengths of another model.

    If the export fails, record it as missing.
    """
    folder = Path("runs/encode") / f"{Path(model).name}-float32"
    if not folder.exists():
        command = [sys.executable, "-m", "trilens", "export", model, str(folder), "--precision", "float32", "--no-check"]
        heads = ["--multi-dims", "128", "--vdr", "--lexical"]
        done = subprocess.run([*command, *heads], capture_output=True, text=True, check=False)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["trilens export failed"])[-1]
            record_missing("encode", "trilens, float32", reason)
            return None
    description = folder / CONFIG_FILE
    lengths = {name: getattr(like, name) for name in ("max_doc_tokens", "max_query_tokens")}
    description.write_text(json.dumps(json.loads(description.read_text(encoding="utf-8")) | lengths), encoding="utf-8")
    return folder


def measure(entry: Entry, task: Task, texts: Path, threads: int) -> dict[str, Any]:
    """Encode in a separate process; return seconds and nDCG@10."""
    arguments = [
        entry.system,
        "--texts",
        str(texts),
        "--model",
        entry.model,
        "--threads",
        str(threads),
        "--heads",
        *entry.heads,
        "--max-tokens",
        str(entry.max_tokens),
    ]
    (answer,) = ask(python_for(entry.system), "encoding", arguments, threads)
    scores = np.load(texts / "queries.npy") @ np.load(texts / "docs.npy").T
    return {**answer, "nDCG@10": ndcg(task, np.argsort(-scores, axis=1, kind="stable")[:, :K].tolist())}


def main() -> None:
    """Run all configurations alternately, then record a row for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data(parser, "--corpus", "cranfield", "a judged collection in the BEIR layout")
    add_checkpoint(parser)
    parser.add_argument("--int8", default=DEFAULT_MODEL, help="bundled model or model folder")
    parser.add_argument("--float32", type=Path, help="model folder; default: exported from --model")
    parser.add_argument("--documents", type=int, help="number of documents; default: all")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--repeats", type=int, default=3, help="processes per configuration")
    options = parser.parse_args()
    if not options.model:
        parser.error("--model is missing; expected a checkpoint: a folder or hub id, or $TRILENS_CHECKPOINT")
    try:
        configurations = entries(options)
    except TrilensError as error:
        sys.exit(f"error: {error}")
    task = read_task(options.corpus)
    facts = {"run": started(), "dataset": task.name, "threads": options.threads, "seed": SEED, "data": task.data}
    with tempfile.TemporaryDirectory() as folder:
        texts = Path(folder)
        write_lines(texts / "docs.jsonl", map(json.dumps, islice(task.docs, options.documents)))
        write_lines(texts / "queries.jsonl", map(json.dumps, task.queries))
        documents = len(task.docs[: options.documents])
        turns = [[measure(entry, task, texts, options.threads) for entry in configurations] for _ in range(options.repeats)]
    for entry, runs in zip(configurations, zip(*turns, strict=True), strict=True):
        identity = {"system": entry.system, "version": runs[0]["version"], "precision": entry.precision, "heads": entry.heads}
        speed = spread("per_second", [documents / run["seconds"] for run in runs], 1)
        known = {"documents": documents, "model": Path(entry.model).name, "repeats": options.repeats}
        peak = max(run["peak_mb"] for run in runs)
        record("encode", **facts, **identity, **known, **speed, **{"nDCG@10": runs[0]["nDCG@10"]}, peak_mb=peak)


if __name__ == "__main__":
    main()
