"""Filters inside searches: rankings, limits and refusals."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trilens.collection import Collection
from trilens.errors import BadFilter, BadInput
from trilens.store.filters import DEEPEST, MOST_CONDITIONS, MOST_VALUES
from trilens.text.document import Document

from .filter_strategies import KEYS, SCALARS, filters
from .oracle import holds
from .tiny import LENSES, TinyEncoder


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
    is_object = isinstance(where, dict) and all(isinstance(key, str) for key in where)
    with pytest.raises(BadFilter if is_object else BadInput) as caught:
        collection.search(["word"], filter=where)
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
        found = {hit.doc_id for hit in collection.search(["word"], len(documents), filter=where)[0]}
    except BadFilter as error:
        assert depth > DEEPEST
        assert "nested" in str(error)
    else:
        assert depth <= DEEPEST + 1
        assert found == {document.doc_id for document in documents if holds(document.metadata, where)}


@pytest.mark.parametrize("size", [1, 900, 1100, 100_000])
def test_lists_of_any_length(collection: Collection, documents: list[Document], size: int) -> None:
    listed = [*range(2, size + 2), "b", None, *(f"x{number}" for number in range(size))]
    kept = [hit.doc_id for hit in collection.search(["word"], 200, filter={"n": {"$in": listed}})[0]]
    others = [hit.doc_id for hit in collection.search(["word"], 200, filter={"n": {"$nin": listed}})[0]]
    assert sorted(kept + others) == sorted(document.doc_id for document in documents)
    expected = [2, "b", None] if size == 1 else [2, 3, "b", None]  # True and 3.5 are others
    assert set(kept) == {document.doc_id for document in documents if document.metadata["n"] in expected}


@pytest.mark.parametrize("size", [MOST_CONDITIONS, MOST_CONDITIONS + 1, 20_000])
@pytest.mark.parametrize(
    "many",
    [
        lambda size: {"$and": [{"n": {"$ne": number}} for number in range(size)]},
        lambda size: {"$or": [{"n": {"$gt": number}} for number in range(size)]},
        lambda size: {f"n{number}": {"$exists": False} for number in range(size)},
        lambda size: {"$not": {"$or": [{"a": {"$gt": number}, "b": 1} for number in range(size // 2)] + [{}] * (size % 2)}},
    ],
)
def test_as_many_conditions_as_documented_and_no_more(
    collection: Collection, documents: list[Document], many: Callable[[int], dict[str, Any]], size: int
) -> None:
    where = many(size)
    if size > MOST_CONDITIONS:
        with pytest.raises(BadFilter, match=f"more than {MOST_CONDITIONS} conditions; expected fewer: use \\$in"):
            collection.search(["word"], filter=where)
        return
    found = {hit.doc_id for hit in collection.search(["word"], len(documents), filter=where)[0]}
    assert found == {document.doc_id for document in documents if holds(document.metadata, where)}


def test_any_number_of_equalities_of_a_field_is_one_condition(collection: Collection, documents: list[Document]) -> None:
    where = {"$or": [*({"n": number} for number in range(1, 6_000)), {"n": {"$exists": False}}, {"n": None}, {"n": "b"}]}
    found = {hit.doc_id for hit in collection.search(["word"], len(documents), filter=where)[0]}
    assert found == {document.doc_id for document in documents if holds(document.metadata, where)}


def test_lists_have_a_limit(collection: Collection) -> None:
    one, half = list(range(MOST_VALUES + 1)), list(range(MOST_VALUES // 2 + 1))
    for where in ({"n": {"$in": one}}, {"n": {"$in": half}, "m": {"$nin": half}}, {"$or": [{"n": number} for number in one]}):
        with pytest.raises(BadFilter, match="lists more than 250,000 values; expected fewer") as caught:
            collection.search(["word"], filter=where)
        assert "\n" not in str(caught.value)


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
        found = {hit.doc_id for hit in collection.search(["word"], len(documents), filter=where)[0]}
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
    """The documents through bm25."""
    with TemporaryDirectory() as folder, Collection.create(Path(folder) / "c", lenses=["bm25"]) as collection:
        fill(collection, documents)
        yield collection


@pytest.fixture(scope="module")
def with_vectors(documents: list[Document]) -> Iterator[Collection]:
    """The same with every lens."""
    with (
        TemporaryDirectory() as folder,
        Collection.create(Path(folder) / "c", lenses=LENSES, encoder=TinyEncoder()) as collection,
    ):
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
    [found] = collection.search(["other word"], k, filter=where)
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
        [found] = with_vectors.search(["other word"], k, lenses=[lens], filter=where)
        expected = [hit for hit in ranking if holds(hit.document.metadata, where)][:k]
        assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected], abs=1e-5)
        assert all(holds(hit.document.metadata, where) for hit in found)


def test_filters_leave_no_trace(collection: Collection, documents: list[Document]) -> None:
    before = collection.search(["word"], len(documents))
    for number in range(40):
        collection.search(["word"], 5, filter={"n": number})
    assert collection.search(["word"], len(documents)) == before
    assert collection.search(["word"], 200, filter={"n": 1}) == collection.search(["word"], 200, filter={"n": 1})
