"""Backups in a bucket of a real server with the S3 protocol, on loopback."""

from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from urllib.request import urlopen

import pytest

from trilens.collection import Collection
from trilens.errors import BadInput, CollectionLocked, ServiceFailed
from trilens.store.backup.remote_place import RemotePlace
from trilens.text.document import Document

from ...collection.small import refused
from .conftest import numbered

s3fs = pytest.importorskip("s3fs", reason="s3fs is not installed: pip install '.[backup]'")
server = pytest.importorskip("moto.server", reason="moto is not installed: pip install '.[dev]'")
ADDRESS = "s3://bucket/backups"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An empty bucket, and the address of its server in the environment."""
    running = server.ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    urlopen(f"http://{host}:{port}/moto-api/reset", data=b"").close()  # buckets belong to the process, not to the server
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_MAX_ATTEMPTS": "1",
    }.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    s3fs.S3FileSystem().mkdir("bucket")
    yield "bucket"
    s3fs.S3FileSystem.clear_instance_cache()
    running.stop()


def test_backups_in_a_bucket(collection: Collection, folder: Path, bucket: str) -> None:
    files = s3fs.S3FileSystem()
    assert collection.backup(ADDRESS).copied_folders == 3
    collection.add([Document("long", "x" * (2 << 20)), *numbered(20, 21)])
    collection.commit()
    report = collection.backup(ADDRESS, verify=True)
    assert (report.copied_folders, report.problems) == (1, [])
    assert Collection.restore(ADDRESS, folder / "old", commit=3).documents == 12
    collection.optimize()
    assert collection.backup(ADDRESS, keep=1).removed == [3, 4]
    names = {name.split("/")[3] for name in files.find(f"{bucket}/backups/segments")}
    assert names == {path.name for path in (collection.path / "segments").iterdir()}
    Collection.restore(ADDRESS, folder / "r")
    with Collection.open(folder / "r") as copy:
        assert copy.check().problems == []
        assert list(copy.documents()) == list(collection.documents())


def test_the_server_keeps_two_backups_apart(collection: Collection, folder: Path, bucket: str) -> None:
    with RemotePlace(ADDRESS).writing():
        refused(CollectionLocked, lambda: collection.backup(ADDRESS))
    outcomes: list[object] = []

    def back_up() -> None:
        try:
            outcomes.append(collection.backup(ADDRESS).commit)
        except CollectionLocked as error:
            outcomes.append(str(error))

    threads = [Thread(target=back_up) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 3 in outcomes
    assert len(outcomes) == 3
    assert Collection.restore(ADDRESS, folder / "r").documents == 12


def test_a_missing_bucket_and_a_missing_server_are_one_line(
    collection: Collection, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "there is no other; create it first" in refused(BadInput, lambda: collection.backup("s3://other/b"))
    assert "bucket does not exist" in refused(ServiceFailed, lambda: Collection.restore("s3://other/b", "r"))
    assert s3fs.S3FileSystem().ls("") == [bucket]
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    s3fs.S3FileSystem.clear_instance_cache()
    assert f"{ADDRESS} cannot be used" in refused(ServiceFailed, lambda: collection.backup(ADDRESS))
