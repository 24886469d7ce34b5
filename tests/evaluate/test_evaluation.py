"""Evaluation of search variants: runs, measures, groups, answers and queries without results."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from trilens import Collection, Document
from trilens.datasets.answers import AnswerMatcher
from trilens.datasets.dataset import Split
from trilens.datasets.queries import Query
from trilens.errors import BadInput
from trilens.evaluate.evaluation import LensResult, Task, evaluate, first_answer
from trilens.evaluate.variants import parse_variant

QUERIES = {
    "cat": Query("cat", answers=("dog",)),
    "ship": Query("ship", answers=("harbour",)),
    "nothing": Query("unicorn", answers=("horn",)),
}
SPLIT = Split("test", QUERIES, {"cat": {"a": 1}, "ship": {"c": 1}, "nothing": {"a": 1}})


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    with Collection.create(tmp_path_factory.mktemp("evaluation") / "c", lenses=["bm25"], threads=1) as made:
        made.add([Document("a", "cat cat mat"), Document("b", "cat dog bird tree", "ship"), Document("c", "harbour ship")])
        made.commit()
        yield made


def run(collection: Collection, task: Task) -> LensResult:
    (result,) = evaluate(collection, task, [parse_variant("bm25", ["bm25"])])
    return result


def test_measures_are_means_over_all_queries(collection: Collection) -> None:
    advanced: list[int] = []
    (result,) = evaluate(collection, Task(SPLIT, ["RR", "Hit@2"]), [parse_variant("bm25", ["bm25"])], advanced.append)
    assert list(result.run) == list(QUERIES)
    assert list(result.run["cat"]) == ["a", "b"]
    # cat: rank 1, the answer at rank 2; ship: relevant and answer in the same document; nothing: no results.
    assert result.by_query["RR"] == {"cat": 1.0, "ship": result.by_query["RR"]["ship"], "nothing": 0.0}
    assert result.by_query["RR"]["ship"] == 1 / (list(result.run["ship"]).index("c") + 1)
    assert result.by_query["Hit@2"] == {"cat": 1.0, "ship": 1.0, "nothing": 0.0}
    assert result.measures["Hit@2"] == pytest.approx(2 / 3)
    assert list(result.measures) == ["RR", "Hit@2"]
    assert result.nothing_found == 1
    assert sum(advanced) == len(QUERIES)


def test_scores_of_a_run_are_strictly_decreasing(collection: Collection) -> None:
    for scores in run(collection, Task(SPLIT)).run.values():
        values = list(scores.values())
        assert all(first > second for first, second in pairwise(values))


def test_groups_are_measured_separately(collection: Collection) -> None:
    task = Task(SPLIT, ["RR"], groups={"language": {"en": ["cat"], "de": ["nothing"]}})
    groups = run(collection, task).groups
    assert [(group.by, group.label, group.queries, group.measures) for group in groups] == [
        ("language", "en", 1, {"RR": 1.0}),
        ("language", "de", 1, {"RR": 0.0}),
    ]


def test_queries_that_match_nothing_are_refused(collection: Collection) -> None:
    split = Split("test", {"nothing": QUERIES["nothing"]}, {"nothing": {"a": 1}})
    with pytest.raises(BadInput, match="bm25 found no documents for any of the 1 queries"):
        run(collection, Task(split))


def test_the_first_answer_is_in_a_text_not_in_a_title(collection: Collection) -> None:
    (hits,) = collection.search(["cat dog ship"], 10)
    texts = {hit.doc_id: rank for rank, hit in enumerate(hits, start=1)}
    assert first_answer(hits, AnswerMatcher(("ship",), "string"), 10) == texts["c"]  # b has it in its title alone
    assert first_answer(hits, AnswerMatcher(("ship",), "string"), texts["c"] - 1) is None
    assert first_answer(hits, AnswerMatcher(("b.rd",), "regex"), 10) == texts["b"]


def test_runs_are_as_deep_as_the_largest_cutoff(tmp_path: Path) -> None:
    with Collection.create(tmp_path / "c", lenses=["bm25"], threads=1) as many:
        many.add(Document(f"d{n}", "word") for n in range(12))
        many.commit()
        split = Split("test", {"q": Query("word")}, {"q": {"d0": 1}})
        assert len(run(many, Task(split, ["RR"], depth=5)).run["q"]) == 5
        assert len(run(many, Task(split, ["R@8"], depth=5)).run["q"]) == 8
