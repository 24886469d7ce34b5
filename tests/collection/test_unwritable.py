"""Collections in folders that cannot be written, and on a full disk."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import pytest

from trilens.collection import Collection
from trilens.errors import (
    BadInput,
    CollectionMissing,
    CollectionReadOnly,
)
from trilens.store.catalog import has_moved_on
from trilens.text.document import Document

from .small import DOCUMENTS, ids, segment_names

NOBODY = 65534


def as_nobody(act: Callable[[], object]) -> Any:
    """What `act` returns in a process that may not write here, or the name and message of its error."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        try:
            said: object = act()
        except Exception as error:  # noqa: BLE001  the test wants to see every error
            said = [type(error).__name__, str(error)]
        os.write(writing, json.dumps(said).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return json.loads(answer)


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that everybody may enter and nobody but us may write; pytest's own are private."""
    with TemporaryDirectory() as folder:
        path = Path(folder)
        path.chmod(0o755)
        yield path
        for place in [path, *path.rglob("*")]:
            place.chmod(0o755)


def freeze(root: Path) -> None:
    """Take away every permission to write."""
    for path in [root, *root.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)


def read_everything(root: Path) -> list[object]:
    """Every kind of reading; what comes back can be written as JSON."""
    with Collection.open(root) as collection:
        document = collection.get("train")
        return [
            len(collection),
            ids(collection, "river"),
            ids(collection, "river", filter={"year": 2005}),
            document.text if document else "",
            collection.check().problems,
            collection.refresh(),
            collection.info()["documents"],
        ]


def test_a_read_only_folder_can_be_read(public: Path) -> None:
    root = public / "c"
    with Collection.create(root, lenses=["bm25"]) as collection:
        collection.add(DOCUMENTS)
    expected = read_everything(root)
    freeze(root)
    assert as_nobody(lambda: read_everything(root)) == expected

    def write() -> None:
        with Collection.open(root) as collection:
            collection.add([Document("new", "text")])

    kind, message = as_nobody(write)
    assert kind == CollectionReadOnly.__name__
    assert str(root) in message
    assert "\n" not in message
    kind, message = as_nobody(lambda: Collection.create(root / "inside", lenses=["bm25"]))
    assert kind == CollectionReadOnly.__name__
    assert sorted(path.name for path in root.iterdir()) == ["catalog.sqlite", "last-commit", "segments", "writer.lock"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can write what others can only read")
def test_others_may_read_while_the_owner_writes(public: Path) -> None:
    root = public / "c"
    with Collection.create(root, lenses=["bm25"]) as collection:
        collection.add(DOCUMENTS[:1])
        collection.commit()
        assert as_nobody(lambda: read_everything(root)) == read_everything(root)
        collection.add(DOCUMENTS[1:])
        collection.commit()
        assert len(collection) == 3  # we hold a snapshot, so the commit is not yet in the main file
        assert as_nobody(lambda: read_everything(root)) == read_everything(root)
        collection.optimize()
        assert as_nobody(lambda: read_everything(root)) == read_everything(root)
    assert as_nobody(lambda: read_everything(root)) == read_everything(root)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can write what others can only read")
def test_a_reader_that_cannot_be_told_of_a_change_is_refused_and_never_sees_a_mixture(public: Path) -> None:
    root = public / "c"
    with Collection.create(root, lenses=["bm25"]) as collection:
        collection.add(DOCUMENTS)
    opened, changed = os.pipe(), os.pipe()

    def read() -> list[object]:
        with Collection.open(root) as collection:
            found: list[object] = [ids(collection, "river")]
            os.write(opened[1], b"x")
            os.read(changed[0], 1)
            with pytest.raises(CollectionReadOnly, match=r"changed by another process.*open it again"):
                collection.get("train")
            collection.refresh()
            return [*found, ids(collection, "river")]

    def change() -> None:
        os.read(opened[0], 1)
        with Collection.open(root) as collection:
            collection.delete([document.doc_id for document in DOCUMENTS])
        os.write(changed[1], b"x")

    thread = Thread(target=change)
    thread.start()
    before, after = as_nobody(read)
    thread.join()
    assert before and not after


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], capture_output=True, text=True, check=False
    )
    if mount.returncode:
        pytest.skip(f"cannot mount a small file system: {mount.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def ids_of_new(root: Path) -> list[str]:
    """What a search for the text of the document `new` finds."""
    with Collection.open(root) as collection:
        return ids(collection, "text")


def fill(disk: Path, free_bytes: int) -> None:
    """Leave only this much space."""
    status = os.statvfs(disk)
    (disk / "filler").write_bytes(b"x" * max(0, status.f_bavail * status.f_bsize - free_bytes))


def test_a_full_disk_changes_nothing(small_disk: Path) -> None:
    root = small_disk / "c"
    old = [Document(f"d{number}", f"river number {number}") for number in range(40)]
    many = [Document(f"n{i}", " ".join(f"w{i}x{j}" for j in range(100)) + " river") for i in range(100)]
    with Collection.create(root, lenses=["bm25"]) as collection:
        collection.add(old)

    def add(collection: Collection) -> None:
        collection.add(many)
        collection.commit()

    def replace(collection: Collection) -> None:
        collection.upsert([Document(document.doc_id, "a lake " * 50) for document in old[:30]])
        collection.optimize()

    outcomes = set()
    for free_kib in (0, 4, 16, 28, 32, 36, 48, 64, 80, 96, 128, 160, 192, 256, 320, 400, 512, 1024):
        for change in (add, replace):
            collection = Collection.open(root)
            fill(small_disk, free_kib << 10)
            try:
                change(collection)
                changed = True
            except CollectionReadOnly as error:
                assert str(error).startswith("no space left on the disk")
                assert "\n" not in str(error)
                changed = False
            outcomes.add((change, changed))
            (small_disk / "filler").unlink()
            # The same object goes on as if nothing had been tried.
            collection.rollback()
            assert collection.check().problems == []
            assert len(collection) == len(old) + changed * (change is add) * len(many)
            assert len(ids(collection, "lake", 200)) == changed * (change is replace) * 30
            assert segment_names(collection) == {segment.record.id for segment in collection.snapshot.segments}
            collection.delete([document.doc_id for document in many])
            collection.upsert(old)
            collection.optimize()
            assert [collection.get(document.doc_id) for document in old] == old
            assert len(collection) == len(old)
            collection.close()
    assert outcomes == {(add, True), (add, False), (replace, True), (replace, False)}


@pytest.mark.parametrize("free_bytes", [0, 8 << 10, 64 << 10])
def test_a_full_disk_can_be_read(small_disk: Path, free_bytes: int) -> None:
    """Also the second time: a connection that finds no space leaves empty files behind."""
    root = small_disk / "c"
    with Collection.create(root, lenses=["bm25"]) as collection:
        collection.add(DOCUMENTS)
    expected = read_everything(root)
    fill(small_disk, free_bytes)
    for _ in range(2):
        assert read_everything(root) == expected
    (small_disk / "filler").unlink()
    with Collection.open(root) as collection:
        collection.add([Document("new", "text")])
    assert ids_of_new(root) == ["new"]


def test_a_full_disk_can_be_read_while_its_last_commits_are_in_the_log(small_disk: Path) -> None:
    root = small_disk / "c"
    with Collection.create(root, lenses=["bm25"]) as writer:
        writer.add(DOCUMENTS)
        writer.commit()
        assert len(writer) == 3  # the snapshot keeps the commit out of the main file
        writer.add([Document("new", "text")])
        writer.commit()
        fill(small_disk, 0)
        assert ids_of_new(root) == ["new"]
        assert read_everything(root)[0] == 4


def test_a_collection_weighs_terms_as_its_model_is_meant_to(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"weighing is .'own_query': 9\.0.; expected none: a collection uses the term weighting"):
        Collection.create(tmp_path / "c", lenses=["sparse"], weighing={"own_query": 9.0})
    assert not (tmp_path / "c" / "catalog.sqlite").exists()


def test_a_folder_that_goes_away_is_named(tmp_path: Path) -> None:
    with Collection.create(tmp_path / "c.trilens", lenses=["bm25"]) as collection:
        collection.add(DOCUMENTS)
    shutil.rmtree(tmp_path / "c.trilens")
    with pytest.raises(CollectionMissing, match=r"the folder .*c\.trilens is gone; put it back, or restore"):
        has_moved_on(tmp_path / "c.trilens", 1)
