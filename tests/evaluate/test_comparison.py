"""Pairwise comparison of runs: means, wins, p-values, and queries that are missing, unjudged or without relevant documents."""

import json

import numpy as np
import pytest

from trilens.errors import BadInput
from trilens.evaluate.comparison import compare
from trilens.evaluate.measures import JUDGED, means, parse_measures, per_query
from trilens.evaluate.runs import Run

QRELS = {f"q{n}": {"good": 1, "bad": 0} for n in range(8)}
GOOD: Run = {query: {"good": 2.0, "bad": 1.0} for query in QRELS}
BAD: Run = {query: {"good": 1.0, "bad": 2.0} for query in QRELS}


def random_run(seed: int, queries: int = 40) -> Run:
    random = np.random.default_rng(seed)
    return {f"q{n}": {f"d{m}": float(random.normal()) for m in range(30)} for n in range(queries)}


def test_a_run_that_is_better_on_every_query() -> None:
    comparison = compare({"good": GOOD, "bad": BAD}, QRELS, ["RR", "P@1"])
    [reciprocal, first] = comparison.pairs
    assert (reciprocal.difference, reciprocal.low, reciprocal.high) == (0.5, 0.5, 0.5)
    assert (reciprocal.wins, reciprocal.ties, reciprocal.losses) == (8, 0, 0)
    assert reciprocal.p == 2 / 2**8  # two of 2^8 sign assignments
    assert reciprocal.p_holm == first.p_holm == 2 * 2 / 2**8
    assert reciprocal.significant
    assert comparison.ranking == ["good", "bad"]
    assert comparison.pair("bad", "good").difference == -0.5
    assert comparison.pair("bad", "good").losses == 8


def test_two_identical_runs_are_all_ties_with_p_one() -> None:
    comparison = compare({"a": GOOD, "b": GOOD}, QRELS, JUDGED)
    for pair in comparison.pairs:
        assert (pair.p, pair.p_holm, pair.difference, pair.wins, pair.ties, pair.losses) == (1, 1, 0, 0, 8, 0)


def test_means_equal_those_of_the_measures() -> None:
    qrels = {f"q{n}": {f"d{m}": m % 3 for m in range(n % 7, 30, 4)} for n in range(45)}  # five queries are not in the runs
    runs = {"a": random_run(1), "b": random_run(2)}
    comparison = compare(runs, qrels, JUDGED)
    for name, run in runs.items():
        for measure, value in means(per_query(run, qrels, parse_measures(JUDGED))).items():
            assert comparison.mean(name, measure) == pytest.approx(value, abs=1e-12)


def test_queries_absent_from_a_run_count_as_zero() -> None:
    half = {query: scores for query, scores in GOOD.items() if query < "q4"}
    comparison = compare({"all": GOOD, "half": half}, QRELS, ["RR"])
    assert comparison.mean("half") == 0.5
    assert comparison.absent == {"all": [], "half": ["q4", "q5", "q6", "q7"]}


def test_queries_without_judgements_are_ignored() -> None:
    more = GOOD | {"other": {"good": 1.0}}
    comparison = compare({"more": more, "bad": BAD}, QRELS, ["RR"])
    assert comparison.mean("more") == 1.0
    assert comparison.unjudged == {"more": ["other"], "bad": []}


def test_queries_without_a_relevant_document_are_listed() -> None:
    qrels = {"q1": {"a": 1}, "q2": {"a": 0}}
    runs = {"one": {"q1": {"a": 1.0}, "q2": {"a": 1.0}}, "two": {"q1": {"b": 1.0}, "q2": {"b": 1.0}}}
    comparison = compare(runs, qrels, ["nDCG@10"])
    assert comparison.nothing_relevant == ["q2"]
    with pytest.raises(BadInput, match="no document is judged relevant"):
        compare(runs, {"q1": {"a": 0}, "q2": {"a": -1}}, ["nDCG@10"])


def test_holm_correction_is_over_all_pairs_and_measures() -> None:
    runs = {name: random_run(seed) for seed, name in enumerate("abc")}
    qrels = {f"q{n}": {f"d{m}": 1 for m in range(5)} for n in range(40)}
    comparison = compare(runs, qrels, ["nDCG@10", "AP"])
    assert len(comparison.pairs) == 6
    smallest = min(comparison.pairs, key=lambda pair: pair.p)
    assert smallest.p_holm == pytest.approx(min(1.0, 6 * smallest.p))
    assert len(compare(runs, qrels, ["nDCG@10", "AP"], tested=["AP"]).pairs) == 3


def test_values_keep_the_order_of_the_judgements() -> None:
    runs = {"one": {"b": {"x": 1.0}, "a": {"y": 1.0}}, "other": {"c": {"x": 1.0}}}
    comparison = compare(runs, {"a": {"x": 1}, "b": {"x": 1}, "c": {"x": 1}}, ["RR"])
    assert [comparison.values[name]["RR"].tolist() for name in runs] == [[0, 1, 0], [0, 0, 1]]


def test_incomparable_runs_are_refused() -> None:
    with pytest.raises(BadInput, match="measure is 'Hit@5'; expected a measure over qrels"):
        compare({"a": GOOD, "b": BAD}, QRELS, ["Hit@5"])
    with pytest.raises(BadInput, match="measure is 'beauty'"):
        compare({"a": GOOD, "b": BAD}, QRELS, ["beauty"])
    with pytest.raises(BadInput, match="run b has none of the 8 judged queries"):
        compare({"a": GOOD, "b": {"other": {"good": 1.0}}}, QRELS, ["RR"])
    with pytest.raises(BadInput, match="the qrels are empty"):
        compare({"a": GOOD, "b": BAD}, {}, ["RR"])


def test_json() -> None:
    comparison = compare({"good": GOOD, "bad": BAD, "worse": {"q0": {"bad": 1.0}}}, QRELS, ["RR"])
    decoded = json.loads(json.dumps(comparison.to_json()))
    assert [run["RR"] for run in decoded["runs"]] == [1.0, 0.5, 0.0]
    assert decoded["pairs"][0]["significant"]
