"""Example queries: they come from the documents, evenly over the collection."""

from pathlib import Path

import pytest

pytest.importorskip("fastapi")

from trilens import Collection, Document
from trilens.http.examples import EXAMPLES, example_queries


def examples(path: Path, *documents: Document) -> list[str]:
    with Collection.create(path, lenses=["bm25"]) as collection:
        collection.add(documents)
        collection.commit()
        first = example_queries(collection.snapshot)
        assert first == example_queries(collection.snapshot)
        return first


@pytest.mark.parametrize(
    ("document", "query"),
    [
        (Document("a", "Some text.", title="The  care of\nbees"), ["The care of bees"]),
        (Document("a", "rmtree(path)\n\nRemove a whole tree. More.", title="shutil.rmtree"), ["Remove a whole tree"]),
        (Document("a", "ミツバチの世話をする。毎日。"), ["ミツバチの世話をする"]),
        (Document("a", 'import re\nfrom typing import Any\n"""The places of a word."""'), ["The places of a word"]),
        (Document("a", "f(x) = 1\nyes\n" + "word " * 40, title="short"), []),
    ],
)
def test_a_query_is_the_title_or_a_short_sentence(tmp_path: Path, document: Document, query: list[str]) -> None:
    assert examples(tmp_path / "c.trilens", document) == query


def test_examples_are_few_distinct_and_from_all_over(tmp_path: Path) -> None:
    same = [Document(f"same{number}", "x", title="All the same") for number in range(20)]
    others = [Document(f"d{number}", "x", title=f"title number {number}") for number in range(200)]
    found = examples(tmp_path / "c.trilens", *same, *others)
    assert len(found) == EXAMPLES
    assert found[0] == "All the same"
    numbers = [int(query.split()[-1]) for query in found[1:]]
    assert numbers == sorted(numbers) and numbers[-1] > 100


def test_an_empty_collection_has_none(tmp_path: Path) -> None:
    assert examples(tmp_path / "c.trilens") == []
