"""Which queries are shown, which document, and what is said to be the reason."""

import pytest

from trilens.evaluate.comparison import compare
from trilens.evaluate.examples import Finder, Why, with_reasons
from trilens.evaluate.runs import Run
from trilens.explain.explanation import Explanation, Part, Passage

QRELS = {"a": {"x": 1, "y": 1}, "b": {"x": 1}, "c": {"x": 1}}
FIRST: Run = {"a": {"x": 3.0, "y": 2.0, "n": 1.0}, "b": {"x": 3.0, "n": 2.0}, "c": {"n": 3.0}}
SECOND: Run = {"a": {"x": 3.0, "n": 2.0, "m": 1.0}, "b": {"x": 3.0, "n": 2.0}, "c": {"n": 3.0, "x": 2.0}}
THIRD: Run = {"a": {"x": 3.0}, "b": {"x": 3.0}, "c": {"x": 3.0}}


def finder(**runs: Run) -> Finder:
    return Finder(compare(runs, QRELS, ["AP"]), runs, QRELS, {"a": "the letter a"})


def test_the_largest_difference_comes_first_and_equals_are_not_shown() -> None:
    found = finder(first=FIRST, second=SECOND).largest_differences(10)
    # a: AP 1 against 1/2; c: 0 against 1/2; b is equal.
    assert [(one.query_id, one.winner, one.loser) for one in found] == [("a", "first", "second"), ("c", "second", "first")]
    assert [one.query_id for one in finder(first=FIRST, second=SECOND).largest_differences(1)] == ["a"]


def test_the_document_shown_is_the_one_that_made_the_difference() -> None:
    [a, c] = finder(first=FIRST, second=SECOND).largest_differences(2)
    assert (a.query, a.doc_id, a.ranks, a.rival) == ("the letter a", "y", {"first": 2, "second": None}, "n")
    assert (c.query, c.doc_id, c.ranks, c.rival) == (None, "x", {"first": None, "second": 2}, "n")
    assert a.to_json()["values"] == {"first": 1.0, "second": 0.5}


def test_a_win_is_over_all_others() -> None:
    found = finder(first=FIRST, second=SECOND, third=THIRD)
    assert [one.query_id for one in found.wins_of("first", ["second", "third"], 5)] == ["a"]
    assert [(one.query_id, one.loser) for one in found.wins_of("third", ["first", "second"], 5)] == [("c", "first")]
    assert found.wins_of("second", ["first", "third"], 5) == []


def explanation(doc_id: str, **parts: float) -> Explanation:
    told = [Part(word, score, "own") for word, score in parts.items()]
    return Explanation("bm25", "q", doc_id, sum(parts.values()), told, False, Passage("", 0, 0, 0))


def test_gains_are_differences_by_word() -> None:
    why = Why("bm25", explanation("x", wing=3.0, heat=1.0, dust=0.001), explanation("n", heat=2.5, flow=0.5))
    assert why.gains == [("wing", 3.0), ("heat", -1.5), ("flow", -0.5)]
    assert sum(gain for _, gain in why.gains) == pytest.approx(why.wanted.score - 3.0, abs=0.01)
    assert Why("bm25", explanation("x", wing=3.0), None).gains == [("wing", 3.0)]


def test_reasons_are_asked_for_both_documents() -> None:
    asked = []

    def explain(query: str, doc_id: str) -> Explanation:
        asked.append((query, doc_id))
        return explanation(doc_id, wing=1.0)

    [example] = finder(first=FIRST, second=SECOND).largest_differences(1)
    [why] = with_reasons(example, {"bm25": explain}).whys
    assert sorted(asked) == [("the letter a", "n"), ("the letter a", "y")]
    assert (why.wanted.doc_id, why.rival and why.rival.doc_id) == ("y", "n")
