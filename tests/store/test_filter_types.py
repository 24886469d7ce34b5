"""Fields that have another type than the values that a filter compares them with."""

from pathlib import Path
from typing import Any

import pytest

from trilens.collection import Collection
from trilens.store.filter_types import compared_kinds
from trilens.text.document import Document

TEXT, NUMBER, BOOLEAN = "text", "a number", "true or false"


@pytest.mark.parametrize(
    ("where", "kinds"),
    [
        ({"year": {"$gte": 2020, "$lt": 2024.5}}, {"year": {NUMBER}}),
        ({"lang": "en", "open": True}, {"lang": {TEXT}, "open": {BOOLEAN}}),
        ({"$or": [{"a.b": {"$in": [1, "x"]}}, {"$not": {"c": {"$not": {"$ne": "y"}}}}]}, {"a.b": {NUMBER, TEXT}, "c": {TEXT}}),
        ({"a": None, "b": {"$exists": True}}, {}),
    ],
)
def test_a_filter_names_the_kinds_it_compares_with(where: dict[str, Any], kinds: dict[str, set[str]]) -> None:
    assert compared_kinds(where) == kinds


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    """31 documents with the year as text and 2,000 with a number, which a sample shows too."""
    path: Path = tmp_path_factory.mktemp("types") / "c"
    with Collection.create(path, lenses=["bm25"]) as made:
        made.add(Document(f"text {number}", "words", metadata={"year": "2021", "tags": ["a", 1]}) for number in range(31))
        made.add(Document(f"number {number}", "words", metadata={"year": 2021}) for number in range(2000))
    return Collection.open(path)


@pytest.mark.parametrize(
    ("where", "lines"),
    [
        ({"year": {"$gte": 2020}}, ["year is text in 31 documents; expected a number, with which the filter compares it"]),
        ({"year": {"$gte": 9999}}, ["year is text in 31 documents; expected a number, with which the filter compares it"]),
        ({"year": "2021"}, ["year is a number in 2,000 documents; expected text, with which the filter compares it"]),
        ({"year": {"$in": [2021, "2021"]}}, []),
        ({"tags": {"$in": ["a", 1]}}, []),
        ({"missing": 1}, []),
    ],
)
def test_documents_that_a_filter_cannot_match_are_counted(
    collection: Collection, where: dict[str, Any], lines: list[str]
) -> None:
    assert collection.snapshot.mistyped(where) == lines
