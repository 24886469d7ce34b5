"""Addresses of fsspec, with its file system in memory."""

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from trilens.collection import Collection
from trilens.errors import BadInput, CollectionError, CollectionLocked
from trilens.store.backup import lease
from trilens.store.backup.owner import has_died, this_owner
from trilens.store.backup.remote_place import RemotePlace
from trilens.store.backup.take import take_backup

from ...collection.small import refused
from .conftest import numbered

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed: pip install '.[backup]'")
ADDRESS = "memory://bucket/backups"


@pytest.fixture
def memory() -> Iterator[dict[str, bytes]]:
    """The files of the file system in memory."""
    files = fsspec.filesystem("memory")
    files.store.clear()
    files.makedirs("/bucket", exist_ok=True)
    yield files.store
    files.store.clear()


def holder(owner: str, seconds: float) -> bytes:
    return json.dumps({"owner": owner, "until": time.time() + seconds}).encode()


def write_lock(content: bytes) -> None:
    fsspec.filesystem("memory").pipe_file("/bucket/backups/backup.lock", content)


def test_backups_are_incremental_pruned_and_restored(collection: Collection, folder: Path, memory: dict[str, bytes]) -> None:
    assert collection.backup(ADDRESS).copied_folders == 3
    collection.add(numbered(20, 21))
    collection.commit()
    assert collection.backup(ADDRESS, verify=True).copied_folders == 1
    assert Collection.restore(ADDRESS, folder / "r", commit=3).documents == 12
    collection.add(numbered(21, 22))
    collection.optimize()
    assert collection.backup(ADDRESS, keep=1).removed == [3, 4]
    assert {name.split("/")[4] for name in memory if "/segments/" in name} == {
        path.name for path in (collection.path / "segments").iterdir()
    }
    assert "/bucket/backups/backup.lock" not in memory
    Collection.restore(ADDRESS, folder / "last")
    with Collection.open(folder / "last") as copy:
        assert copy.check().problems == []
        assert list(copy.documents()) == [*numbered(0, 12), *numbered(20, 22)]


def test_large_files_are_written_in_blocks(folder: Path, memory: dict[str, bytes]) -> None:
    with Collection.create(folder / "c", lenses=["bm25"]) as collection:
        collection.add(numbered(0, 1))
        collection.add([type(numbered(0, 1)[0])("long", "x" * (3 << 20))])
        collection.commit()
        collection.backup(ADDRESS)
    assert Collection.restore(ADDRESS, folder / "r").documents == 2


def test_other_files_and_collections_are_refused(collection: Collection, folder: Path, memory: dict[str, bytes]) -> None:
    fsspec.filesystem("memory").pipe_file("/bucket/backups/notes.txt", b"mine")
    assert "holds other files" in refused(CollectionError, lambda: collection.backup(ADDRESS))
    fsspec.filesystem("memory").rm("/bucket/backups/notes.txt")
    collection.backup(ADDRESS)
    with Collection.create(folder / "other", lenses=["bm25"]) as other:
        assert "backups of another collection" in refused(CollectionError, lambda: other.backup(ADDRESS))


def test_a_lease_keeps_other_backups_out(collection: Collection, memory: dict[str, bytes]) -> None:
    with RemotePlace(ADDRESS).writing():
        message = refused(CollectionLocked, lambda: collection.backup(ADDRESS))
        assert "is being written by another backup" in message
        assert str(os.getpid()) in message
    collection.backup(ADDRESS)
    write_lock(holder("elsewhere-1-00", 100))
    assert "(elsewhere-1)" in refused(CollectionLocked, lambda: collection.backup(ADDRESS))


@pytest.mark.parametrize(
    "content",
    [holder("elsewhere-1-00", -1), holder(this_owner().replace(f"-{os.getpid()}-", "-4194305-"), 100), b"", b"[]", b"{}"],
    ids=["expired", "dead", "empty", "list", "object"],
)
def test_a_lease_that_has_ended_is_taken_over(collection: Collection, memory: dict[str, bytes], content: bytes) -> None:
    write_lock(content)
    assert collection.backup(ADDRESS).commit == 3
    assert "/bucket/backups/backup.lock" not in memory


def test_a_backup_that_has_lost_its_lease_stops(
    collection: Collection, memory: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RENEWED_AFTER", -1)

    class Losing(RemotePlace):
        def sizes(self, inside: str = "") -> dict[str, int]:
            write_lock(holder("elsewhere-1-00", 100))
            return super().sizes(inside)

    refused(CollectionLocked, lambda: take_backup(collection.path, Losing(ADDRESS)))
    assert not any("/commits/" in name for name in memory)
    assert "/bucket/backups/backup.lock" in memory


def test_a_lease_is_renewed(collection: Collection, memory: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "RENEWED_AFTER", -1)
    place = RemotePlace(ADDRESS)
    with place.writing():
        write_lock(holder(place._lease._owner, 1))
        place._lease.renew()
        content = json.loads(fsspec.filesystem("memory").cat_file("/bucket/backups/backup.lock"))
        assert content["until"] > time.time() + 100


def test_an_address_with_real_folders(collection: Collection, folder: Path) -> None:
    address = f"file://{folder}/deep/b"
    collection.backup(address)
    collection.optimize()
    assert collection.backup(address, keep=1, verify=True).removed == [3]
    assert Collection.restore(address, folder / "r").documents == 12
    assert {path.name for path in (folder / "deep" / "b").iterdir()} == {"commits", "segments"}


def test_owners() -> None:
    assert not has_died(this_owner())
    assert has_died(this_owner().replace(f"-{os.getpid()}-", "-4194305-"))
    assert not has_died("elsewhere-4194305-00")
    assert not has_died("")


def test_addresses_that_cannot_be_used_are_one_line(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "nonsense" in refused(BadInput, lambda: collection.backup("nonsense://b"))
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    assert "pip install 'trilens[backup]'" in refused(BadInput, lambda: collection.backup(ADDRESS))
