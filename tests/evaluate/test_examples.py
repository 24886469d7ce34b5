"""Selection of example queries, their relevant document and rival, and the gains by word."""

import pytest

from trilens.evaluate.comparison import compare
from trilens.evaluate.examples import ExampleFinder, Reason, with_reasons
from trilens.evaluate.runs import Run
from trilens.explain.explanation import ExplainedPassage, Explanation
from trilens.lenses.parts import Part

QRELS = {"a": {"x": 1, "y": 1}, "b": {"x": 1}, "c": {"x": 1}}
FIRST: Run = {"a": {"x": 3.0, "y": 2.0, "n": 1.0}, "b": {"x": 3.0, "n": 2.0}, "c": {"n": 3.0}}
SECOND: Run = {"a": {"x": 3.0, "n": 2.0, "m": 1.0}, "b": {"x": 3.0, "n": 2.0}, "c": {"n": 3.0, "x": 2.0}}
THIRD: Run = {"a": {"x": 3.0}, "b": {"x": 3.0}, "c": {"x": 3.0}}


def finder(**runs: Run) -> ExampleFinder:
    return ExampleFinder(compare(runs, QRELS, ["AP"]), runs, QRELS, {"a": "the letter a"})


def test_the_largest_difference_comes_first_and_ties_are_omitted() -> None:
    examples = finder(first=FIRST, second=SECOND).largest_differences(10)
    opponents = [(example.query_id, example.winner, example.loser) for example in examples]
    # a: AP 1 against 1/2; c: 0 against 1/2; b is a tie.
    assert opponents == [("a", "first", "second"), ("c", "second", "first")]
    assert [example.query_id for example in finder(first=FIRST, second=SECOND).largest_differences(1)] == ["a"]


def test_the_document_with_the_largest_gain_is_shown() -> None:
    [a, c] = finder(first=FIRST, second=SECOND).largest_differences(2)
    assert (a.query, a.doc_id, a.ranks, a.rival) == ("the letter a", "y", {"first": 2, "second": None}, "n")
    assert (c.query, c.doc_id, c.ranks, c.rival) == (None, "x", {"first": None, "second": 2}, "n")
    assert a.to_json()["values"] == {"first": 1.0, "second": 0.5}


def test_a_win_is_over_all_others() -> None:
    three = finder(first=FIRST, second=SECOND, third=THIRD)
    assert [example.query_id for example in three.wins_of("first", ["second", "third"], 5)] == ["a"]
    wins = three.wins_of("third", ["first", "second"], 5)
    assert [(example.query_id, example.loser) for example in wins] == [("c", "first")]
    assert three.wins_of("second", ["first", "third"], 5) == []


def explanation(doc_id: str, **parts: float) -> Explanation:
    terms = [Part(word, score, "own") for word, score in parts.items()]
    return Explanation("bm25", "q", doc_id, sum(parts.values()), terms, False, ExplainedPassage("", 0, 0, 0))


def test_gains_are_differences_by_word() -> None:
    reason = Reason("bm25", explanation("x", wing=3.0, heat=1.0, dust=0.001), explanation("n", heat=2.5, flow=0.5))
    assert reason.gains == [("wing", 3.0), ("heat", -1.5), ("flow", -0.5)]
    assert sum(gain for _, gain in reason.gains) == pytest.approx(reason.relevant.score - 3.0, abs=0.01)
    assert Reason("bm25", explanation("x", wing=3.0), None).gains == [("wing", 3.0)]


def test_both_documents_are_explained() -> None:
    explained = []

    def explain(query: str, doc_id: str) -> Explanation:
        explained.append((query, doc_id))
        return explanation(doc_id, wing=1.0)

    [example] = finder(first=FIRST, second=SECOND).largest_differences(1)
    [reason] = with_reasons(example, {"bm25": explain}).reasons
    assert sorted(explained) == [("the letter a", "n"), ("the letter a", "y")]
    assert (reason.relevant.doc_id, reason.rival and reason.rival.doc_id) == ("y", "n")
