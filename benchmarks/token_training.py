"""XTR training against MaxSim training: the `xtr` search at few probes with the weights of both.

    ./scripts/bench token-training --runs runs/recipes --data /data/squad-retrieval

Needs the runs of `benchmarks.recipes` that it compares. The twin was trained by MaxSim on the same examples in the same order;
both start from `untrained`, which has a random projection. All search the paragraphs of SQuAD's dev articles, which are not in
the training data, for those of their questions that were not used to develop the recipe. Paired randomisation tests compare
XTR's weights with the others in Success@10, R@100 and RR@10: over the mean of few probes, which is the main question, and for
each number of probes.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from ir_measures import RR, R, Success
from numpy.typing import NDArray

from benchmarks.record import add_data, file_hash, record
from trilens import Collection, Document, MultiParams
from trilens.datasets.beir import Beir
from trilens.datasets.qrels import Qrels
from trilens.evaluate.measures import per_query
from trilens.evaluate.runs import Run
from trilens.evaluate.significance import SEED, randomisation_p
from trilens.read.readers import read
from trilens.store.config import WORD_PASSAGES
from trilens.train.recipe import read_recipe
from trilens.train.run import starting_model

RUNS = {"xtr": "xtr", "maxsim": "xtrs-twin-by-MaxSim"}
UNTRAINED = "untrained"
FEW = (1, 2, 4, 8)
PROBES = (*FEW, 32, None)  # None: exact search
LOOKED_AT = 4000  # questions used to develop the recipe
MEASURES = (Success @ 1, Success @ 10, RR @ 10, R @ 100)
COMPARED = (Success @ 10, R @ 100, RR @ 10)

ByProbes = dict[int | str | None, NDArray[np.float64]]
"""number of probes → per-query values, (queries, measures); "few" is the mean over FEW"""


def main() -> None:
    """Search with all weights, compare and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs/recipes"), help="folder of the recipes' runs")
    add_data(parser, "--data", "squad-retrieval", "judged paragraphs")
    parser.add_argument("--questions", type=int, help="limit of questions, to try the script")
    options = parser.parse_args()
    dataset = Beir(options.data)
    unseen = list(dataset.qrels("test").items())[LOOKED_AT:]
    qrels = dict(unseen[: options.questions])
    queries = {query: text for query, text in dataset.queries("test").items() if query in qrels}
    paragraphs = {doc_id for judged in dataset.qrels("test").values() for doc_id in judged}
    documents = [document for document in read([dataset.corpus_path]) if document.doc_id in paragraphs]
    with tempfile.TemporaryDirectory() as temporary:
        start = starting_model(read_recipe(options.runs / RUNS["xtr"] / "recipe.yaml"))
        start.save_pretrained(temporary, create_model_card=False)
        models = {name: options.runs / folder / "model" for name, folder in RUNS.items()} | {UNTRAINED: Path(temporary)}
        values = {name: measured(model, documents, queries, qrels) for name, model in models.items()}
    known = {"documents": len(documents), "questions": len(queries), "data": file_hash(options.data / "corpus.jsonl")}
    p_values = {
        f"p of {measure} against {name}": p_by_probes(values["xtr"], by_probes, MEASURES.index(measure))
        for measure in COMPARED
        for name, by_probes in values.items()
        if name != "xtr"
    }
    results = {name: json.loads((options.runs / folder / "result.json").read_text("utf-8")) for name, folder in RUNS.items()}
    steps = {name: result["best_step"] for name, result in results.items()} | {UNTRAINED: 0}
    for name, by_probes in values.items():
        for probes, per_measure in by_probes.items():
            means = {str(measure): round(float(per_measure[:, column].mean()), 4) for column, measure in enumerate(MEASURES)}
            facts = {"trained_by": name, "steps": steps[name], "probes": probes, **known}
            if name == "xtr":
                facts |= {key: of_probes[probes] for key, of_probes in p_values.items()}
            record("token-training", **facts, threads=len(os.sched_getaffinity(0)), seed=SEED, repeats=1, **means)


def p_by_probes(first: ByProbes, second: ByProbes, column: int) -> dict[int | str | None, float]:
    """p-values of the differences in one measure, for each number of probes."""
    differences = np.stack([first[probes][:, column] - second[probes][:, column] for probes in first], axis=1)
    return dict(zip(first, (round(p, 5) for p in randomisation_p(differences).tolist()), strict=True))


def measured(model: Path, documents: Sequence[Document], queries: Mapping[str, str], qrels: Qrels) -> ByProbes:
    """Per-query measures of a model for each number of probes."""
    with tempfile.TemporaryDirectory() as temporary:
        exported = Path(temporary) / "model"
        command = ["export", str(model), str(exported), "--precision", "float32", "--no-check"]
        subprocess.run([sys.executable, "-m", "trilens", *command], check=True)
        with Collection.create(
            Path(temporary) / "c", lenses=["multi"], model=str(exported), passages=WORD_PASSAGES
        ) as collection:
            collection.add(documents)
            collection.commit()
            values: ByProbes = {probes: answered(collection, probes, queries, qrels) for probes in PROBES}
    return {"few": np.mean([values[probes] for probes in FEW], axis=0)} | values


def answered(collection: Collection, probes: int | None, queries: Mapping[str, str], qrels: Qrels) -> NDArray[np.float64]:
    """Per-query values, (queries, measures); queries without results count as zero."""
    params = MultiParams(method="exact") if probes is None else MultiParams(method="xtr", reach=probes, probes=probes)
    hits = collection.search(list(queries.values()), 100, lenses=["multi"], params={"multi": params})
    run: Run = {query: {hit.doc_id: hit.score for hit in ranking} for query, ranking in zip(queries, hits, strict=True)}
    values = per_query(run, qrels, MEASURES)
    return np.array([[values[str(measure)][query] for measure in MEASURES] for query in queries])


if __name__ == "__main__":
    main()
