"""Our measures are trec_eval's: on real runs of lenses and fusions, and on runs made of ties, grades and gaps.

pytrec_eval is trec_eval's own C code behind Python. Where the program itself is there, in PATH or named by TREC_EVAL (the jar
in the wheel of pyserini 0.40.0 holds it), it reads the very files that `trilens eval` writes.
"""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval

from trilens.collection import Collection
from trilens.evaluate.evaluation import Task, evaluate
from trilens.evaluate.measures import means, parse_measures, per_query
from trilens.evaluate.runs import Run, write_trec
from trilens.evaluate.variants import parse_variant
from trilens.text.beir import Beir
from trilens.text.qrels import Qrels, read_qrels
from trilens.text.readers import read

DATA = Path("/work/shared/data")
PROGRAM = os.environ.get("TREC_EVAL") or shutil.which("trec_eval")
NAMES = {
    "nDCG@10": "ndcg_cut_10",
    "nDCG": "ndcg",
    "R@100": "recall_100",
    "AP": "map",
    "AP@10": "map_cut_10",
    "RR": "recip_rank",
    "P@5": "P_5",
    "Success@1": "success_1",
    "Success@10": "success_10",
}
LENSES = {"adi": ["bm25", "dense"], "cranfield": ["bm25"], "nq-utd": ["bm25"]}
FUSIONS = ["rrf", "weighted:bm25=1,dense=20"]


@pytest.fixture(scope="module", params=LENSES)
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Run]]:
    """A file of judgements, and what every lens and fusion found for its queries."""
    if not DATA.exists():
        pytest.skip("the development data is not here")
    folder, lenses = DATA / request.param, LENSES[request.param]
    variants = [parse_variant(text, lenses) for text in (*lenses, *(FUSIONS if len(lenses) > 1 else []))]
    with Collection.create(tmp_path_factory.mktemp(request.param) / "c", lenses=lenses, threads=1) as collection:
        collection.ingest(read([folder]))
        results = evaluate(collection, Task(Beir(folder).split("test")), variants)
    return folder / "qrels" / "test.tsv", {result.lens: result.run for result in results}


def test_real_runs_have_the_measures_of_trec_eval(found: tuple[Path, dict[str, Run]], tmp_path: Path) -> None:
    path, runs = found
    for name, run in runs.items():
        agrees(run, read_qrels(path), tmp_path / f"{name.partition(':')[0]}.trec")


def test_a_run_keeps_the_order_in_which_a_search_returned_it(tmp_path: Path) -> None:
    with Collection.create(tmp_path / "c", lenses=["bm25"]) as collection:
        (tmp_path / "corpus.jsonl").write_text("".join(f'{{"_id": "d{n}", "text": "same words"}}\n' for n in range(20)))
        collection.ingest(read([tmp_path / "corpus.jsonl"]))
        (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "words"}\n')
        (tmp_path / "qrels").mkdir()
        (tmp_path / "qrels" / "test.tsv").write_text("q\td0\t1\n")
        (result,) = evaluate(collection, Task(Beir(tmp_path).split("test")), [parse_variant("bm25", ["bm25"])])
        (hits,) = collection.search(["words"], 100)
    assert hits[0].score == hits[-1].score
    assert hits[0].doc_id == "d0"
    assert result.measures["RR@10"] == 1.0
    agrees(result.run, {"q": {"d0": 1}}, tmp_path / "ties.trec")


@pytest.mark.parametrize("seed", range(5))
def test_ties_grades_gaps_and_unjudged_documents(seed: int, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)
    docs = [f"{prefix}{number}" for number in range(30) for prefix in ("d", "D", "é", "-")]
    qrels: Qrels = {}
    run: Run = {}
    for query in (f"q{number}" for number in range(40)):
        judged = random.choice(docs, random.integers(1, 20), replace=False)
        qrels[query] = {str(doc): int(random.integers(-1, 4)) for doc in judged}
        if random.random() > 0.2:  # some queries are missing from the run
            ranked = random.choice(docs, random.integers(0, 60), replace=False)
            # Scores that are equal, that are equal in 32 bits alone, and that differ in the seventh digit.
            run[query] = {str(doc): float(random.integers(1, 5)) * (1 + random.choice([0, 1e-12, 3e-7])) for doc in ranked}
    agrees(run, qrels, tmp_path / "made.trec")


def agrees(run: Run, qrels: Qrels, path: Path) -> None:
    """Every measure of every query is what trec_eval says."""
    ours = per_query(run, qrels, parse_measures([*NAMES, "RR@10"]))
    theirs = pytrec_eval.RelevanceEvaluator(qrels, set(NAMES.values())).evaluate(run)
    for name, their_name in NAMES.items():
        for query in qrels:
            expected = theirs[query][their_name] if query in theirs else 0.0
            assert ours[name][query] == pytest.approx(expected, abs=1e-9), (name, query)
    for query in qrels:  # trec_eval has no cutoff for this one
        full = ours["RR"][query]
        assert ours["RR@10"][query] == (full if full > 1 / 10.5 else 0.0)
    if PROGRAM is not None:
        write_trec(run, path, "tag")
        assert means(ours) == pytest.approx(says_the_program(path, qrels) | {"RR@10": means(ours)["RR@10"]}, abs=6e-5)


def says_the_program(run: Path, qrels: Qrels) -> dict[str, float]:
    """Means over all judged queries (-c), which it prints with four digits."""
    judgements = run.with_suffix(".qrels")
    lines = (f"{query} 0 {doc} {grade}\n" for query, judged in qrels.items() for doc, grade in judged.items())
    judgements.write_text("".join(lines), encoding="utf-8")
    options = [
        option for name in ("ndcg_cut.10", "ndcg", "recall.100", "map", "map_cut.10", "recip_rank") for option in ("-m", name)
    ]
    command = [str(PROGRAM), "-c", *options, "-m", "P.5", "-m", "success.1,10", str(judgements), str(run)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    values = {line.split()[0]: float(line.split()[2]) for line in printed.splitlines()}
    return {name: values[their_name] for name, their_name in NAMES.items()}
