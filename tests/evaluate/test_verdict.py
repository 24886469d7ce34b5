"""Verdicts: headline, sentences, remarks and p-values as text."""

from trilens.evaluate.comparison import compare
from trilens.evaluate.runs import Run
from trilens.evaluate.verdict import format_p, headline, method, notes, verdict

QRELS = {f"q{n}": {"good": 1, "bad": 0} for n in range(8)}
GOOD: Run = {query: {"good": 2.0, "bad": 1.0} for query in QRELS}
BAD: Run = {query: {"good": 1.0, "bad": 2.0} for query in QRELS}


def test_a_significant_lead() -> None:
    comparison = compare({"good": GOOD, "bad": BAD, "worse": {"q0": {"bad": 1.0}}}, QRELS, ["RR"])
    assert headline(comparison) == "good wins"
    first, second, third = verdict(comparison)
    assert first == "good reaches RR 1.000 over 8 queries, 0.500 (100.0 %) more than the second-best run, bad."
    # p = 2 / 2^8 for each of the three pairs, times three by Holm.
    assert second == "The lead is significant (p = 0.023, wins/ties/losses 8/0/0)."
    assert third == "Of the remaining runs, good is significantly better than worse."


def test_a_lead_by_chance() -> None:
    mixed = GOOD | {"q0": BAD["q0"]}
    comparison = compare({"good": GOOD, "mixed": mixed, "bad": BAD}, QRELS, ["RR"])
    assert headline(comparison) == "good leads, but not significantly"
    sentence = "The difference is not significant (p = 1, wins/ties/losses 1/7/0) and may be due to chance."
    assert verdict(comparison)[1] == sentence


def test_identical_runs_tie() -> None:
    comparison = compare({"a": GOOD, "b": GOOD}, QRELS, ["RR"])
    assert headline(comparison) == "a and b tie"
    assert verdict(comparison) == ["a and b both reach RR 1.000 over 8 queries.", "Both score equally on every query."]


def test_a_single_run_has_no_verdict_on_significance() -> None:
    comparison = compare({"a": GOOD}, QRELS, ["RR"])
    assert headline(comparison) == "a: RR 1.000"
    assert verdict(comparison) == ["a reaches RR 1.000 over 8 queries; no other run was compared."]


def test_the_remaining_runs_are_listed_by_significance() -> None:
    runs = {"good": GOOD, "same": GOOD, "bad": BAD, "worse": {"q0": {"bad": 1.0}}}
    assert verdict(compare(runs, QRELS, ["RR"]))[2] == "Of the remaining runs, good is significantly better than bad and worse."
    runs = {"good": GOOD, "same": GOOD, "equal": GOOD, "bad": BAD}
    sentence = "Of the remaining runs, good is significantly better than bad, and not significantly better than equal."
    assert verdict(compare(runs, QRELS, ["RR"]))[2] == sentence


def test_notes_list_missing_and_unjudged_queries() -> None:
    half = {query: scores for query, scores in GOOD.items() if query < "q4"}
    comparison = compare({"all": GOOD, "half": half}, QRELS, ["RR"])
    assert notes(comparison) == ["half lacks 4 judged queries (q4, q5, q6, q7); each counts as zero"]
    comparison = compare({"more": GOOD | {"other": {"good": 1.0}}, "bad": BAD}, QRELS, ["RR"])
    assert notes(comparison) == ["more has 1 query (other) without judgements; they are ignored"]
    comparison = compare({"good": GOOD, "bad": BAD}, QRELS | {"q0": {"good": 0}}, ["RR"])
    assert notes(comparison) == ["1 query (q0) without a relevant document in the qrels: zero for every run"]
    comparison = compare({"good": GOOD, "empty": {"q0": {"good": 1.0}}}, QRELS, ["RR"])
    assert notes(comparison) == ["empty lacks 7 judged queries (q1, q2, q3, q4, q5 …); each counts as zero"]


def test_the_method_names_the_correction() -> None:
    assert "with Holm correction over all 2 comparisons" in method(compare({"a": GOOD, "b": BAD}, QRELS, ["RR", "AP"]))
    assert "for a single comparison" in method(compare({"a": GOOD, "b": BAD}, QRELS, ["RR"]))


def test_p_values_as_text() -> None:
    assert [format_p(p) for p in (1.0, 0.25, 0.0312, 0.00123, 0.00001)] == [
        "p = 1",
        "p = 0.250",
        "p = 0.031",
        "p = 0.0012",
        "p < 0.0001",
    ]
