"""End-to-end systems: indexing and query throughput, size, and time to the first answer.

    ./scripts/bench endtoend --model /models/gte-small --documents 5000

Contenders are trilens with BM25, with dense vectors and with token vectors; bm25s; Pyserini, if Java 21 or newer is installed;
PyLate with fast-plaid; txtai (BM25 and dense vectors). All get the same texts and questions, one question per call, and the
same number of threads. `--model` is a checkpoint for the systems that load one, `--ours` the model folder of trilens (default:
the bundled model, which computes in 8 bits). The first answer is timed from the start of a process with its files in the page
cache. trilens stores the texts and the peers do not; its size includes them.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.contest import ask, python_for, taking_part
from benchmarks.peers.environments import PeerMissing, java_home
from benchmarks.peers.systems import SYSTEMS
from benchmarks.record import add_checkpoint, add_data, folder_bytes, record, spread, started
from benchmarks.tasks import SEED, K, Task, ndcg, read_task, write_lines
from trilens.store.config import DEFAULT_MODEL

JAVA = 21
OURS = (["bm25"], ["bm25", "dense"], ["bm25", "dense", "multi"])
TAKE_A_MODEL = ("pylate", "txtai")


@dataclass(frozen=True, slots=True)
class Trial:
    """Texts and questions in a folder, and the search conditions."""

    task: Task
    texts: Path
    documents: int
    queries: int
    threads: int
    repeats: int


def run(trial: Trial, system: str, more: list[str], needed: dict[str, str]) -> dict[str, Any]:
    """Index once, then start a process per repeat; each answers one question, the last one answers all."""
    index = trial.texts / "index"
    shutil.rmtree(index, ignore_errors=True)
    arguments = ["--texts", str(trial.texts), "--index", str(index), "--threads", str(trial.threads), *more]
    python = python_for(system)
    (indexed,) = ask(python, "systems", [system, "index", *arguments], trial.threads, **needed)
    starts: list[float] = []
    for remaining in reversed(range(trial.repeats)):
        passes = "0" if remaining else str(trial.repeats)
        before = perf_counter()
        answers = ask(python, "systems", [system, "answer", *arguments, "--repeats", passes], trial.threads, **needed)
        next(answers)
        starts.append(perf_counter() - before)
        (answered,) = answers
    return {
        "version": indexed["version"],
        "documents_per_second": round(trial.documents / indexed["seconds"], 2),
        **spread("queries_per_second", [trial.queries / seconds for seconds in answered["seconds"]], 2),
        "bytes_per_document": round(folder_bytes(index) / trial.documents, 1),
        **spread("first_answer_seconds", starts),
        "nDCG@10": ndcg(trial.task, answered["found"]),
        **{"index_peak_mb": indexed["peak_mb"], "peak_mb": answered["peak_mb"]},
    }


def entries(options: argparse.Namespace) -> list[tuple[str, str, list[str]]]:
    """(name in the table, system, arguments) of every contender."""
    contenders: list[tuple[str, str, list[str]]] = []
    for system in options.systems:
        if system == "trilens":
            contenders += [
                (f"trilens, {' + '.join(lenses)}", system, ["--model", options.ours, "--lenses", *lenses]) for lenses in OURS
            ]
        else:
            contenders.append((system, system, ["--model", options.model or ""] if system in TAKE_A_MODEL else []))
    return contenders


def variables(system: str, options: argparse.Namespace) -> dict[str, str]:
    """Environment variables that a system needs; PeerMissing if a requirement is absent."""
    if system in TAKE_A_MODEL and not options.model:
        raise PeerMissing("needs a model: pass a checkpoint with --model")
    # Importing Pyserini 1.6 creates an OpenAI client, which requires some key but is not used.
    return {"JAVA_HOME": str(java_home(JAVA)), "OPENAI_API_KEY": "unused"} if system == "pyserini" else {}


def main() -> None:
    """Measure one system after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data(parser, "--corpus", "squad-retrieval", "a BEIR folder, or JSON lines with title and text")
    parser.add_argument("--documents", type=int, default=5000)
    parser.add_argument("--queries", type=int, default=300)
    add_checkpoint(parser)
    parser.add_argument("--ours", default=DEFAULT_MODEL, help="bundled model or model folder, for trilens")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--repeats", type=int, default=3, help="process starts, and passes over the questions")
    options = parser.parse_args()
    if options.repeats < 1:
        parser.error(f"--repeats is {options.repeats}; expected at least 1")
    task = read_task(options.corpus)
    documents, queries = min(options.documents, len(task.docs)), min(options.queries, len(task.queries))
    facts = {"run": started(), "corpus": task.name, "documents": documents, "queries": queries, "k": K}
    facts |= {"threads": options.threads, "seed": SEED, "data": task.data, "repeats": options.repeats}
    with tempfile.TemporaryDirectory() as folder:
        texts = Path(folder)
        write_lines(texts / "docs.jsonl", map(json.dumps, task.docs[:documents]))
        write_lines(texts / "queries.jsonl", map(json.dumps, task.queries[:queries]))
        trial = Trial(task, texts, documents, queries, options.threads, options.repeats)
        for name, system, more in entries(options):
            print(f"{name} …", file=sys.stderr)
            with taking_part("endtoend", name):
                results = run(trial, system, more, variables(system, options))
                record("endtoend", **facts, system=name, **results)


if __name__ == "__main__":
    main()
