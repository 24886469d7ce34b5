"""Measures by hand and against trec_eval, and the parsing of their names.

pytrec_eval wraps the C code of trec_eval. If the trec_eval program itself is in PATH or named by TREC_EVAL (the wheel of
pyserini 0.40.0 contains it in its jar), it reads the run files that `trilens eval` writes.
"""

import math
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval

from tests.development_data import DATA
from trilens.collection import Collection
from trilens.datasets.beir import Beir
from trilens.datasets.dataset import Split
from trilens.datasets.qrels import Qrels, read_qrels
from trilens.datasets.queries import Query
from trilens.errors import BadInput
from trilens.evaluate.evaluation import Task, evaluate
from trilens.evaluate.measures import (
    choose_measures,
    depth_of,
    hits_per_query,
    means,
    parse_measure,
    parse_measures,
    per_query,
)
from trilens.evaluate.runs import Run, write_trec
from trilens.evaluate.variants import parse_variant
from trilens.read.readers import read

DEFAULTS = ["nDCG@10", "R@100", "AP", "RR@10"]
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


def test_measures_by_hand() -> None:
    qrels = {"a": {"x": 1, "y": 1}, "b": {"z": 1}}
    values = means(per_query({"a": {"n": 3.0, "x": 2.0}, "b": {"z": 1.0}}, qrels, parse_measures(DEFAULTS)))
    # a: one of two relevant documents, at rank 2; b: perfect.
    ndcg_a = (1 / math.log2(3)) / (1 + 1 / math.log2(3))
    assert values["nDCG@10"] == pytest.approx((ndcg_a + 1) / 2)
    assert values["R@100"] == pytest.approx((1 / 2 + 1) / 2)
    assert values["AP"] == pytest.approx((1 / 2 * 1 / 2 + 1) / 2)
    assert values["RR@10"] == pytest.approx((1 / 2 + 1) / 2)


@pytest.mark.parametrize("run", [{"a": {"x": 1.0}, "b": {}}, {"a": {"x": 1.0}}, {"a": {"x": 1.0}, "unjudged": {"x": 1.0}}])
def test_queries_without_results_or_missing_count_as_zero(run: dict[str, dict[str, float]]) -> None:
    values = per_query(run, {"a": {"x": 1}, "b": {"z": 1}}, parse_measures(DEFAULTS))
    assert values["nDCG@10"] == {"a": 1.0, "b": 0.0}
    assert means(values) == dict.fromkeys(DEFAULTS, 0.5)


def test_all_measures_break_ties_alike() -> None:
    """Scores equal in float32 are ties, broken by descending document id, whichever provider computes the measure."""
    run = {"q": {"a": 1.00000001, "b": 1.0}}
    for relevant, rank in (("b", 1), ("a", 2)):
        values = means(per_query(run, {"q": {relevant: 1}}, parse_measures(["RR", "RR@10", "AP", "P@1"])))
        assert values == {"RR": 1 / rank, "RR@10": 1 / rank, "AP": 1 / rank, "P@1": float(rank == 1)}


def test_hits_by_hand() -> None:
    values = hits_per_query({"a": 1, "b": 5, "c": 6, "d": None}, parse_measures(["Hit@1", "Hit@5"]))
    assert values["Hit@5"] == {"a": 1.0, "b": 1.0, "c": 0.0, "d": 0.0}
    assert means(values) == {"Hit@1": 0.25, "Hit@5": 0.5}
    assert means(values, {"c", "d"}) == {"Hit@1": 0.0, "Hit@5": 0.0}
    assert means(values, {"e"}) == {}


def test_aliases_are_resolved_and_duplicates_dropped() -> None:
    assert [str(measure) for measure in parse_measures(["MAP", "AP", "MRR@10", "Recall@50", " Hit@20 "])] == [
        "AP",
        "RR@10",
        "R@50",
        "Hit@20",
    ]


@pytest.mark.parametrize(
    "name",
    [
        "",
        "beauty",
        "nDCG@",
        "nDCG@0",
        "nDCG@-5",
        "nDCG@ten",
        "nDCG@1.5",
        "R",
        "P(x=1)@5",
        "NumQ",
        "alpha_nDCG@10",
        "Hit",
        "Hit@0",
        "1+1",
    ],
)
def test_unknown_measures_are_refused(name: str) -> None:
    with pytest.raises(BadInput, match="expected one such as nDCG@10"):
        parse_measure(name)


def test_measures_must_suit_the_split() -> None:
    judged = Split("s", {"q": Query("x")}, {"q": {"d": 1}})
    answered = Split("s", {"q": Query("x", answers=("y",))}, {})
    assert [str(measure) for measure in choose_measures([], judged)] == DEFAULTS
    assert [str(measure) for measure in choose_measures([], answered)] == ["Hit@1", "Hit@5", "Hit@10", "Hit@20", "Hit@100"]
    with pytest.raises(BadInput, match=r"Hit@5 needs answers"):
        choose_measures(["Hit@5"], judged)
    with pytest.raises(BadInput, match=r"nDCG@10 needs judgements"):
        choose_measures(["nDCG@10"], answered)


def test_the_search_depth_covers_all_cutoffs() -> None:
    assert depth_of(parse_measures(["AP", "RR@10"])) == 100
    assert depth_of(parse_measures(["AP", "R@1000"])) == 1000
    assert depth_of(parse_measures(["Hit@200"]), 10) == 200


@pytest.fixture(scope="module", params=LENSES)
def real_runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Run]]:
    """A qrels file, and the runs of every lens and fusion on its queries."""
    if not DATA.is_dir():
        pytest.skip(f"there is no folder {DATA}")
    folder, lenses = DATA / request.param, LENSES[request.param]
    variants = [parse_variant(text, lenses) for text in (*lenses, *(FUSIONS if len(lenses) > 1 else []))]
    with Collection.create(tmp_path_factory.mktemp(request.param) / "c", lenses=lenses, threads=1) as collection:
        collection.ingest(read([folder]))
        results = evaluate(collection, Task(Beir(folder).split("test")), variants)
    return folder / "qrels" / "test.tsv", {result.lens: result.run for result in results}


def test_measures_of_real_runs_equal_trec_eval(real_runs: tuple[Path, dict[str, Run]], tmp_path: Path) -> None:
    path, runs = real_runs
    for name, run in runs.items():
        assert_equals_trec_eval(run, read_qrels(path), tmp_path / f"{name.partition(':')[0]}.trec")


def test_a_run_keeps_the_order_of_the_search_results(tmp_path: Path) -> None:
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
    assert_equals_trec_eval(result.run, {"q": {"d0": 1}}, tmp_path / "ties.trec")


@pytest.mark.parametrize("seed", range(5))
def test_ties_grades_gaps_and_unjudged_documents_equal_trec_eval(seed: int, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)
    docs = [f"{prefix}{number}" for number in range(30) for prefix in ("d", "D", "é", "-")]
    qrels: Qrels = {}
    run: Run = {}
    for query in (f"q{number}" for number in range(40)):
        judged = random.choice(docs, random.integers(1, 20), replace=False)
        qrels[query] = {str(doc): int(random.integers(-1, 4)) for doc in judged}
        if random.random() > 0.2:  # some queries are missing from the run
            ranked = random.choice(docs, random.integers(0, 60), replace=False)
            # Scores that are equal, equal only in float32, or different in the seventh digit.
            run[query] = {str(doc): float(random.integers(1, 5)) * (1 + random.choice([0, 1e-12, 3e-7])) for doc in ranked}
    assert_equals_trec_eval(run, qrels, tmp_path / "made.trec")


def assert_equals_trec_eval(run: Run, qrels: Qrels, path: Path) -> None:
    """Every measure of every query equals that of trec_eval."""
    ours = per_query(run, qrels, parse_measures([*NAMES, "RR@10"]))
    theirs = pytrec_eval.RelevanceEvaluator(qrels, set(NAMES.values())).evaluate(run)
    for name, their_name in NAMES.items():
        for query in qrels:
            expected = theirs[query][their_name] if query in theirs else 0.0
            assert ours[name][query] == pytest.approx(expected, abs=1e-9), (name, query)
    for query in qrels:  # trec_eval has no cutoff for reciprocal rank
        full = ours["RR"][query]
        assert ours["RR@10"][query] == (full if full > 1 / 10.5 else 0.0)
    if PROGRAM is not None:
        write_trec(run, path, "tag")
        assert means(ours) == pytest.approx(program_means(path, qrels) | {"RR@10": means(ours)["RR@10"]}, abs=6e-5)


def program_means(run: Path, qrels: Qrels) -> dict[str, float]:
    """Means over all judged queries (-c) by the trec_eval program, which prints four digits."""
    qrels_file = run.with_suffix(".qrels")
    lines = (f"{query} 0 {doc} {grade}\n" for query, grades in qrels.items() for doc, grade in grades.items())
    qrels_file.write_text("".join(lines), encoding="utf-8")
    options = [
        option for name in ("ndcg_cut.10", "ndcg", "recall.100", "map", "map_cut.10", "recip_rank") for option in ("-m", name)
    ]
    command = [str(PROGRAM), "-c", *options, "-m", "P.5", "-m", "success.1,10", str(qrels_file), str(run)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    values = {line.split()[0]: float(line.split()[2]) for line in printed.splitlines()}
    return {name: values[their_name] for name, their_name in NAMES.items()}
