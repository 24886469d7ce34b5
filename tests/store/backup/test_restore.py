import shutil
from pathlib import Path

import pytest

from trilens.collection import Collection
from trilens.errors import BadInput, CollectionDamaged, CollectionExists, CollectionMissing, TrilensError
from trilens.store.creation import CREATING
from trilens.text.document import Document

from ...collection.small import refused
from .conftest import numbered


def entries(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def test_a_restored_collection_is_the_original(collection: Collection, folder: Path) -> None:
    collection.upsert([Document("d1", "word1 of the river", metadata={"n": "changed"})])
    collection.save_tuned(["bm25"], None)
    collection.delete(["d2"])
    collection.commit()
    collection.backup(folder / "b")
    backup = Collection.restore(folder / "b", folder / "r")
    with Collection.open(folder / "r") as copy:
        assert (backup.commit, backup.documents) == (5, 11)
        assert copy.check().problems == []
        assert list(copy.documents()) == list(collection.documents())
        assert copy.search(["word1 river"]) == collection.search(["word1 river"])
        assert {**copy.info(), "path": ""} == {**collection.info(), "path": "", "catalog_bytes": copy.info()["catalog_bytes"]}
        copy.add(numbered(50, 60))
        copy.optimize()
        assert copy.check().problems == []
        assert copy.backup(folder / "b").commit == 6
    assert entries(folder / "r") >= {"catalog.sqlite", "last-commit", "segments"}
    assert CREATING not in entries(folder / "r")


def test_the_last_backup_or_a_commit_is_restored(collection: Collection, folder: Path) -> None:
    for number in range(20, 23):
        collection.add(numbered(number, number + 1))
        collection.commit()
        collection.backup(folder / "b")
    assert Collection.restore(folder / "b", folder / "last").commit == 6
    assert Collection.restore(folder / "b", folder / "first", commit=4).documents == 13
    message = refused(BadInput, lambda: Collection.restore(folder / "b", folder / "none", commit=3))
    assert "has no backup of commit 3; it has the commits 4, 5, 6" in message
    assert not (folder / "none").exists()


def test_only_a_new_or_empty_folder_is_filled(collection: Collection, folder: Path) -> None:
    collection.backup(folder / "b")
    (folder / "empty").mkdir()
    Collection.restore(folder / "b", folder / "empty")
    (folder / "full").mkdir()
    (folder / "full" / "file").touch()
    for taken in ("full", "empty", "c"):
        refused(CollectionExists, lambda taken=taken: Collection.restore(folder / "b", folder / taken))  # type: ignore[misc]
    assert entries(folder / "full") == {"file"}


def test_segments_without_a_catalog_are_not_replaced(collection: Collection, folder: Path) -> None:
    """A repair can read their documents; only what an interrupted restoration has left is removed."""
    collection.backup(folder / "b")
    collection.close()
    (folder / "c" / "catalog.sqlite").unlink()
    kept = entries(folder / "c" / "segments")
    refused(CollectionExists, lambda: Collection.restore(folder / "b", folder / "c"))
    assert entries(folder / "c" / "segments") == kept


def test_a_place_without_backups_is_refused(folder: Path) -> None:
    assert "there is no backup at" in refused(CollectionMissing, lambda: Collection.restore(folder / "none", folder / "r"))
    (folder / "empty").mkdir()
    assert "holds no backup" in refused(CollectionMissing, lambda: Collection.restore(folder / "empty", folder / "r"))
    refused(CollectionMissing, lambda: Collection.restore("memory://nothing/here", folder / "r"))
    assert Collection.backups(folder / "empty") == []


def test_every_kind_of_damage_is_found(collection: Collection, folder: Path) -> None:
    """A byte of each file changed, each file cut, lengthened and missing: an error, and no collection."""
    collection.backup(folder / "b")
    for path in [path for path in (folder / "b").rglob("*") if path.is_file() and path.name != "backup.lock"]:
        whole = path.read_bytes()
        changed = bytearray(whole)
        changed[len(whole) // 2] ^= 1
        for content in (bytes(changed), whole[:-1], whole + b"\0", b"", None):
            if content is None:
                path.unlink()
            else:
                path.write_bytes(content)
            refused(TrilensError, lambda: Collection.restore(folder / "b", folder / "r"))
            assert not (folder / "r" / "catalog.sqlite").exists()
            assert entries(folder / "r" / "segments") == set()
        path.write_bytes(whole)
    assert Collection.restore(folder / "b", folder / "r").documents == 12


@pytest.mark.parametrize("path", ["../../../../evil", "/evil", "rows/../../x"])
def test_a_manifest_cannot_name_files_elsewhere(collection: Collection, folder: Path, path: str) -> None:
    """Even a backup that is consistent in itself writes into its folders only."""
    from hashlib import blake2b

    from trilens.store.backup.contents import BACKUP, Contents
    from trilens.store.backup.folder_place import FolderPlace
    from trilens.store.commit_record import CommitRecord, seal

    collection.optimize()
    collection.backup(folder / "b")
    place = FolderPlace(folder / "b")
    [backup] = Contents.read(place).backups
    [folder_id] = backup.record.folders
    manifest = folder / "b" / "segments" / folder_id / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(b'"path":"rows/keys.npy"', f'"path":"{path}"'.encode()))
    checksum = blake2b(manifest.read_bytes(), digest_size=16).hexdigest()
    record = backup.record
    forged = CommitRecord(facts=record.facts, folders={folder_id: checksum}, deleted=(), changed={}, next_key=record.next_key)
    (folder / "b" / backup.name).write_bytes(seal(BACKUP, type(backup)(made=backup.made, documents=1, bytes=1, record=forged)))
    refused(CollectionDamaged, lambda: Collection.restore(folder / "b", folder / "deep" / "r"))
    assert not list(folder.rglob("evil*"))


def test_an_interrupted_restoration_is_no_collection_and_can_be_repeated(collection: Collection, folder: Path) -> None:
    collection.backup(folder / "b")

    def interrupt(count: int) -> None:
        if (folder / "r" / "segments").exists() and len(entries(folder / "r" / "segments")) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Collection.restore(folder / "b", folder / "r", report=interrupt)
    assert entries(folder / "r" / "segments") == set()
    refused(CollectionMissing, lambda: Collection.open(folder / "r"))
    shutil.copytree(folder / "b" / "segments", folder / "r" / "segments", dirs_exist_ok=True)  # as a killed process leaves it
    (next((folder / "r" / "segments").iterdir()) / "rows" / "keys.npy").write_bytes(b"cut")
    assert Collection.restore(folder / "b", folder / "r").documents == 12
    with Collection.open(folder / "r") as copy:
        assert copy.check().problems == []
