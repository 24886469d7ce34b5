import io
import os
import socket
import tarfile
from pathlib import Path

import pytest

from trilens.collection import Collection
from trilens.errors import CollectionDamaged, TrilensError

from ...collection.small import refused
from .conftest import numbered

NAMES = ["b.tar", "b.tar.gz", "b.tgz"]


@pytest.mark.parametrize("name", NAMES)
def test_an_archive_holds_one_backup(collection: Collection, folder: Path, name: str) -> None:
    report = collection.backup(folder / name)
    assert (report.commit, report.copied_folders, report.problems) == (3, 3, [])
    with tarfile.open(folder / name) as archive:
        assert all(member.isfile() for member in archive)
    [backup] = Collection.backups(folder / name)
    assert (backup.commit, backup.documents) == (3, 12)
    Collection.restore(folder / name, folder / "r")
    with Collection.open(folder / "r") as copy:
        assert copy.check().problems == []
        assert list(copy.documents()) == numbered(0, 12)
    assert {path.name for path in folder.iterdir()} == {"c", "r", name}


@pytest.mark.parametrize("name", NAMES)
def test_an_archive_that_is_cut_short_is_refused(collection: Collection, folder: Path, name: str) -> None:
    collection.backup(folder / name)
    whole = (folder / name).read_bytes()
    for end in (0, 1, 600, len(whole) // 3, len(whole) * 2 // 3):
        (folder / name).write_bytes(whole[:end])
        refused(TrilensError, lambda: Collection.restore(folder / name, folder / "r"))
        assert not (folder / "r" / "catalog.sqlite").exists()


def _link(name: str, kind: bytes) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, "/etc/passwd"
    return member


@pytest.mark.parametrize(
    "member",
    [
        _link("segments/0123456789abcdef/rows/keys.npy", tarfile.SYMTYPE),
        _link("segments/0123456789abcdef/rows/keys.npy", tarfile.LNKTYPE),
        _link("segments/0123456789abcdef/rows/keys.npy", tarfile.CHRTYPE),
        tarfile.TarInfo("../evil"),
        tarfile.TarInfo("segments/../../evil"),
    ],
)
def test_other_members_than_files_of_backups_are_refused(collection: Collection, folder: Path, member: tarfile.TarInfo) -> None:
    collection.backup(folder / "b.tar")
    with tarfile.open(folder / "b.tar", "a") as archive:
        archive.addfile(member, io.BytesIO())
    assert "expected only the files of a backup" in refused(
        CollectionDamaged, lambda: Collection.restore(folder / "b.tar", folder / "r")
    )
    assert not (folder / "r").exists()
    assert not (folder / "evil").exists()


def test_what_a_killed_process_has_left_is_removed(collection: Collection, folder: Path) -> None:
    host = socket.gethostname().replace("-", "_")
    dead, other, alive = f"{host}-4194305-00", "elsewhere-4194305-00", f"{host}-{os.getpid()}-00"
    for owner in (dead, other, alive):
        (folder / f".b.tar.unfinished-{owner}").touch()
    collection.backup(folder / "b.tar")
    left = {path.name for path in folder.glob(".b.tar*")}
    assert left == {f".b.tar.unfinished-{owner}" for owner in (other, alive)}


def test_a_failed_archive_leaves_nothing(collection: Collection, folder: Path) -> None:
    next(collection.path.glob("segments/*/rows/keys.npy")).write_bytes(b"damaged")
    refused(CollectionDamaged, lambda: collection.backup(folder / "b.tar"))
    assert {path.name for path in folder.iterdir()} == {"c"}
