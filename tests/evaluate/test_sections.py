"""HTML sections: badges, tables, scatter plots and example cards."""

from trilens.evaluate.comparison import Comparison, compare
from trilens.evaluate.examples import QueryExample, Reason
from trilens.evaluate.runs import Run
from trilens.evaluate.sections import (
    MOST_SCATTERS,
    bold_if,
    colours,
    example_card,
    gap_to_best,
    pairs_section,
    scatters,
    signed,
    standing_badge,
    verdict_card,
)
from trilens.explain.explanation import ExplainedPassage, Explanation
from trilens.lenses.parts import Part

QRELS = {f"q{n}": {"good": 1, "bad": 0} for n in range(8)}
GOOD: Run = {query: {"good": 2.0, "bad": 1.0} for query in QRELS}
BAD: Run = {query: {"good": 1.0, "bad": 2.0} for query in QRELS}


def compared(**runs: Run) -> Comparison:
    return compare(runs, QRELS, ["RR"])


def explanation(lens: str, doc_id: str, text: str, word: str, score: float) -> Explanation:
    start = text.index(word)
    part = Part(word, score, "own", doc_spans=((start, start + len(word)),))
    return Explanation(lens, "q", doc_id, score, [part], False, ExplainedPassage(text, 0, 0, len(text)))


def test_lenses_have_their_colour_and_other_runs_distinct_ones() -> None:
    palette = colours(["bm25", "multi:method=xtr", "rrf", "mine"])
    assert palette == {
        "bm25": "var(--lens-bm25)",
        "multi:method=xtr": "var(--lens-multi)",
        "rrf": "var(--other-0)",
        "mine": "var(--other-1)",
    }


def test_badges_tell_significance() -> None:
    comparison = compared(good=GOOD, same=GOOD, bad=BAD)
    assert "★ best" in standing_badge(comparison, "good")
    assert ">not significantly worse<" in standing_badge(comparison, "same")
    assert ">significantly worse<" in standing_badge(comparison, "bad")


def test_the_gap_to_the_best_run() -> None:
    comparison = compared(good=GOOD, bad=BAD)
    assert gap_to_best(comparison, "good") == ""
    gap = gap_to_best(comparison, "bad")
    assert gap.startswith("−0.500") and "p = 0.0078" in gap and "−0.500 … −0.500" in gap


def test_numbers_have_a_sign_and_may_be_bold() -> None:
    assert [signed(value, 2) for value in (0.5, -0.5, 0.0)] == ["+0.50", "−0.50", "+0.00"]
    assert (bold_if("1", True), bold_if("1", False)) == ("<b>1</b>", "1")


def test_only_significant_verdicts_are_highlighted() -> None:
    assert 'class="card verdict sure"><h2>title: good wins</h2>' in verdict_card(compared(good=GOOD, bad=BAD), "title")
    assert 'class="card verdict"><h2>good and same tie</h2>' in verdict_card(compared(good=GOOD, same=GOOD), "")


def test_significant_p_values_are_bold() -> None:
    section = pairs_section(compared(good=GOOD, bad=BAD), expanded=True)
    assert "<details open>" in section and "<b>0.0078</b>" in section and "8 / 0 / 0" in section
    assert "<b>" not in pairs_section(compared(good=GOOD, same=GOOD), expanded=False)
    assert pairs_section(compared(good=GOOD), expanded=True) == ""


def test_the_number_of_scatter_plots_is_limited() -> None:
    drawn = scatters(compared(**{f"run{n}": GOOD for n in range(MOST_SCATTERS + 3)}))
    assert drawn.count("<figure") == MOST_SCATTERS
    assert "2 more runs are only in the table" in drawn
    assert "good better on 8 queries, 0 ties, bad better on 0 queries" in scatters(compared(good=GOOD, bad=BAD))


def test_an_example_card_shows_ranks_and_both_documents() -> None:
    reasons = [
        Reason("a", explanation("a", "x", "the wing", "wing", 3.0), explanation("a", "n", "the heat", "heat", 1.0)),
        Reason("b", explanation("b", "x", "the wing", "wing", 1.0), explanation("b", "n", "the heat", "heat", 2.0)),
    ]
    example = QueryExample("q1", "wings <b>", {"a": 1.0, "b": 0.5}, "a", "b", "x", {"a": 1, "b": None}, "n", reasons)
    card = example_card(example, "RR", {"a": "red", "b": "blue"})
    assert "“wings &lt;b&gt;”" in card and "b ranks <code>n</code> above it" in card and "not retrieved" in card
    assert "Relevant document, matches of a" in card and "Document that b ranks higher, matches of b" in card
    assert card.count("<mark") == 2
    assert "wing <b>+3.000</b>" in card and "heat <b>−2.000</b>" in card
