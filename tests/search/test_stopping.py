"""Searches and explanations that nobody waits for stop between their stages."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from trilens import Collection, Document
from trilens.cancellation import stop_when
from trilens.errors import Stopped
from trilens.search import hyde
from trilens.search.hyde import Hyde

QUERY = "cat whiskers"


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    path: Path = tmp_path_factory.mktemp("stopping") / "c"
    with Collection.create(path, lenses=["bm25", "dense", "sparse"], threads=1) as made:
        made.add([Document("a", "cat feline whiskers"), Document("b", "dog bark"), Document("c", "cat purring")])
        made.commit()
        yield made


def stages(work: Callable[[], Any]) -> int:
    """The number of checks of some work, each of which stops it."""
    count = 0

    def counted() -> bool:
        nonlocal count
        count += 1
        return False

    with stop_when(counted):
        expected = work()
    for most in range(count):
        left = iter(range(most))
        with stop_when(lambda left=left: next(left, None) is None), pytest.raises(Stopped):  # type: ignore[misc]
            work()
    assert work() == expected
    return count


@pytest.mark.parametrize(
    ("options", "least"),
    [
        ({"lenses": ["bm25"]}, 2),  # encoding, the search
        ({"lenses": ["bm25", "dense"]}, 7),  # two encoders and a batch of the model, two searches, missing scores of each
        ({"lenses": ["bm25"], "rerank": "dense"}, 5),  # two encoders and a batch, the search, re-ranking
        ({"lenses": ["bm25"], "expand": "on"}, 3),  # encoding, feedback, the search
        ({"lenses": ["bm25"], "filter": {"n": {"$exists": False}}}, 3),  # encoding, the search, a range of the filter
    ],
)
def test_a_search_stops_at_every_stage(collection: Collection, options: dict[str, Any], least: int) -> None:
    def search() -> list[Any]:
        collection.snapshot._masks._masks.clear()
        return [(hit.doc_id, hit.score) for hit in collection.search([QUERY], **options)[0]]

    assert stages(search) >= least


def test_an_explanation_stops_at_every_lens(collection: Collection) -> None:
    lenses = ["bm25", "dense", "sparse"]
    searched = stages(lambda: collection.search([QUERY], lenses=lenses))
    assert stages(lambda: collection.explain(QUERY, "a", lenses=lenses).score) >= searched + len(lenses)


def test_no_further_passage_is_asked_for(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def imagine(_: Hyde, query: str) -> str:
        asked.append(query)
        return "a passage"

    monkeypatch.setattr(hyde, "imagine", imagine)
    with stop_when(lambda: bool(asked)), pytest.raises(Stopped):
        collection.search(["first", "second"], lenses=["dense"], hyde=Hyde(url="http://localhost:1/v1"))
    assert asked == ["first"]
