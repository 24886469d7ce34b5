"""What training on retrieved tokens is good for: the `xtr` searcher at few probes, with XTR's weights and those of its twin.

    ./scripts/bench token-training --runs runs/recipes --data /data/squad-retrieval

Needs the runs of `benchmarks.recipes` that it compares. The twin was trained by MaxSim on the same examples in the same order.
Both search the paragraphs of SQuAD's dev articles, which neither was trained on, for the first of their
questions.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import ir_measures
from ir_measures import RR, R, Success

from benchmarks.record import add_data, file_hash, record
from trilens import Collection, MultiParams
from trilens.evaluate.runs import Run
from trilens.text.beir import Beir
from trilens.text.readers import read

RUNS = {"xtr": "xtr", "maxsim": "xtrs-twin-by-MaxSim"}
PROBES = (1, 2, 4, 8, 32)
MEASURES = (Success @ 1, Success @ 10, RR @ 10, R @ 100)


def main() -> None:
    """Search with both."""
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
    for trained_by, folder in RUNS.items():
        with tempfile.TemporaryDirectory() as temporary:
            model = Path(temporary) / "model"
            command = ["export", str(options.runs / folder / "model"), str(model), "--precision", "float32", "--no-check"]
            subprocess.run([sys.executable, "-m", "trilens", *command], check=True)
            with Collection.create(Path(temporary) / "c", lenses=["multi"], model=str(model)) as collection:
                collection.add(documents)
                collection.commit()
                for probes in (*PROBES, None):
                    params = MultiParams("exact") if probes is None else MultiParams("xtr", reach=probes, probes=probes)
                    found = collection.search(list(queries.values()), 100, lenses=["multi"], params={"multi": params})
                    run: Run = {
                        query: {hit.doc_id: hit.score for hit in hits} for query, hits in zip(queries, found, strict=True)
                    }
                    values = ir_measures.calc_aggregate(MEASURES, qrels, run)
                    record(
                        "token-training",
                        trained_by=trained_by,
                        method=params.method,
                        probes=probes,
                        documents=len(documents),
                        questions=len(queries),
                        data=file_hash(options.data / "corpus.jsonl"),
                        threads=len(os.sched_getaffinity(0)),
                        seed=None,
                        repeats=1,
                        **{str(measure): round(values[measure], 4) for measure in MEASURES},
                    )


if __name__ == "__main__":
    main()
