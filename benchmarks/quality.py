"""Retrieval quality of every lens and fusion on judged collections: nDCG@10 and R@100.

    ./scripts/bench quality --data /data
    ./scripts/bench quality --data /data --sets cranfield cacm --model models/mine

Folders are in the BEIR layout and evaluated on their test split (of cranfield `test.tsv`, which counts code -1 as relevant, not
`test-graded.tsv`). No parameter is chosen on test questions: the weights of the tuned fusion come from dev questions of
nfcorpus and qmsum and training questions of SQuAD, the three weighted equally. Their corpora are encoded for it whichever sets
are selected, unless `--systems` excludes that fusion. Sets with more than 2,000 questions are sampled.

Each model encodes a corpus once, in passages of 150 words, into `--cache`. Interrupted runs are resumed; results with the same
commit, model and data are not measured again. Finally the best fusion is compared with each lens over the questions of all
averaged collections.
"""

import argparse
import json
import os
import random
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from ir_measures import R, nDCG

from benchmarks.judged import AVERAGED, DEFAULT_SEARCH, TUNED
from benchmarks.record import add_data, commit, file_hash, record, record_missing, rows
from trilens.cli.progress import progress_bar
from trilens.collection import Collection
from trilens.datasets.beir import Beir
from trilens.encode.folder import ModelConfig, ModelFolder
from trilens.encode.models import resolve_model
from trilens.errors import BadInput, TrilensError
from trilens.evaluate.measures import means, per_query
from trilens.evaluate.runs import Run
from trilens.evaluate.significance import ROUNDS, SEED, holm, randomisation_p
from trilens.evaluate.tuning import TuningSet, tune
from trilens.index.multi_params import MultiParams
from trilens.read.readers import read, survey
from trilens.search.options import fused_name
from trilens.store.config import DEFAULT_LENSES, DEFAULT_MODEL, WORD_PASSAGES, PassageConfig, default_lenses
from trilens.store.schema import FILE_NAME

# Collection name in the tables → folder.
SETS = {name: name for name in AVERAGED} | {
    "nq-utd": "nq-utd",
    "squad dev": "squad-retrieval",
    "xquad-r": "xquad-r/all",
    "qmsum": "qmsum",
    "limit-small": "limit-small",
}
TUNED_ON = {"nfcorpus": "dev", "qmsum": "dev", "squad dev": "train"}  # collection → split that fusion weights are tuned on
MOST_TUNED = 500  # tuning questions per collection
LENSES = ("bm25", "dense", "multi", "sparse", "lexical", "tokens")
FUSED = ("bm25", "dense", "multi", "sparse", "lexical")
EXACT = "multi, exact"  # exhaustive search: only on the averaged collections
SPLIT, DEPTH, AT_ONCE, MOST_QUERIES = "test", 100, 32, 2_000
MEASURES = (nDCG @ 10, R @ 100)


@dataclass(frozen=True, slots=True)
class System:
    """A way to search a collection that has every lens."""

    lenses: Sequence[str]
    params: Mapping[str, Any] = field(default_factory=dict)
    fusion: str = "none"


SYSTEMS = {
    "bm25": System(["bm25"]),
    "dense": System(["dense"]),
    "multi": System(["multi"]),
    "multi, xtr": System(["multi"], {"multi": MultiParams(method="xtr")}),
    EXACT: System(["multi"], {"multi": MultiParams(method="exact")}),
    "sparse": System(["sparse"]),
    "lexical": System(["lexical"]),
    "tokens (β)": System(["tokens"]),
    "rrf of bm25 and dense": System(["bm25", "dense"]),
    "rrf of bm25, dense and multi": System(["bm25", "dense", "multi"]),
    "rrf of five lenses": System(FUSED),
    TUNED: System(FUSED, fusion="chosen on dev questions"),
    DEFAULT_SEARCH: System(DEFAULT_LENSES, fusion="of the model"),
}


@dataclass(frozen=True, slots=True)
class Bench:
    """Folders of data and cache, and the model."""

    data: Path
    cache: Path
    model: str
    fingerprint: str
    precision: str

    def dataset(self, name: str) -> Beir:
        """Open a judged collection by its name in the tables, or by its folder."""
        return Beir(self.data / SETS.get(name, name))

    def folder(self, name: str) -> Path:
        """Cache folder of a collection encoded by this model."""
        corpus = file_hash(self.dataset(name).corpus_path)
        return self.cache / self.fingerprint / f"{name.replace(' ', '-')}-{corpus}"


def indexed(bench: Bench, name: str, lenses: Sequence[str] = LENSES, passages: PassageConfig = WORD_PASSAGES) -> Collection:
    """Open the cached collection of a corpus, by default with every lens, encoding what is missing."""
    path = bench.folder(name) / "all.trilens"
    corpus = bench.dataset(name).corpus_path
    documents = survey([corpus]).documents
    cached = (path / FILE_NAME).exists()
    collection = (
        Collection.open(path) if cached else Collection.create(path, lenses=lenses, model=bench.model, passages=passages)
    )
    if len(collection) != documents:
        with progress_bar(f"encoding {name}", documents, "docs") as advance:
            collection.ingest(read([corpus]), advance, full_batches=True)
    return collection


def data_hash(dataset: Beir, split: str) -> str:
    """Hash of documents, questions and judgements."""
    dataset.queries(split)  # raises a readable error if a file is missing
    return file_hash(dataset.corpus_path, dataset.folder / "queries.jsonl", dataset.folder / "qrels" / f"{split}.tsv")


def tuned_fusion(bench: Bench) -> str:
    """Best fusion on the tuning questions as a string, cached by model and data."""
    data = "-".join(data_hash(bench.dataset(name), split) for name, split in TUNED_ON.items())
    path = bench.cache / bench.fingerprint / f"tuned-{MOST_TUNED}-{data}.json"
    if not path.exists():
        with ExitStack() as collections, progress_bar(f"tuning on {', '.join(TUNED_ON)}", None, "queries") as advance:
            judged = [
                TuningSet(collections.enter_context(indexed(bench, name)), bench.dataset(name), split)
                for name, split in TUNED_ON.items()
            ]
            tuning = tune(judged, FUSED, most=MOST_TUNED, report=advance)
        path.write_text(json.dumps(tuning.record(), indent=1), encoding="utf-8")
    return str(json.loads(path.read_text(encoding="utf-8"))["fusion"])


def measure(bench: Bench, name: str, systems: Mapping[str, System]) -> None:
    """Measure every system on one collection, unless it is recorded already."""
    dataset = bench.dataset(name)
    known = {"commit": commit(), "model": bench.fingerprint, "precision": bench.precision, "data": data_hash(dataset, SPLIT)}
    known["dataset"] = name
    queries, qrels = sampled(dataset)
    with indexed(bench, name) as collection:
        for system, how in systems.items():
            facts = known | {"system": system, "fusion": how.fusion}
            path = values_file(bench, name, system)
            if path.exists() and any(all(row.get(key) == value for key, value in facts.items()) for row in rows("quality")):
                continue
            run = answers(collection, queries, how, f"{name}, {system}")
            values = per_query(run, qrels, MEASURES)
            path.write_text(json.dumps(values[str(MEASURES[0])]), encoding="utf-8")
            averages = {name: round(value, 4) for name, value in means(values).items()}
            counts = {"queries": len(queries), "queries_in_all": len(dataset.queries(SPLIT))}
            counts |= {"documents": len(collection), "passages": collection.info()["passages"]}
            fields = {key: value for key, value in facts.items() if key != "commit"} | {"split": SPLIT, **counts}
            record("quality", **fields, **averages, threads=len(os.sched_getaffinity(0)), seed=SEED, repeats=1)


def sampled(dataset: Beir) -> tuple[dict[str, str], dict[str, dict[str, int]]]:
    """Test questions and their judgements; more than `MOST_QUERIES` are sampled with a fixed seed."""
    queries, qrels = dataset.queries(SPLIT), dataset.qrels(SPLIT)
    ids = sorted(queries)
    if len(ids) > MOST_QUERIES:
        ids = random.Random(SEED).sample(ids, MOST_QUERIES)
    return {query: queries[query] for query in ids}, {query: dict(qrels[query]) for query in ids if query in qrels}


def values_file(bench: Bench, name: str, system: str) -> Path:
    """File of the per-query nDCG@10 values."""
    return bench.folder(name) / f"{system.replace(' ', '-')}.json"


def answers(collection: Collection, queries: Mapping[str, str], how: System, what: str, depth: int = DEPTH) -> Run:
    """Search all queries in batches on several threads; each has at most `depth` results."""

    def search(batch: Sequence[str]) -> Run:
        texts = [queries[query_id] for query_id in batch]
        results = collection.search(texts, depth, lenses=how.lenses, params=how.params, fusion=how.fusion)
        # Ranks as scores preserve the tie-breaking of the search.
        return {
            query_id: {hit.doc_id: float(depth - rank) for rank, hit in enumerate(hits)}
            for query_id, hits in zip(batch, results, strict=True)
        }

    run: Run = {}
    ids = list(queries)
    with progress_bar(what, len(ids), "queries") as advance, ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        for batch in threads.map(search, [ids[start : start + AT_ONCE] for start in range(0, len(ids), AT_ONCE)]):
            run |= batch
            advance(len(batch))
    return run


def default_system(model: ModelConfig) -> System:
    """The search without options of a collection that was created without options."""
    lenses = default_lenses(model.heads)
    return System(lenses, fusion=model.fusion.get(fused_name(lenses), "none"))


def compare(bench: Bench, names: Sequence[str], systems: Mapping[str, System]) -> None:
    """Test the best fusion, by mean over collections, against each lens, paired over all queries."""
    by_system = {
        system: [json.loads(values_file(bench, name, system).read_text(encoding="utf-8")) for name in names]
        for system in systems
    }
    averages = {system: mean(mean(values.values()) for values in sets) for system, sets in by_system.items()}
    fusions = [system for system in systems if len(systems[system].lenses) > 1]
    lenses = [system for system in systems if system not in fusions]
    if not fusions or not lenses:
        return
    best = max(fusions, key=averages.__getitem__)
    flat = {system: np.array([value for values in sets for value in values.values()]) for system, sets in by_system.items()}
    differences = np.stack([flat[best] - flat[lens] for lens in lenses], axis=1)
    data = file_hash(*(bench.dataset(name).corpus_path for name in names))
    p_values = holm(randomisation_p(differences).tolist())
    for lens, difference, p_value in zip(lenses, differences.mean(axis=0), p_values, strict=True):
        facts = {"model": bench.fingerprint, "datasets": names, "measure": str(MEASURES[0]), "queries": len(differences)}
        facts |= {"system": best, "baseline": lens, "difference": round(float(difference), 4), "p_value": round(p_value, 5)}
        record("significance", **facts, data=data, threads=1, seed=SEED, repeats=ROUNDS)


def selected(bench: Bench, names: Sequence[str]) -> dict[str, System]:
    """Systems by name, those with fusions of the model or tuned ones with their weights; without tuning data the tuned
    fusion is recorded as missing."""
    systems = {name: SYSTEMS[name] for name in names}
    if DEFAULT_SEARCH in systems:
        systems[DEFAULT_SEARCH] = default_system(ModelFolder.open(resolve_model(bench.model)).config)
    if TUNED in systems:
        try:
            systems[TUNED] = System(FUSED, fusion=tuned_fusion(bench))
        except BadInput as error:
            record_missing("quality", TUNED, str(error))
            del systems[TUNED]
    return systems


def main() -> None:
    """Encode, search, measure and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data(parser, "--data", "", "folder of the judged collections")
    parser.add_argument("--sets", nargs="+", default=list(SETS), metavar="NAME", help=f"some of {', '.join(SETS)}, or folders")
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=SYSTEMS, metavar="NAME", help="default: all")
    parser.add_argument("--model", default=DEFAULT_MODEL, help="bundled model or model folder")
    parser.add_argument("--cache", type=Path, default=Path("runs/quality"), help="folder of the collections")
    options = parser.parse_args()
    try:
        folder = ModelFolder.open(resolve_model(options.model))
        bench = Bench(options.data, options.cache, options.model, folder.fingerprint, folder.config.precision)
        for name in options.sets:
            bench.dataset(name).queries(SPLIT)  # fail before encoding for hours
        systems = selected(bench, options.systems)
        for name in options.sets:
            measure(bench, name, {key: how for key, how in systems.items() if key != EXACT or name in AVERAGED})
        averaged = [name for name in AVERAGED if name in options.sets]
        if averaged:
            compare(bench, averaged, systems)
    except TrilensError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
