"""Searching a collection: options, passages, several lenses."""

from pathlib import Path
from typing import Any

import pytest

from trilens.collection import Collection
from trilens.encode.models import bundled_models
from trilens.errors import (
    BadInput,
)
from trilens.store.changes import Changes
from trilens.store.config import DEFAULT_MODEL
from trilens.text.document import Document

from .small import DOCUMENTS, ids, refused, with_model


def test_hits(collection: Collection) -> None:
    [hits] = collection.search(["river night"])
    assert [hit.rank for hit in hits] == [1, 2]
    assert hits[0].score >= hits[1].score > 0
    for hit in hits:
        assert hit.document == collection.get(hit.doc_id)
        assert hit.passage == hit.document.text
        assert hit.by_lens["bm25"].score == hit.score
        assert hit.by_lens["bm25"].rank == hit.rank


def test_the_title_is_searched(collection: Collection) -> None:
    assert ids(collection, "foxes") == ["fox"]
    collection.upsert([Document("untitled", "nothing", "A zebra")])
    collection.commit()
    assert ids(collection, "zebra") == ["untitled"]


def test_a_batch_equals_its_queries_one_by_one(collection: Collection) -> None:
    queries = ["river", "snow station", "river", "the", "nothing like it"]
    assert collection.search(queries) == [collection.search([query])[0] for query in queries]
    assert collection.search([]) == []


@pytest.mark.parametrize("k", [0, -1, 10**9])
def test_k_out_of_range(collection: Collection, k: int) -> None:
    assert f"k is {k}" in refused(BadInput, lambda: collection.search(["river"], k))


def test_k_beyond_the_collection(collection: Collection) -> None:
    assert collection.search(["river"], 1_000_000) == collection.search(["river"], 2)
    assert len(ids(collection, "river", 1)) == 1


@pytest.mark.parametrize("query", ["", " ", "\n\t", "\u3000"])
def test_an_empty_query(collection: Collection, query: str) -> None:
    assert "query 2 is empty" in refused(BadInput, lambda: collection.search(["river", query]))


@pytest.mark.parametrize("wrong", ["river", [5], [None], ["river", b"river"]])
def test_queries_are_a_list_of_strings(collection: Collection, wrong: Any) -> None:
    refused(BadInput, lambda: collection.search(wrong))


@pytest.mark.parametrize("lenses", [[], ["smell"], "bm25", ["bm25", "bm25"], ["dense"]])
def test_unknown_lenses(collection: Collection, lenses: Any) -> None:
    refused(BadInput, lambda: collection.search(["river"], lenses=lenses))


def test_bad_requests_are_refused_by_an_empty_collection_too(tmp_path: Path) -> None:
    with Collection.create(tmp_path / "c", lenses=["bm25"]) as collection:
        refused(BadInput, lambda: collection.search(["river"], 0))
        refused(BadInput, lambda: collection.search(["river"], lenses=["dense"]))
        refused(BadInput, lambda: collection.search(["river"], filter={"a": {"$what": 1}}))


@pytest.mark.parametrize("query", ["the", "and of the", "!?", "zzzunknown"])
def test_a_query_that_matches_nothing(collection: Collection, query: str) -> None:
    assert collection.search([query, "river"])[0] == []
    assert len(collection.search([query, "river"])[1]) == 2


def test_a_document_without_words(collection: Collection) -> None:
    collection.add([Document("empty", ""), Document("marks", "?!…"), Document("stop", "the of and")])
    collection.commit()
    assert len(collection) == 6
    assert set(ids(collection, "river the of and ?!")) == {"fox", "train"}
    assert collection.get("empty") == Document("empty", "")
    collection.optimize()
    assert collection.check().problems == []


def test_only_documents_without_words(tmp_path: Path) -> None:
    with Collection.create(tmp_path / "c", lenses=["bm25"]) as collection:
        collection.add([Document("empty", ""), Document("stop", "the")])
        collection.commit()
        assert collection.search(["the", "river"]) == [[], []]
        collection.optimize()
        assert collection.check().problems == []


def test_a_search_leaves_no_trace(collection: Collection) -> None:
    before = collection.search(["river", "snow"], 5)
    collection.search(["river"], 1, filter={"year": 2005}, exact=True)
    assert collection.search(["river", "snow"], 5) == before


def long_text(words: int, marked: dict[int, str]) -> str:
    """Sentences of ten words, some words replaced."""
    plain = [marked.get(number, f"word{number % 7}") for number in range(words)]
    return " ".join(word + ("." if number % 10 == 9 else "") for number, word in enumerate(plain))


def test_one_hit_per_document_with_its_best_passage(tmp_path: Path) -> None:
    text = long_text(200, {15: "zebra", 150: "zebra", 152: "zebra", 154: "zebra"})
    with Collection.create(tmp_path / "c", lenses=["bm25"], passages={"words": 20, "overlap": 5}) as collection:
        collection.add([Document("long", text, "Long"), Document("short", "One zebra and one word1.")])
        collection.commit()
        assert collection.info()["passages"] > 10
        [hits] = collection.search(["zebra"])
        assert sorted(hit.doc_id for hit in hits) == ["long", "short"]
        [best] = [hit for hit in hits if hit.doc_id == "long"]
        assert best.passage.count("zebra") == 3
        assert best.passage == text[best.start : best.end]
        assert len(best.passage.split()) <= 20
        assert "word1" in best.passage


def test_a_document_of_many_passages_does_not_crowd_out_the_others(tmp_path: Path) -> None:
    crowd = Document("crowd", long_text(2000, dict.fromkeys(range(0, 2000, 4), "zebra")))
    others = [Document(f"d{number:02}", f"zebra {'plain ' * number}") for number in range(12)]
    with Collection.create(tmp_path / "c", lenses=["bm25"], passages={"words": 20, "overlap": 5}) as collection:
        collection.add([crowd, *others])
        collection.commit()
        everything = ids(collection, "zebra", 100)
        assert sorted(everything) == sorted(["crowd", *(document.doc_id for document in others)])
        for k in range(1, 14):
            assert ids(collection, "zebra", k) == everything[:k]


def test_a_document_of_fifty_megabytes(tmp_path: Path) -> None:
    piece = long_text(10_000, {}).replace("word", "quitealongwordindeed" * 3)
    text = "\n\n".join([piece] * (50_000_000 // len(piece) + 1)) + " The needle."
    assert len(text) > 50_000_000
    with Collection.create(tmp_path / "c", lenses=["bm25"]) as collection:
        collection.add([Document("big", text), Document("small", "A needle and a thread.")])
        collection.commit()
        [hits] = collection.search(["needle"])
        assert [hit.doc_id for hit in hits] == ["small", "big"]
        assert hits[1].passage.endswith("The needle.")
        assert len(hits[1].passage) < 10_000
        assert collection.get("big") == Document("big", text)
        collection.delete(["big"])
        collection.optimize()
        assert ids(collection, "needle") == ["small"]


@with_model
def test_two_lenses(tmp_path: Path) -> None:
    with Collection.create(tmp_path / "c", lenses=["bm25", "dense"]) as collection:
        collection.add([*DOCUMENTS, Document("empty", ""), Document("long", "A boat on the water. " * 400)])
        assert collection.commit() == Changes(added=5)
        assert collection.lenses == ["bm25", "dense"]
        assert ids(collection, "animal in winter", 1, lenses=["dense"]) == ["fox"]
        assert ids(collection, "animal in winter", lenses=["bm25"]) == []
        assert sorted(ids(collection, "river", lenses=["dense"])) == ["empty", "fox", "long", "snow", "train"]
        [hits] = collection.search(["river at night"], fusion="rrf")
        assert [hit.rank for hit in hits] == [1, 2, 3, 4, 5]
        for hit in hits:
            assert hit.score == pytest.approx(sum(1 / (60 + lens.rank) for lens in hit.by_lens.values() if lens.rank))
            assert "dense" in hit.by_lens
        assert set(hits[0].by_lens) == {"bm25", "dense"}
        for name in collection.lenses:
            alone = {hit.doc_id: hit.by_lens[name] for hit in collection.search(["river at night"], lenses=[name])[0]}
            fused = {hit.doc_id: hit.by_lens[name] for hit in hits}
            assert {one: (seen.score, seen.rank) for one, seen in alone.items()} == {
                one: (seen.score, seen.rank) for one, seen in fused.items() if seen.rank
            }
        assert ids(collection, "river", filter={"year": {"$exists": True}}) != ids(collection, "river")
        assert sorted(ids(collection, "river", filter={"year": 2005})) == ["snow", "train"]
        assert collection.check().problems == []


@with_model
def test_a_model_folder_is_found_from_any_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model").symlink_to(bundled_models()[DEFAULT_MODEL])
    monkeypatch.chdir(tmp_path)
    with Collection.create("c", lenses=["dense"], model="model") as collection:
        collection.add(DOCUMENTS)
    monkeypatch.chdir("/")
    with Collection.open(tmp_path / "c") as collection:
        assert ids(collection, "animal in winter", 1) == ["fox"]
