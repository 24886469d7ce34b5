import shutil
from pathlib import Path
from typing import Any

import pytest

from trilens.collection import Collection
from trilens.errors import CollectionDamaged, UnknownFormat
from trilens.store import merge, writer
from trilens.store.catalog import Catalog
from trilens.store.check import check_collection
from trilens.store.commit_record import RECORD, CommitRecord, seal
from trilens.store.creation import create_collection
from trilens.store.schema import FORMAT_VERSION
from trilens.text.document import Document

from .tiny import LENSES, TinyEncoder


def changed_often(root: Path) -> None:
    """A collection with several segments, deleted keys, changed metadata, a tuned fusion and a gap in its keys."""
    with Collection.create(root, lenses=LENSES, encoder=TinyEncoder()) as collection:
        for start in range(0, 24, 4):
            collection.upsert(
                Document(f"d{n}", f"word{n} of the\u2028river\0 {n}", "T", {"n": n}) for n in range(start, start + 4)
            )
            collection.commit()
        collection.delete(["d0", "d23"])
        collection.upsert(
            [Document("d5", "another text"), Document("d6", "word6 of the\u2028river\0 6", "T", {"n": [1, 1.0, -0.0, 1 << 70]})]
        )
        collection.save_tuned(["bm25", "dense"], {"fusion": "rrf"})
        collection.upsert([Document("gone", "deleted before it is written")])
        collection.delete(["gone"])
        collection.commit()


def state(root: Path) -> dict[str, Any]:
    """Everything that a catalog holds."""
    catalog = Catalog.open(root)
    try:
        catalog.verify()
        return {
            "facts": catalog.facts(),
            "folders": catalog.folders(),
            "rows": list(catalog.rows()),
            "deleted": catalog.marked("deleted").tolist(),
            "changed": catalog.marked("changed").tolist(),
            "next_key": catalog.next_key(),
        }
    finally:
        catalog.close()


def record_of(root: Path) -> CommitRecord:
    catalog = Catalog.open(root)
    try:
        return CommitRecord.of(catalog)
    finally:
        catalog.close()


def rebuilt(root: Path, copy: Path) -> Path:
    """A collection with the folders of another one and the catalog of its record."""
    record = CommitRecord.from_json(record_of(root).to_json(), "record")

    create_collection(copy, record, lambda: shutil.copytree(root / "segments", copy / "segments", dirs_exist_ok=True))
    return copy


def test_a_rebuilt_catalog_equals_the_original(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "BUFFER_PASSAGES", 5)
    monkeypatch.setattr(merge, "FANOUT", 5)
    changed_often(tmp_path / "c")
    copy = rebuilt(tmp_path / "c", tmp_path / "copy")
    expected = state(tmp_path / "c")
    assert state(copy) == expected
    assert len(expected["deleted"]) >= 2
    assert expected["changed"]
    assert check_collection(copy).problems == []
    with Collection.open(copy, encoder=TinyEncoder()) as collection:
        assert collection.get("d6") == Document("d6", "word6 of the\u2028river\0 6", "T", {"n": [1, 1.0, -0.0, 1 << 70]})
        collection.upsert([Document("next", "keys go on")])
        collection.commit()
        assert collection.snapshot.key("next") == expected["next_key"]


def test_an_empty_collection_is_rebuilt(tmp_path: Path) -> None:
    Collection.create(tmp_path / "c", lenses=["bm25"]).close()
    assert state(rebuilt(tmp_path / "c", tmp_path / "copy")) == state(tmp_path / "c")


def test_an_emptied_collection_keeps_its_next_key(tmp_path: Path) -> None:
    with Collection.create(tmp_path / "c", lenses=["bm25"]) as collection:
        collection.add([Document("a", "one")])
        collection.commit()
        collection.delete(["a"])
    copy = rebuilt(tmp_path / "c", tmp_path / "copy")
    assert state(copy) == state(tmp_path / "c")
    assert state(copy)["next_key"] == 2


def test_every_collection_has_an_identity_of_its_own(tmp_path: Path) -> None:
    for name in "ab":
        Collection.create(tmp_path / name, lenses=["bm25"]).close()
    assert record_of(tmp_path / "a").collection_id != record_of(tmp_path / "b").collection_id


def test_every_changed_byte_is_noticed(tmp_path: Path) -> None:
    Collection.create(tmp_path / "c", lenses=["bm25"]).close()
    content = record_of(tmp_path / "c").to_json()
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1
        with pytest.raises((CollectionDamaged, UnknownFormat)):
            CommitRecord.from_json(bytes(damaged), "record")
    for end in range(len(content)):
        with pytest.raises(CollectionDamaged):
            CommitRecord.from_json(content[:end], "record")


def test_a_record_of_another_format_is_refused(tmp_path: Path) -> None:
    Collection.create(tmp_path / "c", lenses=["bm25"]).close()
    content = record_of(tmp_path / "c").to_json()
    other = content.replace(b'"format":%d' % FORMAT_VERSION, b'"format":%d' % (FORMAT_VERSION + 1))
    with pytest.raises(
        UnknownFormat, match=f"format version {FORMAT_VERSION + 1}; this trilens reads version {FORMAT_VERSION}"
    ):
        CommitRecord.from_json(other, "record")


@pytest.mark.parametrize("name", ["../../etc", "unfinished-0123456789abcdef", "0123456789abcdeg"])
def test_a_record_names_only_folders_of_a_collection(tmp_path: Path, name: str) -> None:
    Collection.create(tmp_path / "c", lenses=["bm25"]).close()
    record = record_of(tmp_path / "c")
    foreign = CommitRecord(facts=record.facts, folders={name: "0" * 32}, deleted=(), changed={}, next_key=1)
    with pytest.raises(CollectionDamaged, match="not the record of a commit"):
        CommitRecord.from_json(seal(RECORD, foreign), "record")
