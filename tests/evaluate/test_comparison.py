"""Runs compared: means, wins, and what is told of queries that are not everywhere."""

import json

import numpy as np
import pytest

from trilens.errors import BadInput
from trilens.evaluate.comparison import compare
from trilens.evaluate.markdown import to_markdown
from trilens.evaluate.measures import JUDGED, means, parse_measures, per_query
from trilens.evaluate.runs import Run
from trilens.evaluate.verdict import headline, notes, shown_p, verdict

QRELS = {f"q{n}": {"good": 1, "bad": 0} for n in range(8)}
GOOD: Run = {query: {"good": 2.0, "bad": 1.0} for query in QRELS}
BAD: Run = {query: {"good": 1.0, "bad": 2.0} for query in QRELS}


def random_run(seed: int, queries: int = 40) -> Run:
    random = np.random.default_rng(seed)
    return {f"q{n}": {f"d{m}": float(random.normal()) for m in range(30)} for n in range(queries)}


def test_one_run_that_is_always_better() -> None:
    found = compare({"good": GOOD, "bad": BAD}, QRELS, ["RR", "P@1"])
    [reciprocal, first] = found.pairs
    assert (reciprocal.difference, reciprocal.low, reciprocal.high) == (0.5, 0.5, 0.5)
    assert (reciprocal.wins, reciprocal.ties, reciprocal.losses) == (8, 0, 0)
    assert reciprocal.p == 2 / 2**8  # all signs alike, of eight
    assert reciprocal.p_holm == first.p_holm == 2 * 2 / 2**8
    assert reciprocal.significant
    assert found.ranking == ["good", "bad"]
    assert found.pair("bad", "good").difference == -0.5
    assert found.pair("bad", "good").losses == 8


def test_two_identical_runs_are_all_ties_with_p_one() -> None:
    found = compare({"a": GOOD, "b": GOOD}, QRELS, JUDGED)
    for pair in found.pairs:
        assert (pair.p, pair.p_holm, pair.difference, pair.wins, pair.ties, pair.losses) == (1, 1, 0, 0, 8, 0)
    assert headline(found) == "a and b are level"
    assert "equally well" in verdict(found)[1]


def test_means_are_those_that_eval_reports() -> None:
    qrels = {f"q{n}": {f"d{m}": m % 3 for m in range(n % 7, 30, 4)} for n in range(45)}  # five more than the runs have
    runs = {"a": random_run(1), "b": random_run(2)}
    found = compare(runs, qrels, JUDGED)
    for name, run in runs.items():
        for told, value in means(per_query(run, qrels, parse_measures(JUDGED))).items():
            assert found.mean(name, told) == pytest.approx(value, abs=1e-12)


def test_absent_queries_count_as_zero_and_are_told() -> None:
    half = {query: found for query, found in GOOD.items() if query < "q4"}
    found = compare({"all": GOOD, "half": half}, QRELS, ["RR"])
    assert found.mean("half") == 0.5
    assert found.absent == {"all": [], "half": ["q4", "q5", "q6", "q7"]}
    assert notes(found) == ["half lacks 4 judged queries (q4, q5, q6, q7); each counts as zero"]


def test_queries_without_judgements_are_told_and_change_nothing() -> None:
    more = GOOD | {"other": {"good": 1.0}}
    found = compare({"more": more, "bad": BAD}, QRELS, ["RR"])
    assert found.mean("more") == 1.0
    assert found.unjudged == {"more": ["other"], "bad": []}
    assert notes(found) == ["more has 1 query (other) without judgements; they cannot count"]


def test_queries_without_a_relevant_document_are_told() -> None:
    qrels = {"q1": {"a": 1}, "q2": {"a": 0}}
    runs = {"one": {"q1": {"a": 1.0}, "q2": {"a": 1.0}}, "two": {"q1": {"b": 1.0}, "q2": {"b": 1.0}}}
    found = compare(runs, qrels, ["nDCG@10"])
    assert found.nothing_relevant == ["q2"]
    assert any("without a relevant document" in note for note in notes(found))
    with pytest.raises(BadInput, match="no document is judged relevant"):
        compare(runs, {"q1": {"a": 0}, "q2": {"a": -1}}, ["nDCG@10"])


def test_holm_is_over_all_pairs_and_measures() -> None:
    runs = {name: random_run(seed) for seed, name in enumerate("abc")}
    qrels = {f"q{n}": {f"d{m}": 1 for m in range(5)} for n in range(40)}
    found = compare(runs, qrels, ["nDCG@10", "AP"])
    assert len(found.pairs) == 6
    smallest = min(found.pairs, key=lambda pair: pair.p)
    assert smallest.p_holm == pytest.approx(min(1.0, 6 * smallest.p))
    assert len(compare(runs, qrels, ["nDCG@10", "AP"], tested=["AP"]).pairs) == 3


def test_values_keep_the_order_of_the_judgements() -> None:
    runs = {"one": {"b": {"x": 1.0}, "a": {"y": 1.0}}, "other": {"c": {"x": 1.0}}}
    found = compare(runs, {"a": {"x": 1}, "b": {"x": 1}, "c": {"x": 1}}, ["RR"])
    assert [found.values[name]["RR"].tolist() for name in runs] == [[0, 1, 0], [0, 0, 1]]


def test_what_cannot_be_compared() -> None:
    with pytest.raises(BadInput, match="measure is 'Hit@5'; expected measures of judgements"):
        compare({"a": GOOD, "b": BAD}, QRELS, ["Hit@5"])
    with pytest.raises(BadInput, match="measure is 'beauty'"):
        compare({"a": GOOD, "b": BAD}, QRELS, ["beauty"])
    with pytest.raises(BadInput, match="run b has none of the 8 judged queries"):
        compare({"a": GOOD, "b": {"other": {"good": 1.0}}}, QRELS, ["RR"])
    with pytest.raises(BadInput, match="no judgements"):
        compare({"a": GOOD, "b": BAD}, {}, ["RR"])


def test_json_and_words() -> None:
    found = compare({"good": GOOD, "bad": BAD, "worse": {"q0": {"bad": 1.0}}}, QRELS, ["RR"])
    told = json.loads(json.dumps(found.to_json()))
    assert [run["RR"] for run in told["runs"]] == [1.0, 0.5, 0.0]
    assert told["pairs"][0]["significant"]
    assert headline(found) == "good wins"
    assert verdict(found)[0] == "good reaches RR 1.000 over 8 queries, 0.500 (100.0 %) more than the next, bad."
    assert verdict(found)[2] == "Of the others, good is significantly better than worse."
    assert [shown_p(p) for p in (1.0, 0.25, 0.0312, 0.00123, 0.00001)] == [
        "p = 1",
        "p = 0.250",
        "p = 0.031",
        "p = 0.0012",
        "p < 0.0001",
    ]


def test_a_name_breaks_no_table_in_markdown() -> None:
    text = to_markdown(compare({"a|<b>*": GOOD, "bad": BAD}, QRELS, ["RR"]), [], "a|<b>* and bad")
    assert "| a\\|\\<b>\\* | 1.0000 |" in text
    assert "<b>" not in text.replace("\\<b>", "")
