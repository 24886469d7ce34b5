"""Groups of queries by language and by length of the relevant documents."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from trilens import Collection, Document
from trilens.datasets.dataset import Split
from trilens.datasets.queries import Query
from trilens.errors import BadInput
from trilens.evaluate.groups import GroupResult, _label, measure_groups, require_grouping


@pytest.fixture
def collection(tmp_path: Path) -> Iterator[Collection]:
    with Collection.create(tmp_path / "c", lenses=["bm25"], threads=1) as made:
        made.add([Document("short", "the cat"), Document("long", "word " * 127, title="title")])
        made.commit()
        yield made


def test_queries_are_grouped_by_language(collection: Collection) -> None:
    queries = {"q1": Query("a", "fr"), "q2": Query("b", "de"), "q3": Query("c", "fr"), "q4": Query("d")}
    split = Split("s", queries, {name: {"short": 1} for name in queries})
    labels = require_grouping("language", [split]).labels(split, collection)
    assert labels == {"de": ["q2"], "fr": ["q1", "q3"], "unknown": ["q4"]}


def test_queries_are_grouped_by_mean_length_of_their_relevant_documents(collection: Collection) -> None:
    qrels = {
        "short": {"short": 1, "long": 0},
        "long": {"long": 2},  # 127 words and a title of one
        "both": {"short": 1, "long": 1, "absent": 1},  # (2 + 128) / 2
        "absent": {"absent": 1},
    }
    split = Split("s", {name: Query("word") for name in qrels}, qrels)
    labels = require_grouping("length", [split]).labels(split, collection)
    assert labels == {"1–64 words": ["short"], "65–128 words": ["long", "both"], "unknown": ["absent"]}


def test_length_limits_are_inclusive() -> None:
    assert [_label(length) for length in (1, 64, 64.5, 128, 8192, 8193)] == [
        "1–64 words",
        "1–64 words",
        "65–128 words",
        "65–128 words",
        "4097–8192 words",
        "more than 8192 words",
    ]


def test_measures_are_means_over_each_group() -> None:
    by_query = {"RR": {"q1": 1.0, "q2": 0.5, "q3": 0.0}}
    assert measure_groups("language", {"de": ["q1", "q2"], "fr": ["q3"]}, by_query) == [
        GroupResult("language", "de", 2, {"RR": 0.75}),
        GroupResult("language", "fr", 1, {"RR": 0.0}),
    ]


def test_unsupported_groupings_are_refused() -> None:
    split = Split("s", {"q": Query("a", answers=("b",))}, {})
    with pytest.raises(BadInput, match="grouping is 'colour'; expected one of language, length"):
        require_grouping("colour", [split])
    with pytest.raises(BadInput, match="queries of 's' have no language"):
        require_grouping("language", [split])
    with pytest.raises(BadInput, match="'s' has only answers; expected qrels"):
        require_grouping("length", [split])
