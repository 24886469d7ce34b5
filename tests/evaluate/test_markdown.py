"""Comparisons as Markdown: tables, examples and escaping."""

from trilens.evaluate.comparison import Comparison, compare
from trilens.evaluate.examples import ExampleFinder, QueryExample, with_reasons
from trilens.evaluate.markdown import to_markdown
from trilens.evaluate.runs import Run
from trilens.explain.explanation import ExplainedPassage, Explanation
from trilens.lenses.parts import Part

QRELS = {f"q{n}": {"good": 1, "bad": 0} for n in range(8)}
GOOD: Run = {query: {"good": 2.0, "bad": 1.0} for query in QRELS}
BAD: Run = {query: {"good": 1.0, "bad": 2.0} for query in QRELS}


def compared() -> tuple[Comparison, list[QueryExample]]:
    runs = {"a": GOOD, "b": BAD}
    comparison = compare(runs, QRELS, ["RR"])
    return comparison, ExampleFinder(comparison, runs, QRELS, {"q0": "a | query"}).largest_differences(1)


def test_names_are_escaped() -> None:
    text = to_markdown(compare({"a|<b>*": GOOD, "bad": BAD}, QRELS, ["RR"]), [], "a|<b>* and bad")
    assert "| a\\|\\<b>\\* | 1.0000 |" in text
    assert "<b>" not in text.replace("\\<b>", "")


def test_tables_have_means_and_pairs() -> None:
    text = to_markdown(compared()[0], [], "title")
    assert "| run | RR |\n| --- | ---: |\n| a | 1.0000 |\n| b | 0.5000 |" in text
    assert "| RR | a − b | +0.5000 | +0.5000 … +0.5000 | 8 / 0 / 0 | 0.0078 | 0.0078 \\* |" in text


def test_every_table_row_has_as_many_cells_as_its_head() -> None:
    comparison, examples = compared()
    for block in to_markdown(comparison, examples, "title").split("\n\n"):
        if block.startswith("|"):
            assert len({line.replace("\\|", "").count("|") for line in block.splitlines()}) == 1


def test_examples_show_values_ranks_and_gains() -> None:
    comparison, [example] = compared()

    def explain(query: str, doc_id: str) -> Explanation:
        parts = [Part("word", 2.0 if doc_id == "good" else 0.5, "own")]
        return Explanation("bm25", query, doc_id, parts[0].score, parts, False, ExplainedPassage("", 0, 0, 0))

    text = to_markdown(comparison, [with_reasons(example, {"bm25": explain})], "title")
    assert "## Queries with the largest differences in RR" in text
    assert "| q0 | a \\| query | 1.000 | 0.500 | good: 1, 2 |" in text
    assert "**q0**, good against bad:\n- bm25: word +1.500" in text
