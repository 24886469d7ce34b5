import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Thread

import pytest

from trilens.cluster import manifest as manifests
from trilens.cluster import publish as publishing
from trilens.cluster.manifest import Published
from trilens.cluster.note import read_note
from trilens.cluster.publish import publish, pull
from trilens.collection import Collection
from trilens.errors import BadInput, CollectionDamaged, CollectionError, CollectionMissing, ServiceFailed, UnknownFormat
from trilens.store.backup.contents import Backup
from trilens.store.backup.opening import open_shared
from trilens.store.commit_record import CommitRecord
from trilens.store.folders import FOLDER
from trilens.store.schema import FORMAT_VERSION

from ..collection.small import refused
from ..store.backup.test_s3 import bucket
from .parts import QUERIES, WORDS, Joined, make_documents

__all__ = ["bucket"]

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed: pip install '.[backup]'")


@pytest.fixture
def collection(tmp_path: Path) -> Iterator[Collection]:
    """Thirty documents in three segments."""
    with Collection.create(tmp_path / "c", lenses=["bm25"]) as made:
        for first in (0, 10, 20):
            made.add(make_documents(10, seed=first, first=first))
            made.commit()
        yield made


@pytest.fixture(params=["folder", "memory"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where to publish: a folder, or a file system of fsspec."""
    files = fsspec.filesystem("memory")
    files.store.clear()
    files.makedirs("/bucket", exist_ok=True)
    yield str(tmp_path / "published") if request.param == "folder" else "memory://bucket/published"
    files.store.clear()


def require_same(collection: Collection, root: Path) -> None:
    with Collection.open(root) as copy:
        assert copy.check().problems == []
        assert list(copy.documents()) == list(collection.documents())
        assert copy.search(QUERIES) == collection.search(QUERIES)
        assert CommitRecord.read(root) == CommitRecord.read(collection.path)


def change(collection: Collection, seed: int) -> None:
    """A commit with new, replaced and deleted documents, and new metadata."""
    draw = random.Random(seed)
    present = list(collection.documents())
    chosen = draw.sample(present, 6)
    collection.delete([document.doc_id for document in chosen[:2]])
    collection.upsert([replace(document, text=" ".join(draw.choices(WORDS, k=6))) for document in chosen[2:4]])
    collection.upsert([replace(document, metadata={"n": seed}) for document in chosen[4:]])
    collection.add(make_documents(2, seed, first=1000 + 2 * seed))
    collection.commit()


def test_what_is_published_is_pulled(collection: Collection, address: str, tmp_path: Path) -> None:
    report = publish(collection.path, address)
    assert (report.number, report.documents, report.shards, report.copied_bytes) == (1, 30, 1, report.bytes)
    assert pull(address, tmp_path / "copy").number == 1
    require_same(collection, tmp_path / "copy")
    again = publish(collection.path, address)
    assert (again.number, again.copied_bytes) == (1, 0)


def test_a_commit_copies_only_what_is_new(collection: Collection, address: str, tmp_path: Path) -> None:
    publish(collection.path, address)
    pull(address, tmp_path / "copy")
    change(collection, 1)
    report = publish(collection.path, address)
    fetched: list[int] = []
    pull(address, tmp_path / "copy", report=fetched.append)
    new = collection.path / FOLDER / collection.snapshot.segments[-1].record.id
    assert report.copied_bytes == sum(fetched) == sum(path.stat().st_size for path in new.rglob("*") if path.is_file())
    assert 0 < 3 * report.copied_bytes < report.bytes
    require_same(collection, tmp_path / "copy")


def test_a_pulled_collection_follows_every_commit(
    collection: Collection, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In place, through merges and an optimize; a reader of an older commit keeps it."""
    monkeypatch.setattr("trilens.store.merge.FANOUT", 4)
    publish(collection.path, address)
    pull(address, tmp_path / "copy")
    with Collection.open(tmp_path / "copy") as reader:
        before = list(reader.documents())
        for seed in range(5):
            change(collection, seed)
            if seed == 3:
                collection.optimize()
            if seed != 1:  # commits that were not published are passed over
                publish(collection.path, address)
                pull(address, tmp_path / "copy")
                require_same(collection, tmp_path / "copy")
        assert list(reader.documents()) == before
        assert reader.refresh()
        assert list(reader.documents()) == list(collection.documents())


def test_shards_are_pulled_alone_and_answer_together(collection: Collection, address: str, tmp_path: Path) -> None:
    publish(collection.path, address, shards=3)
    for seed in range(2):
        for shard in range(3):
            root = tmp_path / f"shard-{shard}"
            assert len(pull(address, root, shard=shard if seed == 0 else None).shards) == 3
        parts = [Collection.open(tmp_path / f"shard-{shard}") for shard in range(3)]
        assert sum(map(len, parts)) == len(collection)
        assert all(part.check().problems == [] for part in parts)
        joined = Joined(parts)
        assert joined.search(QUERIES) == collection.search(QUERIES)
        joined.close()
        change(collection, seed)
        assert publish(collection.path, address).shards == 3
    assert "holds only shard 1" in refused(CollectionError, lambda: publish(tmp_path / "shard-1", address))
    assert "holds only shard 1" in refused(CollectionError, lambda: publish(tmp_path / "shard-1", tmp_path / "elsewhere"))
    assert "expected 0 to 2" in refused(BadInput, lambda: pull(address, tmp_path / "other", shard=3))


def test_segments_stay_in_their_shards(collection: Collection, tmp_path: Path) -> None:
    address = tmp_path / "published"
    publish(collection.path, address, shards=3)
    change(collection, 1)
    publish(collection.path, address)
    with open_shared(address) as place:
        published = Published.read(place)
        first, second = published.get(1)[0].shards, published.get(2)[0].shards
    assert [len(ids) for ids in first] == [1, 1, 1]
    assert all(set(before) <= set(after) for before, after in zip(first, second, strict=True))
    assert publish(collection.path, address, shards=2).shards == 2


def test_too_few_segments_for_the_shards_are_refused_until_there_are_more(collection: Collection, tmp_path: Path) -> None:
    collection.optimize()
    message = refused(BadInput, lambda: publish(collection.path, tmp_path / "p", shards=3))
    assert message.endswith(f"it has 1 segments; run `trilens optimize {collection.path} --segments 3` first")
    before = collection.search(QUERIES)
    collection.optimize(segments=3)
    assert [segment.record.documents for segment in collection.snapshot.segments] == [10, 10, 10]
    assert collection.search(QUERIES) == before
    assert publish(collection.path, tmp_path / "p", shards=3).shards == 3


def test_a_stale_writer_is_refused_and_loses_nothing(collection: Collection, address: str, tmp_path: Path) -> None:
    publish(collection.path, address)
    pull(address, tmp_path / "other")
    with Collection.open(tmp_path / "other") as other:
        change(other, 1)
        assert publish(other.path, address).number == 2
        change(collection, 2)  # this writer was partitioned away, and does not know of commit 2
        message = refused(CollectionError, lambda: publish(collection.path, address))
        assert f"{address} has commits since commit 1, with which this one agrees; nothing was published" in message
        mine = list(collection.documents())
        refused(CollectionError, lambda: pull(address, collection.path))
        assert list(collection.documents()) == mine
        pull(address, tmp_path / "third")
        require_same(other, tmp_path / "third")


def test_of_two_writers_one_alone_succeeds(collection: Collection, address: str) -> None:
    """Both have read the same last manifest, as if a lease had ended while its holder was paused."""
    publish(collection.path, address)
    record = CommitRecord.read(collection.path)
    backup = Backup(made="2026-01-01", documents=30, bytes=1, record=record)
    together, won = Barrier(8), []

    def write() -> None:
        with open_shared(address) as place:
            published = Published.read(place)
            made, content = published.manifest(backup, [list(record.folders)])
            together.wait()
            if published.put(made, content):
                won.append(made)

    threads = [Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with open_shared(address) as place:
        assert won == [Published.read(place).last]


def test_a_writer_that_did_not_learn_of_its_success_is_no_stranger(
    collection: Collection, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(collection.path, address)
    change(collection, 1)
    with monkeypatch.context() as patch:
        patch.setattr(Published, "put", _lose_the_answer(Published.put))
        with pytest.raises(ServiceFailed, match="lost"):
            publish(collection.path, address)
    change(collection, 2)
    assert publish(collection.path, address).number == 3
    pull(address, tmp_path / "copy")
    require_same(collection, tmp_path / "copy")


def _lose_the_answer(put: Callable[..., bool]) -> Callable[..., bool]:
    def lose(*arguments: object) -> bool:
        assert put(*arguments)
        raise ServiceFailed("lost")

    return lose


def test_a_collection_with_changes_of_its_own_is_not_moved(collection: Collection, address: str, tmp_path: Path) -> None:
    publish(collection.path, address)
    pull(address, tmp_path / "other")
    change(collection, 1)
    publish(collection.path, address)
    with Collection.open(tmp_path / "other") as other:
        change(other, 5)
        own = list(other.documents())
        assert "has changes that are not published" in refused(CollectionError, lambda: pull(address, other.path))
        assert list(other.documents()) == own
    with Collection.create(tmp_path / "foreign", lenses=["bm25"]) as foreign:
        assert "holds something else" in refused(CollectionError, lambda: pull(address, foreign.path))
    assert pull(address, tmp_path / "old", number=1).number == 1
    assert "has no commit 9; it has 1 to 2" in refused(CollectionError, lambda: pull(address, tmp_path / "old", number=9))
    pull(address, tmp_path / "old")
    message = refused(BadInput, lambda: pull(address, tmp_path / "old", number=1))
    assert "but an older one was asked for" in message


def test_addresses_that_cannot_be_used(collection: Collection, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    assert "there is no cluster collection at" in refused(CollectionMissing, lambda: pull(nothing, tmp_path / "x"))
    assert not nothing.exists() and not (tmp_path / "x").exists()
    assert "is an archive" in refused(BadInput, lambda: publish(collection.path, tmp_path / "c.tar"))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("dear")
    assert "holds other files" in refused(CollectionError, lambda: publish(collection.path, tmp_path / "full"))
    collection.backup(tmp_path / "backups")
    assert "holds other files" in refused(CollectionError, lambda: publish(collection.path, tmp_path / "backups"))
    assert "expected 1 to" in refused(BadInput, lambda: publish(collection.path, tmp_path / "p", shards=0))
    assert "there is no collection at" in refused(CollectionMissing, lambda: publish(nothing, tmp_path / "p"))
    publish(collection.path, tmp_path / "p")
    with Collection.create(tmp_path / "other", lenses=["bm25"]) as other:
        message = refused(CollectionError, lambda: publish(other.path, tmp_path / "p"))
        assert "of another writer" in message


def test_damage_at_the_address_is_named(collection: Collection, tmp_path: Path) -> None:
    address = tmp_path / "published"
    publish(collection.path, address)
    change(collection, 1)
    publish(collection.path, address)
    newest = sorted((address / "manifests").iterdir())[-1]
    whole = newest.read_bytes()

    newest.write_bytes(whole[:-20])  # half-written
    message = refused(CollectionDamaged, lambda: pull(address, tmp_path / "x"))
    assert message.endswith("does not fit its checksum; remove it to go back to the commit before it")
    newest.unlink()
    assert pull(address, tmp_path / "before").number == 1

    newer = whole.replace(b'"format":%d' % FORMAT_VERSION, b'"format":%d' % (FORMAT_VERSION + 1))
    newest.write_bytes(newer)  # the checksum covers the content alone
    assert f"has format version {FORMAT_VERSION + 1}" in refused(UnknownFormat, lambda: pull(address, tmp_path / "x"))

    newest.write_bytes(whole)
    file = next((address / "segments").glob("*/bm25/postings.npy"))
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert "has changed" in refused(CollectionDamaged, lambda: pull(address, tmp_path / "x"))
    file.unlink()
    assert "is missing in" in refused(CollectionDamaged, lambda: pull(address, tmp_path / "x"))
    file.write_bytes(content)
    pull(address, tmp_path / "x")
    require_same(collection, tmp_path / "x")


def test_a_reader_of_a_commit_that_is_removed_gets_the_next(
    collection: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = tmp_path / "published"
    publish(collection.path, address)
    monkeypatch.setattr(manifests, "MOST", 1)
    monkeypatch.setattr(manifests, "KEPT", 1)
    plain = publishing._move

    def move(*arguments: object) -> None:
        monkeypatch.setattr(publishing, "_move", plain)
        collection.optimize()
        publish(collection.path, address)  # removes all that the reader is about to fetch
        plain(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(publishing, "_move", move)
    assert pull(address, tmp_path / "copy").number == 2
    require_same(collection, tmp_path / "copy")


def test_old_manifests_and_what_only_they_need_are_removed(
    collection: Collection, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifests, "MOST", 4)
    monkeypatch.setattr(manifests, "KEPT", 2)
    for seed in range(5):
        change(collection, seed)
        collection.optimize()
        publish(collection.path, address)
    with open_shared(address) as place:
        published = Published.read(place)
        assert published.numbers == [4, 5]
        needed = {folder_id for number in (4, 5) for folder_id in published.get(number)[0].record.folders}
        assert {name.split("/")[1] for name in place.sizes("segments")} == needed
    pull(address, tmp_path / "copy")
    require_same(collection, tmp_path / "copy")


def test_in_a_bucket(collection: Collection, bucket: str, tmp_path: Path) -> None:
    address = f"s3://{bucket}/published"
    publish(collection.path, address, shards=3)
    pull(address, tmp_path / "copy")
    pull(address, tmp_path / "part", shard=1)
    change(collection, 1)
    report = publish(collection.path, address)
    assert (report.number, report.copied_bytes < report.bytes / 3) == (2, True)
    pull(address, tmp_path / "copy")
    require_same(collection, tmp_path / "copy")
    with open_shared(address) as place:
        published = Published.read(place)
        made, content = published.manifest(published.require().backup, published.require().shards)
        published.numbers, published.last = [1], published.get(1)[0]  # as a stale writer sees it
        stale, other = published.manifest(published.require().backup, published.require().shards)
        assert stale.number == 2 and not published.put(stale, other)
        assert published.put(made, content)
        assert read_note(tmp_path / "copy", made.history).number == 2


def test_an_unreachable_bucket_is_one_line(collection: Collection, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    message = refused(ServiceFailed, lambda: pull(f"s3://{bucket}/published", collection.path.parent / "x"))
    assert message.startswith(f"s3://{bucket}/published cannot be used (")
