"""Fields that have another type than the values that a filter compares them with."""

from pathlib import Path
from typing import Any

import pytest

from trilens.collection import Collection
from trilens.store.filter_types import DATE, compared_kinds
from trilens.text.document import Document

TEXT, NUMBER, BOOLEAN = "text", "a number", "true or false"


@pytest.mark.parametrize(
    ("where", "kinds"),
    [
        ({"year": {"$gte": 2020, "$lt": 2024.5}}, {"year": {NUMBER}}),
        ({"lang": "en", "open": True}, {"lang": {TEXT}, "open": {BOOLEAN}}),
        ({"$or": [{"a.b": {"$in": [1, "x"]}}, {"$not": {"c": {"$not": {"$ne": "y"}}}}]}, {"a.b": {NUMBER, TEXT}, "c": {TEXT}}),
        ({"a": None, "b": {"$exists": True}}, {}),
        ({"a": {"$gte": "2024-01-31"}, "b": {"$lt": "2024-01"}, "c": {"$gt": "v2"}}, {"a": {DATE}, "b": {DATE}, "c": {TEXT}}),
        ({"a": "2024-01-31"}, {"a": {TEXT}}),
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
        made.add(Document(f"iso {number}", "words", metadata={"date": f"2024-01-{number}"}) for number in (10, 20))
        made.add(Document(f"other {number}", "words", metadata={"date": "31.12.2024"}) for number in range(40))
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
        (
            {"date": {"$gte": "2024-01-15"}},
            ["date is text in 40 documents; expected a date such as 2024-01-31, with which the filter compares it"],
        ),
        ({"date": 2024}, ["date is text in 42 documents; expected a number, with which the filter compares it"]),
        ({"date": {"$in": ["2024-01-10"]}}, []),
        ({"date": {"$gte": "3"}}, []),
    ],
)
def test_documents_that_a_filter_cannot_match_are_counted(
    collection: Collection, where: dict[str, Any], lines: list[str]
) -> None:
    assert collection.snapshot.mistyped(where) == lines
