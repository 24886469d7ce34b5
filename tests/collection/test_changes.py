"""Adding, replacing and deleting documents; commits and what others see of them."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from trilens.collection import Collection
from trilens.errors import (
    BadInput,
)
from trilens.store import merge, writer
from trilens.store.changes import Changes
from trilens.text.document import Document

from .small import DOCUMENTS, ids, refused, segment_names


def test_documents_come_back_as_they_went_in(tmp_path: Path) -> None:
    strange = [
        Document("ünï \n'\"; --", "text\0with\x01controls\r\n", "title\0too", {"a": {"b": [1, 2.5, None, True, "é😀"]}, "": 0}),
        Document("empty", ""),
        Document("x" * 1024, "\ufeff 漢字 \u200d"),
    ]
    with Collection.create(tmp_path / "c", lenses=["bm25"]) as collection:
        collection.add(strange)
    with Collection.open(tmp_path / "c") as collection:
        assert [collection.get(document.doc_id) for document in strange] == strange
        assert collection.check().problems == []


def test_add_of_a_known_id(collection: Collection) -> None:
    message = refused(BadInput, lambda: collection.add([Document("new", "x"), Document("fox", "other")]))
    assert "'fox'" in message
    assert "upsert" in message
    collection.rollback()
    assert collection.get("fox") == DOCUMENTS[0]
    assert collection.get("new") is None


def test_add_of_the_same_id_twice(collection: Collection) -> None:
    refused(BadInput, lambda: collection.add([Document("new", "x"), Document("new", "y")]))


@pytest.mark.parametrize("wrong", ["text", {"doc_id": "x", "text": "y"}, None, ("x", "y")])
def test_only_documents_can_be_added(collection: Collection, wrong: Any) -> None:
    assert "Document" in refused(BadInput, lambda: collection.add([wrong]))
    assert "Document" in refused(BadInput, lambda: collection.upsert([wrong]))


def test_a_failed_call_leaves_nothing_of_itself(collection: Collection) -> None:
    first, last = Document("first", "river one"), Document("last", "river two")
    refused(BadInput, lambda: collection.add([first, DOCUMENTS[0], last]))
    collection.commit()
    assert [collection.get(document.doc_id) for document in (first, last)] == [None, None]
    assert len(collection) == len(DOCUMENTS)


def test_an_error_of_the_source_is_not_one_of_the_collection(collection: Collection) -> None:
    def documents() -> Iterator[Document]:
        yield Document("first", "river one")
        raise FileNotFoundError("the source")

    with pytest.raises(FileNotFoundError, match="the source"):
        collection.upsert(documents())
    collection.commit()
    assert collection.get("first") is None


def test_changes_are_counted_and_seen_after_commit_only(collection: Collection) -> None:
    collection.upsert([Document("fox", "Now about a badger."), DOCUMENTS[1], Document("new", "A brand new badger.")])
    assert collection.delete(["snow", "unknown"]) == ["unknown"]
    assert ids(collection, "badger") == []
    assert len(collection) == 3
    assert collection.commit() == Changes(added=1, replaced=1, unchanged=1, deleted=1)
    assert set(ids(collection, "badger")) == {"fox", "new"}
    assert ids(collection, "snow") == []
    assert len(collection) == 3


def test_commit_without_changes_does_nothing(collection: Collection) -> None:
    before = collection.info()
    assert collection.commit() == Changes()
    assert collection.info() == before


def test_an_unchanged_upsert_costs_nothing(collection: Collection) -> None:
    before, names = collection.info(), segment_names(collection)
    files = {path: path.stat().st_mtime_ns for path in (collection.path / "segments").rglob("*")}
    collection.upsert(DOCUMENTS)
    assert collection.commit() == Changes(unchanged=3)
    assert segment_names(collection) == names
    assert {path: path.stat().st_mtime_ns for path in (collection.path / "segments").rglob("*")} == files
    assert collection.info() == before


def test_an_upsert_of_metadata_makes_no_segment(collection: Collection) -> None:
    names = segment_names(collection)
    changed = Document("fox", DOCUMENTS[0].text, DOCUMENTS[0].title, {"year": 2020})
    collection.upsert([changed])
    assert collection.commit() == Changes(replaced=1)
    assert segment_names(collection) == names
    assert collection.get("fox") == changed
    assert ids(collection, "river", filter={"year": 2020}) == ["fox"]
    assert ids(collection, "river", filter={"year": 1999}) == []
    assert collection.check().problems == []


def test_where_the_title_ends_is_a_change(collection: Collection) -> None:
    for title, text in (("a", "b\0c"), ("a\0b", "c"), ("", "a\0b\0c")):
        collection.upsert([Document("x", text, title)])
        assert collection.commit().unchanged == 0
        assert collection.get("x") == Document("x", text, title)


def test_changing_a_document_twice_in_one_commit(collection: Collection) -> None:
    collection.upsert([Document("fox", "first badger")])
    collection.upsert([Document("fox", "second otter", metadata={"a": 1})])
    collection.upsert([Document("fox", "second otter", metadata={"a": 2})])
    collection.add([Document("gone", "never seen badger")])
    collection.delete(["gone", "train"])
    collection.add([Document("train", "back as an otter")])
    collection.commit()
    assert len(collection) == 3
    assert set(ids(collection, "otter")) == {"fox", "train"}
    assert ids(collection, "badger") == []
    assert ids(collection, "otter", filter={"a": 2}) == ["fox"]
    assert collection.check().problems == []


def test_delete(collection: Collection) -> None:
    assert collection.delete(["fox", "fox", "nobody"]) == ["fox", "nobody"]
    assert collection.delete([]) == []
    collection.commit()
    assert collection.get("fox") is None
    assert "fox" not in ids(collection, "river")
    assert "list" in refused(BadInput, lambda: collection.delete("train"))


def test_delete_everything(collection: Collection) -> None:
    collection.delete([document.doc_id for document in DOCUMENTS])
    collection.commit()
    assert len(collection) == 0
    assert ids(collection, "river") == []
    assert ids(collection, "river", filter={"year": 1999}) == []
    collection.optimize()
    assert segment_names(collection) == set()
    collection.add(DOCUMENTS)
    collection.commit()
    assert len(ids(collection, "river")) == 2


@pytest.mark.parametrize("wrong", ["\ud800", "a\udfffb"])
def test_lone_surrogates_are_refused(collection: Collection, wrong: str) -> None:
    makers: list[Callable[[], object]] = [
        lambda: Document(wrong, "text"),
        lambda: Document("x", wrong),
        lambda: Document("x", "text", wrong),
        lambda: Document("x", "text", metadata={"a": wrong}),
        lambda: Document("x", "text", metadata={wrong: 1}),
        lambda: collection.search([wrong]),
        lambda: collection.get(wrong),
        lambda: collection.delete([wrong]),
    ]
    for make in makers:
        refused(BadInput, make)


@pytest.mark.parametrize("wrong", [5, None, b"fox", 5.0])
def test_ids_are_strings(collection: Collection, wrong: Any) -> None:
    collection.upsert([Document("5", "five"), Document("5.0", "five")])
    collection.commit()
    refused(BadInput, lambda: collection.get(wrong))
    refused(BadInput, lambda: collection.delete([wrong]))
    collection.rollback()
    assert len(collection) == 5


def test_metadata_nested_beyond_reason_is_refused() -> None:
    metadata: dict[str, Any] = {}
    for _ in range(100_000):
        metadata = {"a": metadata}
    refused(BadInput, lambda: Document("x", "text", metadata=metadata))


def test_rollback(collection: Collection) -> None:
    names = segment_names(collection)
    collection.upsert([Document("fox", "changed"), Document("new", "new")])
    collection.delete(["train"])
    collection.rollback()
    collection.rollback()
    assert collection.commit() == Changes()
    assert segment_names(collection) == names
    assert [collection.get(document.doc_id) for document in DOCUMENTS] == DOCUMENTS
    with Collection.open(collection.path) as other:
        assert len(other) == 3
        other.delete(["fox"])


def test_the_context_manager_commits(tmp_path: Path) -> None:
    with Collection.create(tmp_path / "c", lenses=["bm25"]) as collection:
        collection.add(DOCUMENTS)
    assert len(Collection.open(tmp_path / "c")) == 3


def test_the_context_manager_rolls_back_after_an_error(tmp_path: Path) -> None:
    Collection.create(tmp_path / "c", lenses=["bm25"]).close()
    with pytest.raises(ZeroDivisionError), Collection.open(tmp_path / "c") as collection:
        collection.add(DOCUMENTS)
        len(DOCUMENTS) // 0
    assert len(Collection.open(tmp_path / "c")) == 0


def test_close_forgets_changes_and_may_be_repeated(collection: Collection) -> None:
    collection.add([Document("new", "text")])
    collection.close()
    collection.close()
    assert len(collection) == 3


def test_optimize(collection: Collection) -> None:
    for number in range(4):
        collection.add([Document(f"n{number}", f"river number {number}")])
        collection.commit()
    collection.delete(["fox", "n1"])
    before = {hit.doc_id: hit.score for hit in collection.search(["river"])[0]} | {"fox": 0, "n1": 0}
    assert collection.info()["segments"] == 5
    collection.optimize()
    info = collection.info()
    assert (info["segments"], info["documents"], info["deleted_passages"]) == (1, 5, 0)
    assert {*ids(collection, "river"), "fox", "n1"} == before.keys()
    names = segment_names(collection)
    collection.optimize()
    assert segment_names(collection) == names


def test_ingest_continues_where_it_was_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trilens.store.pace.SECONDS", 0.0)
    stream = [Document(f"d{number}", f"river number {number}") for number in range(10)]

    def interrupted() -> Iterable[Document]:
        yield from stream[:6]
        raise KeyboardInterrupt

    with Collection.create(tmp_path / "c", lenses=["bm25"]) as collection:
        with pytest.raises(KeyboardInterrupt):
            collection.ingest(interrupted())
        collection.close()
        assert len(collection) == 6
        assert collection.ingest(stream) == Changes(added=4, unchanged=6)
        assert len(collection) == 10
        assert collection.check().problems == []


def test_optimize_leaves_several_segments_that_later_commits_keep_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge, "FANOUT", 3)
    monkeypatch.setattr(writer, "SMALLEST", 1)
    with Collection.create(tmp_path / "c", lenses=["bm25"]) as collection:
        collection.add(Document(f"d{number}", f"river {number}") for number in range(30))
        collection.delete(["d0"])
        before = collection.search(["river 7"]) if collection.commit() else []
        collection.optimize(segments=3)
        assert [segment.record.rows for segment in collection.snapshot.segments] == [9, 10, 10]
        assert collection.search(["river 7"]) == before
        for number in range(30, 36):
            collection.add([Document(f"d{number}", "bank")])
            collection.commit()
        rows = [segment.record.rows for segment in collection.snapshot.segments]
        assert rows == [9, 10, 16]  # up to 2 · 35 / 3 rows: a division has a third of them
        collection.optimize()
        assert [segment.record.rows for segment in collection.snapshot.segments] == [35]
        assert collection.check().problems == []
