"""Collections of every older format version are upgraded without losing a document.

`data/format-N/texts.zip` holds a small collection that the release with that format wrote: the documents below in two segments,
of which one holds a deleted document and one document whose metadata was changed later.
"""

import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch
from zipfile import ZipFile

import pytest

from trilens.collection import Collection
from trilens.errors import CollectionDamaged, CollectionLocked, CollectionMissing, UnknownFormat
from trilens.store import upgrade as upgrading
from trilens.store.folders import FOLDER
from trilens.store.schema import FORMAT_VERSION
from trilens.store.staging import take_place
from trilens.text.document import Document

DATA = Path(__file__).parent / "data"
ENCODED_AGAIN = [1, 2, 3]
DOCUMENTS = {
    document.doc_id: document
    for document in [
        Document("fox", "A red fox crosses the frozen river.", "Fox", {"year": 2000}),
        Document(
            "river", " ".join(f"The river number {n} is wide." for n in range(40)), "", {"year": 2001, "tags": ["a", "b"]}
        ),
        Document("empty", "", "", {}),
        Document("ünï", "Füchse überqueren den Fluß\u2028im Winter \U0001f98a.", "", {"n": 1.0, "big": 12345678901234567}),
        Document("late", "One more document about a fox.", "", {"year": 2020}),
    ]
}


def old_collection(version: int, folder: Path, name: str = "texts") -> Path:
    with ZipFile(DATA / f"format-{version}" / f"{name}.zip") as archive:
        archive.extractall(folder)
    return folder / name


def catalog_of(root: Path, statement: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(root / "catalog.sqlite")) as connection, connection:
        return connection.execute(statement).fetchall()


@pytest.mark.parametrize("version", ENCODED_AGAIN)
def test_old_versions_are_encoded_again(version: int, tmp_path: Path) -> None:
    root = old_collection(version, tmp_path)
    with pytest.raises(UnknownFormat, match=f"format version {version}; .*run `trilens upgrade"):
        Collection.open(root)
    report = Collection.upgrade(root)
    assert (report.version, report.documents, report.encoded) == (version, len(DOCUMENTS), True)
    with Collection.open(root) as collection:
        assert collection.check().problems == []
        assert {doc_id: collection.get(doc_id) for doc_id in DOCUMENTS} == DOCUMENTS
        assert len(collection) == len(DOCUMENTS)
        assert [hit.doc_id for hit in collection.search(["fox"], filter={"year": {"$gte": 2000}})[0]] == ["fox", "late"]
        collection.add([Document("new", "A fox of today.")])
    assert Collection.upgrade(root).version == FORMAT_VERSION


@pytest.mark.parametrize("name", ["texts", "vectors"])
def test_indexes_of_version_4_are_taken_over(name: str, tmp_path: Path) -> None:
    root = old_collection(4, tmp_path, name)
    documents = catalog_of(root, "SELECT doc_id, title, text FROM documents ORDER BY key")
    arrays = {(path.relative_to(root).parts[2:], path.read_bytes()) for path in (root / FOLDER).rglob("*.npy")}
    assert not Collection.upgrade(root).encoded
    taken = {(path.relative_to(root).parts[2:], path.read_bytes()) for path in (root / FOLDER).rglob("*.npy")}
    assert arrays < taken
    assert len(taken) - len(arrays) <= 3 * len(list((root / FOLDER).glob("*/documents")))
    with Collection.open(root) as collection:
        assert collection.check().problems == []
        found = [collection.get(str(doc_id)) for doc_id, _, _ in documents]
        assert [(document.doc_id, document.title, document.text) for document in found if document] == documents


def test_deleted_keys_and_changed_metadata_of_version_4(tmp_path: Path) -> None:
    """With the segments of version 4, a deleted row stays in its segment and the current metadata are taken."""
    root = old_collection(4, tmp_path, "vectors")
    [(first,), *others] = catalog_of(root, "SELECT key FROM documents ORDER BY key")
    catalog_of(root, f"DELETE FROM documents WHERE key = {first}")
    catalog_of(root, f"INSERT INTO deleted VALUES ({first})")
    catalog_of(root, """UPDATE documents SET metadata = '{"seen":1}'""")
    Collection.upgrade(root)
    with Collection.open(root) as collection:
        assert collection.check().problems == []
        assert (len(collection), collection.info()["deleted_passages"]) == (len(others), 1)
        assert {str(document.metadata) for _, document in collection.snapshot.page(0, 10)} == {"{'seen': 1}"}
        collection.optimize()
        assert collection.check().problems == []
        assert collection.info()["deleted_passages"] == 0


@pytest.mark.parametrize("version", [1, 4])
@pytest.mark.parametrize("step", ["before", "after"])
def test_a_killed_upgrade_leaves_the_old_or_the_upgraded_collection(version: int, step: str, tmp_path: Path) -> None:
    root = old_collection(version, tmp_path)
    child = os.fork()
    if child == 0:

        def dying(*arguments: Any) -> None:
            if step == "after":
                take_place(*arguments)
            os.kill(os.getpid(), signal.SIGKILL)

        with patch.object(upgrading, "take_place", dying):
            Collection.upgrade(root)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert Collection.upgrade(root).version == (version if step == "before" else FORMAT_VERSION)
    with Collection.open(root) as collection:
        assert collection.check().problems == []
        collection.add([Document("new", "A fox of today.")] if version == 1 else [])
        collection.commit()
        named = {segment.record.id for segment in collection.snapshot.segments}
        named |= {part.record.id for part in collection.snapshot.shared.every}
        assert version == 4 or {path.name for path in (root / FOLDER).iterdir()} == named


def test_a_collection_in_use_is_not_upgraded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trilens.store.catalog_file.BUSY_SECONDS", 0.1)
    root = old_collection(4, tmp_path, "vectors")
    with closing(sqlite3.connect(root / "catalog.sqlite")) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM facts").fetchall()
        with pytest.raises(CollectionLocked):
            Collection.upgrade(root)
    Collection.upgrade(root)


def test_a_damaged_text_is_not_taken_over(tmp_path: Path) -> None:
    root = old_collection(4, tmp_path, "vectors")
    catalog_of(root, "UPDATE documents SET text = text || ' '")
    with pytest.raises(CollectionDamaged, match="is not the one that was indexed"):
        Collection.upgrade(root)
    assert catalog_of(root, "PRAGMA user_version") == [(4,)]


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(CollectionMissing, match="no collection at"):
        Collection.upgrade(tmp_path)
    root = tmp_path / "c"
    Collection.create(root, lenses=["bm25"]).close()
    catalog_of(root, f"PRAGMA user_version = {FORMAT_VERSION + 1}")
    with pytest.raises(UnknownFormat, match="use a newer trilens"):
        Collection.upgrade(root)
