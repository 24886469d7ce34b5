"""Chooses the default fusions of a model folder on judged questions, and writes them into its `trilens.json`.

    python -m benchmarks.everyday.build --to runs/everyday/corpora
    python recipes/mini_fusion.py --model models/mine --to runs/fusion \\
        --judged runs/everyday/corpora/stdlib runs/everyday/corpora/manuals runs/everyday/corpora/debian \\
        /data/nfcorpus /data/qmsum /data/squad-retrieval:train

`--judged` are folders in the BEIR layout with a split, by default `dev`; splits named test are refused. (`./scripts/bench
everyday` completes the everyday collections to that layout.) Of each at most `--questions` questions are drawn, with all their
judged documents, and further documents up to `--words` words. `--to` keeps these samples and their collections, one folder per
model.

Every combination of the lenses that the model has heads for gets a fusion by damped z-scores. Its weights are the most even of
those whose mean nDCG@10, in which all sets count equally, is within `--tolerance` of the highest: other collections ask for
more of the lenses that matter little here. `held out` is the mean over the sets of what weights chosen on the others have.
"""

import argparse
import json
import math
import random
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
from ir_measures import nDCG

from trilens.collection import Collection
from trilens.datasets.beir import Beir
from trilens.datasets.qrels import Qrels
from trilens.encode.folder import CONFIG_FILE, ModelFolder
from trilens.encode.models import resolve_model
from trilens.errors import TrilensError
from trilens.evaluate.tuning import Bench, JudgedCandidates, choose, gather
from trilens.kernels.array_types import Int64s
from trilens.lenses.registry import needed_heads
from trilens.read.readers import read
from trilens.search.fusion import Fusion
from trilens.search.options import fused_name

LENSES = ("bm25", "dense", "multi", "sparse", "lexical")
MEASURE = nDCG @ 10
SPLIT, DEPTH, SEED = "dev", 100, 1
FUSION = Fusion("zscore", depth=DEPTH, damp=True)
JUDGED_SHARE = 0.8  # of the words, at most this share in judged documents


@dataclass(frozen=True, slots=True)
class Judged:
    """A sample of judged questions with the candidates of each through all lenses."""

    name: str
    qrels: Qrels
    questions: Sequence[JudgedCandidates]


def sample(source: str, to: Path, words: int, most: int) -> Path:
    """Write a sample of FOLDER or FOLDER:SPLIT in the BEIR layout, unless it is there; return its folder."""
    folder, split = found.groups() if (found := re.fullmatch(r"(.+):(\w+)", source)) else (source, SPLIT)
    if "test" in split:
        raise SystemExit(f"error: --judged {source} is a test split; nothing is chosen on test questions")
    dataset = Beir(Path(folder))
    target = to / dataset.name
    if (target / "qrels" / f"{SPLIT}.tsv").exists():
        return target
    queries, qrels = dataset.queries(split), dataset.qrels(split)
    docs = {json.loads(line)["_id"]: line for line in dataset.corpus_path.read_text(encoding="utf-8").splitlines()}
    sizes = {doc_id: len(line.split()) for doc_id, line in docs.items()}
    draw, kept, chosen = random.Random(SEED), dict[str, int](), list[str]()
    for query in _shuffled(draw, queries):
        judged = {doc_id: sizes[doc_id] for doc_id in qrels[query] if doc_id in docs}
        if len(chosen) < most and sum((kept | judged).values()) <= JUDGED_SHARE * words:
            kept |= judged
            chosen.append(query)
    for doc_id in _shuffled(draw, docs.keys() - kept.keys()):
        if sum(kept.values()) + sizes[doc_id] <= words:
            kept[doc_id] = sizes[doc_id]
    (target / "qrels").mkdir(parents=True, exist_ok=True)
    (target / "corpus.jsonl").write_text("".join(f"{line}\n" for doc_id, line in docs.items() if doc_id in kept))
    (target / "queries.jsonl").write_text(
        "".join(json.dumps({"_id": query, "text": queries[query]}) + "\n" for query in sorted(chosen))
    )
    labels = [f"{q}\t{doc}\t{label}\n" for q in sorted(chosen) for doc, label in qrels[q].items() if doc in kept]
    (target / "qrels" / f"{SPLIT}.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(labels))
    return target


def _shuffled(draw: random.Random, names: Sequence[str] | set[str] | dict[str, str]) -> list[str]:
    ordered = sorted(names)
    draw.shuffle(ordered)
    return ordered


def judge(folder: Path, model: str, lenses: Sequence[str]) -> Judged:
    """Index a sample with all lenses, unless it is indexed, and search its questions."""
    dataset = Beir(folder)
    with Collection.open_or_create(folder / "all.trilens", lenses=lenses, model=model) as collection:
        collection.ingest(read([dataset.corpus_path]), full_batches=True)
        queries = dataset.queries(SPLIT)
        print(f"{dataset.name}: {len(queries):,} questions, {len(collection):,} documents", flush=True)  # noqa: T201
        return Judged(dataset.name, dataset.qrels(SPLIT), gather(collection, queries, lenses, DEPTH, lambda count: None))


def through(judged: Sequence[Judged], lenses: Sequence[str]) -> Bench:
    """The questions as a search through some of the lenses answers them."""
    questions = [
        [replace(question, candidates=question.candidates.through(lenses)) for question in one.questions] for one in judged
    ]
    return Bench(questions, list(lenses), [one.qrels for one in judged], MEASURE)


def choose_even(bench: Bench, tolerance: float, queries: Int64s | None = None) -> Fusion:
    """The most even weights, by entropy, that are nearly as good as the best over some questions (None: all)."""
    best = choose(bench, [FUSION], queries)
    least = bench.mean(bench.values(best), queries) - tolerance
    close = [fusion for fusion in bench.measured if bench.mean(bench.values(fusion), queries) >= least]
    return max(close, key=lambda fusion: entropy(list(fusion.weights.values())))


def entropy(weights: Sequence[float]) -> float:
    """The entropy of weights that add up to 1."""
    return -sum(weight * math.log(weight) for weight in weights if weight)


def report(bench: Bench, tolerance: float, fusion: Fusion) -> str:
    """What a fusion is worth on each set, on sets that its weights were not chosen on, and next to unweighted ranks."""
    values, sets = bench.values(fusion), np.unique(bench.of)
    held_out = [
        bench.values(choose_even(bench, tolerance, np.flatnonzero(bench.of != one)))[bench.of == one].mean() for one in sets
    ]
    by_set = " ".join(f"{values[bench.of == one].mean():.3f}" for one in sets)
    ranks = bench.mean(bench.values(Fusion("rrf", depth=DEPTH)))
    return f"{fusion}  {bench.mean(values):.4f} ({by_set}), held out {np.mean(held_out):.4f}, rrf {ranks:.4f}"


def main() -> None:
    """Sample, index, search, choose and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="model folder, or the name of a bundled model")
    parser.add_argument("--to", type=Path, required=True, help="folder of samples and collections")
    parser.add_argument("--judged", nargs="+", required=True, metavar="FOLDER[:SPLIT]", help="judged collections")
    parser.add_argument("--tolerance", type=float, default=0.002, help="how far below the highest mean even weights may be")
    parser.add_argument("--questions", type=int, default=300, help="most questions of each set")
    parser.add_argument("--words", type=int, default=300_000, help="most words of each set")
    parser.add_argument("--dry-run", action="store_true", help="do not write the fusions")
    options = parser.parse_args()
    try:
        model = ModelFolder.open(resolve_model(options.model))
        lenses = [lens for lens in LENSES if set(needed_heads([lens])) <= set(model.config.heads)]
        folders = [sample(source, options.to, options.words, options.questions) for source in options.judged]
        judged = [judge(folder, options.model, lenses) for folder in folders]
    except TrilensError as error:
        sys.exit(f"error: {error}")
    fusions = {}
    for count in range(2, len(lenses) + 1):
        for chosen in combinations(lenses, count):
            bench = through(judged, chosen)
            fusion = choose_even(bench, options.tolerance)
            fusions[fused_name(chosen)] = str(fusion)
            print(report(bench, options.tolerance, fusion), flush=True)  # noqa: T201
    if not options.dry_run:
        file = model.path / CONFIG_FILE
        described = json.loads(file.read_text(encoding="utf-8")) | {"fusion": fusions}
        file.write_text(json.dumps(described, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
