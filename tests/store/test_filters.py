"""Filters against the same conditions in plain Python, and inside the search."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trilens.collection import Collection
from trilens.errors import BadFilter
from trilens.store import lenses
from trilens.store.filters import DEEPEST, parse_filter, to_sql
from trilens.text.document import Document

from . import tiny
from .oracle import holds

HOSTILE = [
    "it's",
    "'; DROP TABLE documents; --",
    "%",
    "_",
    "?",
    ":a",
    "\\",
    "a\\",
    "\\u0041",
    "\n\t",
    "$",
    "[0]",
    "#-1",
    "*",
    "été",
    "e\u0301",
    "日本",
    "😀",
    "\u2028",
    "\x7f",
    "NULL",
    "true",
    "1",
    "",
    " ",
]
KEYS = ["a", "b", "A", "0", *HOSTILE]
SCALARS = [None, True, False, 0, 1, -1, 2, 1.0, 0.5, 1e-9, 2**53 + 1, 2**63 - 1, -(2**62), "a", "b", "B", *HOSTILE]

scalars = st.sampled_from(SCALARS) | st.integers(-5, 5) | st.floats(-3, 3) | st.text(alphabet="ab'é😀", max_size=3)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=6,
)
metadata = st.dictionaries(st.sampled_from(KEYS), values, max_size=4)
paths = st.lists(st.sampled_from(KEYS), min_size=1, max_size=3).map(".".join).filter(lambda key: not key.startswith("$"))
ordered = st.sampled_from([value for value in SCALARS if not isinstance(value, bool | None)]) | st.integers(-5, 5)


def condition(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """What may stand under a field."""
    return st.one_of(
        scalars,
        st.fixed_dictionaries(
            {},
            optional={
                "$eq": scalars,
                "$ne": scalars,
                "$gt": ordered,
                "$gte": ordered,
                "$lt": ordered,
                "$lte": ordered,
                "$in": st.lists(scalars, max_size=3),
                "$nin": st.lists(scalars, max_size=3),
                "$exists": st.booleans(),
                "$not": inner,
            },
        ).filter(bool),
    )


conditions = condition(condition(scalars))
filters = st.recursive(
    st.dictionaries(paths, conditions, max_size=2),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "$and": st.lists(inner, min_size=1, max_size=3),
            "$or": st.lists(inner, min_size=1, max_size=3),
            "$not": inner,
        },
    ),
    max_leaves=4,
)


def passes(document: dict[str, Any], where: dict[str, Any]) -> bool:
    """Whether SQLite lets metadata, stored as documents store it, through the filter."""
    stored = Document("x", "", metadata=document).metadata_json()
    sql, operands = to_sql(where)
    with closing(sqlite3.connect(":memory:")) as connection:
        found = connection.execute(f"SELECT 1 FROM (SELECT ? AS metadata) WHERE {sql}", [stored, *operands])
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


@pytest.mark.parametrize(
    "where",
    [
        {"$nor": [{"a": 1}]},
        {"$eq": 1},
        {"a": {"$regex": "x"}},
        {"a": {"b": 1}},
        {"a": {"$gt": 1, "b": 2}},
        {"a": {}},
        {"a": [1, 2]},
        {"a": {"$eq": [1]}},
        {"a": {"$eq": {"b": 1}}},
        {"a": {"$gt": True}},
        {"a": {"$lt": None}},
        {"a": {"$gte": [1]}},
        {"a": {"$in": 1}},
        {"a": {"$in": "abc"}},
        {"a": {"$in": {"b": 1}}},
        {"a": {"$in": [[1]]}},
        {"a": {"$nin": None}},
        {"a": {"$exists": 1}},
        {"a": {"$exists": "true"}},
        {"a": {"$exists": None}},
        {"a": {"$not": []}},
        {"a": {"$not": {"$what": 1}}},
        {"a": float("nan")},
        {"a": float("inf")},
        {"a": 2**63},
        {"a": {"$in": [1, -(2**63)]}},
        {"a": b"bytes"},
        {"a": {1, 2}},
        {"a": {"$not": {}}},
        {"$and": {"a": 1}},
        {"$and": []},
        {"$or": []},
        {"$or": [1]},
        {"$or": "a"},
        {"$or": [None]},
        {"$not": [{"a": 1}]},
        {"$not": None},
        {"": {"$": 1}},
        {'a"b': 1},
        {'"': 1},
        {1: 2},
        {None: 2},
        {"a": {1: 2}},
        {"a\ud800": 1},
        {"a": "\udfff"},
        {"a": {"$in": ["x", "\udfff"]}},
        "a",
        ["a"],
        1,
    ],
)
def test_a_bad_filter_is_refused_in_one_line(collection: Collection, where: Any) -> None:
    with pytest.raises(BadFilter) as caught:
        collection.search(["word"], where=where)
    assert str(caught.value)
    assert "\n" not in str(caught.value)


def nest(depth: int, kind: str) -> dict[str, Any]:
    """A condition inside this many others."""
    inner: Any = 1
    if kind == "field":
        for _ in range(depth):
            inner = {"$not": inner}
        return {"n": inner}
    where: dict[str, Any] = {"n": 1}
    for level in range(depth):
        where = {"$not": where} if kind == "$not" or (kind == "mixed" and level % 2) else {"$or": [{"m": 1}, where]}
    return where


@pytest.mark.parametrize("kind", ["$not", "$or", "mixed", "field"])
@pytest.mark.parametrize("depth", [DEEPEST - 1, DEEPEST, DEEPEST + 1, DEEPEST + 2, 25, 30, 100, 400, 5000])
def test_nesting_works_or_is_refused(collection: Collection, documents: list[Document], kind: str, depth: int) -> None:
    where = nest(depth, kind)
    try:
        found = {hit.doc_id for hit in collection.search(["word"], len(documents), where=where)[0]}
    except BadFilter as error:
        assert depth > DEEPEST
        assert "nested" in str(error)
    else:
        assert depth <= DEEPEST + 1
        assert found == {document.doc_id for document in documents if holds(document.metadata, where)}


@pytest.mark.parametrize("size", [1, 900, 1100, 100_000])
def test_lists_of_any_length(collection: Collection, documents: list[Document], size: int) -> None:
    listed = [*range(2, size + 2), "b", None, *(f"x{number}" for number in range(size))]
    kept = [hit.doc_id for hit in collection.search(["word"], 200, where={"n": {"$in": listed}})[0]]
    others = [hit.doc_id for hit in collection.search(["word"], 200, where={"n": {"$nin": listed}})[0]]
    assert sorted(kept + others) == sorted(document.doc_id for document in documents)
    expected = [2, "b", None] if size == 1 else [2, 3, "b", None]  # True and 3.5 are others
    assert set(kept) == {document.doc_id for document in documents if document.metadata["n"] in expected}


@pytest.mark.parametrize("size", [900, 1100, 20_000])
@pytest.mark.parametrize("word", ["$or", "$and"])
def test_many_conditions_work_or_are_refused(collection: Collection, documents: list[Document], word: str, size: int) -> None:
    where = {word: [{"n": {"$ne": number}} if word == "$and" else {"n": number} for number in range(size)]}
    try:
        found = {hit.doc_id for hit in collection.search(["word"], len(documents), where=where)[0]}
    except BadFilter as error:
        assert size > 900
        assert "\n" not in str(error)
    else:
        assert found == {document.doc_id for document in documents if holds(document.metadata, where)}


@pytest.mark.parametrize("place", [0, -1])
@pytest.mark.parametrize("width", [4, 64])
@pytest.mark.parametrize("depth", [3, 6, DEEPEST])
def test_wide_and_deep_filters_work_or_are_refused(
    collection: Collection, documents: list[Document], depth: int, width: int, place: int
) -> None:
    where: dict[str, Any] = {"n": 1}
    for _ in range(depth):
        conditions = [{"n": 100 + number} for number in range(width)]
        conditions[place] = where
        where = {"$or": conditions}
    try:
        found = {hit.doc_id for hit in collection.search(["word"], len(documents), where=where)[0]}
    except BadFilter as error:
        assert depth > 3
        assert "\n" not in str(error)
    else:
        assert found == {document.doc_id for document in documents if holds(document.metadata, where)}


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    """Metadata of every shape, drawn once."""
    random = Random(5)

    def value(depth: int) -> Any:
        kind = random.random()
        if depth and kind < 0.15:
            return [value(depth - 1) for _ in range(random.randint(0, 3))]
        if depth and kind < 0.4:
            return {random.choice(KEYS): value(depth - 1) for _ in range(3)}
        return random.choice(SCALARS)

    drawn = [
        {random.choice(KEYS): value(2) for _ in range(4)} | {"n": random.choice([*range(4), "b", None, 3.5, True])}
        for _ in range(120)
    ]
    words = ["word", "word word", "word other", "word other thing here"]
    return [Document(f"d{i}", random.choice(words), metadata=drawn[i]) for i in range(len(drawn))]


@pytest.fixture(scope="module")
def collection(documents: list[Document]) -> Iterator[Collection]:
    """See below."""
    with TemporaryDirectory() as folder, Collection.create(Path(folder) / "c", lenses=["bm25"]) as collection:
        fill(collection, documents)
        yield collection


@pytest.fixture(scope="module")
def with_vectors(documents: list[Document]) -> Iterator[Collection]:
    """The same with every lens."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(lenses, "OnnxEncoder", tiny.encoder_of)
        options: dict[str, Any] = {"lenses": tiny.LENSES, "model": tiny.make_model(Path(folder))}
        with Collection.create(Path(folder) / "c", **options) as collection:
            fill(collection, documents)
            yield collection


def fill(collection: Collection, documents: list[Document]) -> None:
    """Two segments with deleted rows in the first."""
    collection.add([Document(f"gone{i}", "word gone", metadata=documents[i].metadata) for i in range(30)])
    collection.add(documents[:70])
    collection.commit()
    collection.delete([f"gone{i}" for i in range(30)])
    collection.add(documents[70:])
    collection.commit()
    assert collection.info()["segments"] == 2
    assert collection.info()["deleted_passages"] == 30


@settings(deadline=None, max_examples=200)
@given(where=filters, k=st.integers(1, 20))
def test_a_filtered_search_is_the_full_ranking_without_the_others(
    collection: Collection, documents: list[Document], where: dict[str, Any], k: int
) -> None:
    [ranking] = collection.search(["other word"], len(documents))
    assert len(ranking) == len(documents)
    [found] = collection.search(["other word"], k, where=where)
    expected = [hit for hit in ranking if holds(hit.document.metadata, where)][:k]
    assert [(hit.doc_id, hit.score) for hit in found] == [(hit.doc_id, hit.score) for hit in expected]
    assert [hit.rank for hit in found] == list(range(1, len(found) + 1))


@settings(deadline=None, max_examples=100)
@given(where=filters, k=st.integers(1, 20))
def test_a_filter_reaches_into_every_lens(
    with_vectors: Collection, documents: list[Document], where: dict[str, Any], k: int
) -> None:
    for lens in with_vectors.lenses:
        [ranking] = with_vectors.search(["other word"], len(documents), lenses=[lens])
        assert len(ranking) == len(documents)
        [found] = with_vectors.search(["other word"], k, lenses=[lens], where=where)
        expected = [hit for hit in ranking if holds(hit.document.metadata, where)][:k]
        assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected], abs=1e-5)
        assert all(holds(hit.document.metadata, where) for hit in found)


def test_filters_leave_no_trace(collection: Collection, documents: list[Document]) -> None:
    before = collection.search(["word"], len(documents))
    for number in range(40):
        collection.search(["word"], 5, where={"n": number})
    assert collection.search(["word"], len(documents)) == before
    assert collection.search(["word"], 200, where={"n": 1}) == collection.search(["word"], 200, where={"n": 1})


@given(filters)
def test_a_filter_from_the_command_line_is_the_same_filter(where: dict[str, Any]) -> None:
    assert parse_filter(json.dumps(where)) == where


@pytest.mark.parametrize("text", ["", "{", "[]", "1", '"a"', "{'a': 1}", "a=1", "[" * 100_000])
def test_a_filter_that_is_no_json_object(text: str) -> None:
    with pytest.raises(BadFilter) as caught:
        parse_filter(text)
    assert "\n" not in str(caught.value)
