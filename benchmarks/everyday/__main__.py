"""Everyday questions over three collections: MRR@10, Success@3 and nDCG@10 of lenses, fusions and the default search.

    ./scripts/bench everyday
    ./scripts/bench everyday --model models/mine

The collections are built by `python -m benchmarks.everyday.build`. Passages are those that a user gets without options, and a
search returns ten documents. `default search` is a search without options in a collection with the default lenses. Both halves
of the questions are recorded; only the dev half is used to choose anything.

Each model encodes a collection once into `--cache`, with every lens that it has heads for; results with the same commit, model
and data are not measured again.
"""

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ir_measures import RR, Success, nDCG

from benchmarks.everyday.build import COLLECTIONS, corpus_path
from benchmarks.everyday.questions import QUESTIONS, SEED, SPLITS, judge, judged_hash, read_questions
from benchmarks.judged import DEFAULT_SEARCH
from benchmarks.quality import LENSES, SYSTEMS, Bench, System, answers, default_system, indexed
from benchmarks.record import commit, record, rows
from trilens.encode.folder import ModelFolder
from trilens.encode.models import resolve_model
from trilens.errors import BadInput, TrilensError
from trilens.evaluate.measures import means, per_query
from trilens.lenses.registry import needed_heads
from trilens.store.config import DEFAULT_MODEL, PassageConfig

MEASURES = (RR @ 10, Success @ 3, nDCG @ 10)
DEPTH = 10
MEASURED = (
    "bm25",
    "dense",
    "multi",
    "sparse",
    "lexical",
    "tokens (β)",
    "rrf of bm25 and dense",
    "rrf of bm25, dense and multi",
)


def systems_of(folder: ModelFolder) -> dict[str, System]:
    """The systems whose lenses the model has heads for."""
    systems = {name: SYSTEMS[name] for name in MEASURED}
    systems[DEFAULT_SEARCH] = default_system(folder.config)
    return {name: how for name, how in systems.items() if set(needed_heads(how.lenses)) <= set(folder.config.heads)}


def measure(bench: Bench, name: str, systems: Mapping[str, System], lenses: list[str], left_out: int) -> None:
    """Measure every system on both halves of the questions of a collection, unless it is recorded already."""
    dataset = bench.dataset(name)
    model = {"model": bench.fingerprint, "model_name": Path(bench.model).name, "precision": bench.precision}
    with indexed(bench, name, lenses, PassageConfig()) as collection:
        for system, how in systems.items():
            facts: dict[str, Any] = {**model, "data": judged_hash(dataset.folder), "dataset": name, "system": system}
            facts |= {"lenses": list(how.lenses), "fusion": how.fusion}
            known = facts | {"commit": commit()}
            if any(all(row.get(key) == value for key, value in known.items()) for row in rows("everyday")):
                continue
            queries = {query: text for split in SPLITS for query, text in dataset.queries(split).items()}
            run = answers(collection, queries, how, f"{name}, {system}", DEPTH)
            for split in SPLITS:
                qrels = dataset.qrels(split)
                values = per_query({query: run[query] for query in qrels}, qrels, MEASURES)
                averages = {measure: round(value, 4) for measure, value in means(values).items()}
                counts = {"queries": len(qrels), "left_out": left_out, "documents": len(collection)}
                counts["passages"] = collection.info()["passages"]
                threads = len(os.sched_getaffinity(0))
                record("everyday", **facts, split=split, **counts, **averages, threads=threads, seed=SEED, repeats=1)


def main() -> None:
    """Judge, encode and measure."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.everyday", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpora", type=Path, default=Path("runs/everyday/corpora"), help="folder of the built collections")
    parser.add_argument("--questions", type=Path, default=QUESTIONS, help="folder of the questions files")
    parser.add_argument("--collections", nargs="+", default=list(COLLECTIONS), choices=COLLECTIONS, metavar="NAME")
    parser.add_argument("--model", default=DEFAULT_MODEL, help="bundled model or model folder")
    parser.add_argument("--cache", type=Path, default=Path("runs/everyday/encoded"), help="folder of the encoded collections")
    options = parser.parse_args()
    try:
        for name in options.collections:
            if not corpus_path(options.corpora, name).exists():
                raise BadInput(
                    f"{options.corpora} has no collection {name}: "
                    f"run `python -m benchmarks.everyday.build --to {options.corpora}`"
                )
        folder = ModelFolder.open(resolve_model(options.model))
        bench = Bench(options.corpora, options.cache, options.model, folder.fingerprint, folder.config.precision)
        lenses = [lens for lens in LENSES if set(needed_heads([lens])) <= set(folder.config.heads)]
        for name in options.collections:
            left_out = judge(corpus_path(options.corpora, name).parent, read_questions(options.questions / f"{name}.jsonl"))
            measure(bench, name, systems_of(folder), lenses, left_out)
    except TrilensError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
