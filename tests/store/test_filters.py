"""Filters as SQL against the same conditions in plain Python."""

import json
import sqlite3
from contextlib import closing
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trilens.errors import BadFilter
from trilens.store.filters import parse_filter, to_sql
from trilens.text.document import Document

from .filter_strategies import filters, metadata, scalars, values
from .oracle import holds


def passes(document: dict[str, Any], where: dict[str, Any]) -> bool:
    """Whether SQLite lets metadata, stored as documents store it, through the filter."""
    stored = Document("x", "", metadata=document).metadata_json()
    sql = to_sql(where)
    with closing(sqlite3.connect(":memory:")) as connection:
        found = connection.execute(f"SELECT 1 FROM (SELECT ? AS metadata) WHERE {sql.text}", [stored, *sql.values])
        return found.fetchone() is not None


@settings(deadline=None, max_examples=800)
@given(metadata, filters)
@example({"a": True}, {"a": 1})
@example({"a": 1}, {"a": True})
@example({"a": [[1]]}, {"a": 1})
@example({"a": {"b": None}}, {"a.b": {"$exists": True}})
def test_sql_agrees_with_python(document: dict[str, Any], where: dict[str, Any]) -> None:
    assert passes(document, where) == holds(document, where)


@pytest.mark.long
@settings(deadline=None, max_examples=100_000)
@given(metadata, filters)
def test_sql_agrees_with_python_always(document: dict[str, Any], where: dict[str, Any]) -> None:
    assert passes(document, where) == holds(document, where)


@settings(deadline=None, max_examples=500)
@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**70), 2**70), st.data())
def test_numbers_compare_exactly(number: float, data: st.DataObject) -> None:
    near = st.sampled_from([number, number + 1, float(number), -number]).filter(lambda value: abs(value) < 2**63)
    bounded = st.integers(-(2**63) + 1, 2**63 - 1) | near if abs(number) < 2**62 else st.integers(-(2**63) + 1, 2**63 - 1)
    operand = data.draw(bounded)
    for operator in ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte"):
        where = {"n": {operator: operand}}
        assert passes({"n": number}, where) == holds({"n": number}, where)


@pytest.mark.parametrize(
    ("document", "where", "expected"),
    [
        ({"n": 1}, {"n": 1}, True),
        ({"n": 1}, {"n": 1.0}, True),
        ({"n": 1}, {"n": "1"}, False),
        ({"n": 1}, {"n": True}, False),
        ({"n": True}, {"n": 1}, False),
        ({"n": True}, {"n": True}, True),
        ({"n": False}, {"n": 0}, False),
        ({"n": False}, {"n": None}, False),
        ({"n": None}, {"n": None}, True),
        ({}, {"n": None}, False),
        ({"n": None}, {"n": {"$exists": True}}, True),
        ({}, {"n": {"$exists": False}}, True),
        ({}, {"n": {"$ne": 1}}, True),
        ({}, {"n": {"$nin": [1]}}, True),
        ({}, {"n": {"$not": {"$gt": 1}}}, True),
        ({}, {"n": {"$gt": -1}}, False),
        ({"n": None}, {"n": {"$lte": 0}}, False),
        ({"n": True}, {"n": {"$gt": 0}}, False),
        ({"n": "b"}, {"n": {"$gt": "a"}}, True),
        ({"n": "b"}, {"n": {"$gt": 0}}, False),
        ({"n": "😀"}, {"n": {"$gt": "\uffff"}}, True),
        ({"n": [1, 5]}, {"n": {"$gt": 4}}, True),
        ({"n": [1, 5]}, {"n": {"$gt": 1, "$lt": 5}}, True),  # 5 is above 1 and 1 is below 5
        ({"n": [1, 5]}, {"n": {"$ne": 5}}, False),
        ({"n": [1, 5]}, {"n": {"$nin": [2, 3]}}, True),
        ({"n": []}, {"n": {"$exists": True}}, True),
        ({"n": []}, {"n": None}, False),
        ({"n": {}}, {"n": {"$exists": True}}, True),
        ({"n": [None, True]}, {"n": None}, True),
        ({"n": [None, True]}, {"n": 1}, False),
        ({"n": [[1]]}, {"n": 1}, False),
        ({"n": {"m": {"k": 3}}}, {"n.m.k": {"$in": [3, 4]}}, True),
        ({"n": {"m": 3}}, {"n": {"$exists": True}, "n.m": 3}, True),
        ({"n": [{"m": 3}]}, {"n.m": 3}, False),
        ({"n.m": 3}, {"n.m": 3}, False),
        ({"n": {"": 3}}, {"n.": 3}, True),
        ({"n": 2}, {"n": {"$gt": 1, "$lt": 3}}, True),
        ({"n": 3}, {"n": {"$gt": 1, "$lt": 3}}, False),
        ({"n": 3}, {"n": {"$in": []}}, False),
        ({"n": 3}, {"n": {"$nin": []}}, True),
        ({"n": 3}, {"$or": [{"n": 2}, {"n": 3}]}, True),
        ({"n": 3}, {"$and": [{"n": 3}, {"m": {"$exists": False}}]}, True),
        ({"n": 3}, {"$not": {"n": 3}}, False),
        ({"n": 3}, {"$not": {}}, False),
        ({"n": 3}, {}, True),
    ],
)
def test_by_hand(document: dict[str, Any], where: dict[str, Any], expected: bool) -> None:
    assert passes(document, where) == expected
    assert holds(document, where) == expected


@settings(deadline=None, max_examples=30)
@given(st.dictionaries(st.just("a"), values), st.lists(scalars, max_size=6), st.sampled_from([0, 2_000]), st.randoms())
@example({"a": [1.0, "2"]}, [1], 2_000, Random(0))
@example({"a": True}, [1], 2_000, Random(0))
@example({"a": "1"}, [1], 2_000, Random(0))
@example({"a": [2**53 + 1]}, [float(2**53)], 2_000, Random(0))
def test_long_lists_agree_with_python(document: dict[str, Any], listed: list[Any], more: int, random: Random) -> None:
    listed = [*listed, *(random.choice([number + 10, f"x{number}", number + 10.5]) for number in range(more))]
    random.shuffle(listed)
    alternatives = [{"a": value} for value in listed] or [{}]
    for where in ({"a": {"$in": listed}}, {"a": {"$nin": listed}}, {"$or": alternatives}):
        assert passes(document, where) == holds(document, where)


@given(filters)
def test_a_filter_from_the_command_line_is_the_same_filter(where: dict[str, Any]) -> None:
    assert parse_filter(json.dumps(where)) == where


@pytest.mark.parametrize("text", ["", "{", "[]", "1", '"a"', "{'a': 1}", "a=1", "[" * 100_000])
def test_a_filter_that_is_no_json_object(text: str) -> None:
    with pytest.raises(BadFilter) as caught:
        parse_filter(text)
    assert "\n" not in str(caught.value)
