"""Whole systems from texts to answers: documents per second in, queries per second out, bytes, time to a first answer.

    ./scripts/bench endtoend --model /models/gte-small --documents 5000

trilens with BM25, with dense vectors too, and with token vectors too; bm25s; Pyserini, where there is a Java 21 or newer;
PyLate with fast-plaid; txtai (BM25 and dense vectors). The same texts and questions, one question per call, so many threads.
`--model` is a checkpoint for the systems that take one, `--ours` the model folder made of it for trilens (the bundled model if
nothing is said, which computes in 8 bits). The first answer is counted from the start of a process whose files are in the page
cache. Texts are not kept by the peers; trilens keeps them, and its bytes count them.
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
class Trip:
    """Texts and questions in a folder, and how they are searched."""

    task: Task
    texts: Path
    documents: int
    queries: int
    threads: int
    repeats: int


def travel(trip: Trip, system: str, more: list[str], needed: dict[str, str]) -> dict[str, Any]:
    """Index once; start anew and answer as often as there are repeats, of which the last answers all questions."""
    index = trip.texts / "index"
    shutil.rmtree(index, ignore_errors=True)
    arguments = ["--texts", str(trip.texts), "--index", str(index), "--threads", str(trip.threads), *more]
    python = python_for(system)
    (made,) = ask(python, "systems", [system, "index", *arguments], trip.threads, **needed)
    starts: list[float] = []
    for left in reversed(range(trip.repeats)):
        passes = "0" if left else str(trip.repeats)
        before = perf_counter()
        answers = ask(python, "systems", [system, "answer", *arguments, "--repeats", passes], trip.threads, **needed)
        next(answers)
        starts.append(perf_counter() - before)
        (answered,) = answers
    return {
        "version": made["version"],
        "documents_per_second": round(trip.documents / made["seconds"], 2),
        **spread("queries_per_second", [trip.queries / seconds for seconds in answered["seconds"]], 2),
        "bytes_per_document": round(folder_bytes(index) / trip.documents, 1),
        **spread("first_answer_seconds", starts),
        "nDCG@10": ndcg(trip.task, answered["found"]),
        **{"index_peak_mb": made["peak_mb"], "peak_mb": answered["peak_mb"]},
    }


def entries(options: argparse.Namespace) -> list[tuple[str, str, list[str]]]:
    """Name in the table, system, and its own arguments."""
    found: list[tuple[str, str, list[str]]] = []
    for system in options.systems:
        if system == "trilens":
            found += [(f"trilens, {' + '.join(some)}", system, ["--model", options.ours, "--lenses", *some]) for some in OURS]
        else:
            found.append((system, system, ["--model", options.model or ""] if system in TAKE_A_MODEL else []))
    return found


def variables(system: str, options: argparse.Namespace) -> dict[str, str]:
    """What a system needs of its surroundings; an error if that is not there."""
    if system in TAKE_A_MODEL and not options.model:
        raise PeerMissing("needs a model: give a checkpoint with --model")
    # Importing Pyserini 1.6 makes an OpenAI client, which wants a key of any kind; nothing is asked of it.
    return {"JAVA_HOME": str(java_home(JAVA)), "OPENAI_API_KEY": "unused"} if system == "pyserini" else {}


def main() -> None:
    """One system after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data(parser, "--corpus", "squad-retrieval", "a BEIR folder, or JSON lines with title and text")
    parser.add_argument("--documents", type=int, default=5000)
    parser.add_argument("--queries", type=int, default=300)
    add_checkpoint(parser)
    parser.add_argument("--ours", default=DEFAULT_MODEL, help="bundled model or model folder, for trilens")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--repeats", type=int, default=3, help="starts, and passes over the questions")
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
        trip = Trip(task, texts, documents, queries, options.threads, options.repeats)
        for name, system, more in entries(options):
            print(f"{name} …", file=sys.stderr)
            with taking_part("endtoend", name):
                found = travel(trip, system, more, variables(system, options))
                record("endtoend", **facts, system=name, **found)


if __name__ == "__main__":
    main()
