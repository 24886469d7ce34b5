"""What training on retrieved tokens is good for: the `xtr` searcher at few probes, with XTR's weights and those of its twin.

    ./scripts/bench token-training --runs runs/recipes --data /data/squad-retrieval

Needs the runs of `benchmarks.recipes` that it compares. The twin was trained by MaxSim on the same examples in the same order.
Both search the paragraphs of SQuAD's dev articles, which neither was trained on, for the first of their
questions. Whether the share of questions that find their paragraph differs by more than luck is told by a paired randomisation
test for each number of probes.
"""

import argparse
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
from trilens.evaluate.measures import per_query
from trilens.evaluate.runs import Run
from trilens.evaluate.significance import SEED, randomisation_p
from trilens.text.beir import Beir
from trilens.text.qrels import Qrels
from trilens.text.readers import read

RUNS = {"xtr": "xtr", "maxsim": "xtrs-twin-by-MaxSim"}
PROBES = (1, 2, 4, 8, 32, None)  # None: exact search
MEASURES = (Success @ 1, Success @ 10, RR @ 10, R @ 100)
COMPARED = MEASURES.index(Success @ 10)


def main() -> None:
    """Search with both, compare, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs/recipes"), help="folder of the recipes' runs")
    add_data(parser, "--data", "squad-retrieval", "judged paragraphs")
    parser.add_argument("--questions", type=int, default=4000)
    options = parser.parse_args()
    dataset = Beir(options.data)
    qrels = dict(list(dataset.qrels("test").items())[: options.questions])
    queries = {query: text for query, text in dataset.queries("test").items() if query in qrels}
    searched = {doc_id for judged in dataset.qrels("test").values() for doc_id in judged}
    documents = [document for document in read([dataset.corpus_path]) if document.doc_id in searched]
    values = {name: measured(options.runs / folder, documents, queries, qrels) for name, folder in RUNS.items()}
    first, second = values.values()
    p_values = randomisation_p(np.stack([a[:, COMPARED] - b[:, COMPARED] for a, b in zip(first, second, strict=True)], axis=1))
    known = {"documents": len(documents), "questions": len(queries), "data": file_hash(options.data / "corpus.jsonl")}
    for name, found in values.items():
        for probes, of_queries, p_value in zip(PROBES, found, p_values.tolist(), strict=True):
            means = {str(which): round(float(of_queries[:, at].mean()), 4) for at, which in enumerate(MEASURES)}
            facts = {"trained_by": name, "probes": probes, "p_value": round(p_value, 5), **known}
            record("token-training", **facts, threads=len(os.sched_getaffinity(0)), seed=SEED, repeats=1, **means)


def measured(run: Path, documents: Sequence[Document], queries: Mapping[str, str], qrels: Qrels) -> list[NDArray[np.float64]]:
    """The measures of every query (queries, measures) with the weights of a run, for each number of probes."""
    with tempfile.TemporaryDirectory() as temporary:
        model = Path(temporary) / "model"
        command = ["export", str(run / "model"), str(model), "--precision", "float32", "--no-check"]
        subprocess.run([sys.executable, "-m", "trilens", *command], check=True)
        with Collection.create(Path(temporary) / "c", lenses=["multi"], model=str(model)) as collection:
            collection.add(documents)
            collection.commit()
            return [answered(collection, probes, queries, qrels) for probes in PROBES]


def answered(collection: Collection, probes: int | None, queries: Mapping[str, str], qrels: Qrels) -> NDArray[np.float64]:
    """The measures of every query (queries, measures); one that found nothing counts as zero."""
    params = MultiParams("exact") if probes is None else MultiParams("xtr", reach=probes, probes=probes)
    hits = collection.search(list(queries.values()), 100, lenses=["multi"], params={"multi": params})
    run: Run = {query: {hit.doc_id: hit.score for hit in found} for query, found in zip(queries, hits, strict=True)}
    values = per_query(run, qrels, MEASURES)
    return np.array([[values[str(measure)][query] for measure in MEASURES] for query in queries])


if __name__ == "__main__":
    main()
