from collections.abc import Callable
from pathlib import Path

import pytest

from trilens.collection import Collection
from trilens.errors import BadInput, CollectionDamaged, CollectionError, CollectionExists, CollectionLocked, CollectionReadOnly
from trilens.store.backup import take
from trilens.store.backup.folder_place import FolderPlace
from trilens.store.backup.place import ByteSource
from trilens.store.backup.take import take_backup
from trilens.text.document import Document

from ...collection.small import refused
from .conftest import fill, numbered


def files(folder: Path) -> dict[str, bytes]:
    """All files of backups by name."""
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    found.pop("backup.lock", None)
    return found


def restored(source: Path | str, target: Path, commit: int | None = None) -> list[Document]:
    Collection.restore(source, target, commit=commit)
    with Collection.open(target) as collection:
        assert collection.check().problems == []
        return list(collection.documents())


class Interrupting(FolderPlace):
    """A folder that calls a function before it writes."""

    def __init__(self, path: Path, before: Callable[[str], None]) -> None:
        super().__init__(path)
        self._before = before

    def write(self, name: str, size: int, content: ByteSource) -> None:
        self._before(name)
        super().write(name, size, content)


def test_only_folders_that_the_target_does_not_have_are_copied(collection: Collection, folder: Path) -> None:
    assert collection.backup(folder / "b").copied_folders == 3
    before = files(folder / "b")
    collection.upsert([Document("d3", "another text")])
    collection.delete(["d0"])
    collection.commit()
    report = collection.backup(folder / "b")
    assert (report.commit, report.copied_folders) == (4, 1)
    assert files(folder / "b").items() >= before.items()
    assert len(restored(folder / "b", folder / "new")) == 11
    assert restored(folder / "b", folder / "old", commit=3) == numbered(0, 12)


def test_the_new_bytes_of_a_small_commit_are_few(folder: Path) -> None:
    with Collection.create(folder / "c", lenses=["bm25"]) as collection:
        collection.add(numbered(0, 4000))
        collection.commit()
        whole = collection.backup(folder / "b")
        before = files(folder / "b")
        collection.upsert([Document("d7", "one changed text"), Document("d8", "word8 of the river", metadata={"n": "changed"})])
        collection.commit()
        report = collection.backup(folder / "b")
    added = {name: len(content) for name, content in files(folder / "b").items() if name not in before}
    assert whole.bytes > 400_000
    assert report.copied_folders == 1
    assert report.copied_bytes < 10_000
    assert sum(added.values()) < 15_000
    assert next(size for name, size in added.items() if name.startswith("commits/")) < 2000


def test_an_unchanged_commit_is_confirmed(collection: Collection, folder: Path) -> None:
    collection.backup(folder / "b")
    [first] = Collection.backups(folder / "b")
    assert collection.backup(folder / "b").copied_folders == 0
    [second] = Collection.backups(folder / "b")
    assert second.made > first.made
    assert second.record == first.record


def test_uncommitted_changes_are_not_part_of_a_backup(collection: Collection, folder: Path) -> None:
    collection.add(numbered(12, 13))
    assert collection.backup(folder / "b").documents == 12
    assert len(restored(folder / "b", folder / "r")) == 12


def test_a_merge_while_copying_is_followed(collection: Collection, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(take, "FILES_AT_ONCE", 1)  # one folder is open at a time, the others disappear
    merged: list[str] = []

    def merge_once(name: str) -> None:
        if not merged:
            collection.optimize()
            merged.append(name)

    report = take_backup(collection.path, Interrupting(folder / "b", merge_once))
    assert (report.commit, report.copied_folders) == (4, 2)
    assert {name.split("/")[1] for name in files(folder / "b") if name.startswith("segments")} == {
        path.name for path in (collection.path / "segments").iterdir()
    }
    assert restored(folder / "b", folder / "r") == numbered(0, 12)


def test_open_files_are_copied_although_a_merge_removes_them(collection: Collection, folder: Path) -> None:
    def merge(name: str) -> None:
        collection.optimize()

    report = take_backup(collection.path, Interrupting(folder / "b", merge))
    assert (report.commit, report.copied_folders) == (3, 3)
    assert restored(folder / "b", folder / "r") == numbered(0, 12)


def test_keep_removes_old_backups_and_what_only_they_need(collection: Collection, folder: Path) -> None:
    for number in range(20, 26):
        collection.add(numbered(number, number + 1))
        collection.commit()
        report = collection.backup(folder / "b", keep=2)
    assert report.removed == [7]
    assert [backup.commit for backup in Collection.backups(folder / "b")] == [8, 9]
    needed = {folder_id for backup in Collection.backups(folder / "b") for folder_id in backup.record.folders}
    assert {path.name for path in (folder / "b" / "segments").iterdir()} == needed
    for commit in (8, 9):
        assert len(restored(folder / "b", folder / f"r{commit}", commit)) == 12 + commit - 3


def test_left_overs_are_removed_and_foreign_files_stay(collection: Collection, folder: Path) -> None:
    collection.backup(folder / "b")
    expected = files(folder / "b").keys()
    (folder / "b" / "segments" / "0123456789abcdef").mkdir()
    (folder / "b" / "segments" / "0123456789abcdef" / "keys.npy").touch()
    (folder / "b" / "commits" / "1.json.unfinished").touch()
    (folder / "b" / "segments" / "mine").touch()
    (folder / "b" / "notes.txt").touch()
    collection.backup(folder / "b")
    assert files(folder / "b").keys() == expected | {"segments/mine", "notes.txt"}
    assert not (folder / "b" / "segments" / "0123456789abcdef").exists()


def test_a_folder_that_is_cut_short_is_copied_again(collection: Collection, folder: Path) -> None:
    collection.backup(folder / "b")
    whole = files(folder / "b")
    for name in (name for name in whole if name.startswith("segments/")):
        path = folder / "b" / name
        path.write_bytes(whole[name][:-1])
        assert collection.backup(folder / "b").copied_folders == 1
        path.unlink()
        assert collection.backup(folder / "b").copied_folders == 1
        assert path.read_bytes() == whole[name]


def test_verify_reads_what_the_target_holds(collection: Collection, folder: Path) -> None:
    collection.backup(folder / "b")
    old = sorted((folder / "b").glob("segments/*/rows/keys.npy"))[0]
    whole = old.read_bytes()
    old.write_bytes(whole[:-1] + b"\xff")
    assert collection.backup(folder / "b").copied_folders == 0
    assert collection.backup(folder / "b", verify=True).copied_folders == 1
    assert old.read_bytes() == whole
    collection.optimize()
    old.write_bytes(whole[:-1] + b"\xff")
    [problem] = collection.backup(folder / "b", verify=True).problems
    assert old.relative_to(folder / "b").as_posix() in problem
    assert problem.endswith("(needed by the commits 3)")


def test_damage_of_the_collection_is_not_backed_up(collection: Collection, folder: Path) -> None:
    collection.backup(folder / "b")
    kept = files(folder / "b")
    collection.add(numbered(20, 21))
    collection.commit()
    collection.optimize()
    path = next(collection.path.glob("segments/*/documents/content.npy"))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert "content.npy has changed" in refused(CollectionDamaged, lambda: collection.backup(folder / "b"))
    assert [backup.commit for backup in Collection.backups(folder / "b")] == [3]
    path.unlink()
    assert "content.npy is missing" in refused(CollectionDamaged, lambda: collection.backup(folder / "b"))
    assert files(folder / "b").items() >= kept.items()


def test_a_damaged_record_stops_neither_backups_nor_the_folders_that_it_needs(collection: Collection, folder: Path) -> None:
    collection.backup(folder / "b")
    before = files(folder / "b")
    [record] = (folder / "b" / "commits").iterdir()
    record.write_bytes(record.read_bytes()[:-9])
    collection.optimize()
    report = collection.backup(folder / "b", keep=1)
    assert report.commit == 4
    assert len(report.problems) == 1
    assert record.name in report.problems[0]
    assert files(folder / "b").keys() > before.keys()
    assert len(restored(folder / "b", folder / "r", commit=4)) == 12
    for act in (lambda: Collection.backups(folder / "b"), lambda: Collection.restore(folder / "b", folder / "last")):
        assert refused(CollectionDamaged, act).endswith("use another backup; readable: the commits 4")


def test_a_target_of_another_collection_is_refused(collection: Collection, folder: Path) -> None:
    collection.backup(folder / "b")
    before = files(folder / "b")
    with Collection.create(folder / "other", lenses=["bm25"]) as other:
        assert "backups of another collection" in refused(CollectionError, lambda: other.backup(folder / "b"))
        assert "holds other files" in refused(CollectionError, lambda: other.backup(collection.path))
    assert files(folder / "b") == before


def test_another_history_of_the_same_collection_is_refused(collection: Collection, folder: Path) -> None:
    collection.backup(folder / "b")
    collection.add(numbered(20, 21))
    collection.commit()
    collection.backup(folder / "b")
    Collection.restore(folder / "b", folder / "r", commit=3)
    with Collection.open(folder / "r") as other:
        assert other.backup(folder / "b").commit == 3
        other.add(numbered(30, 31))
        other.commit()
        assert "has another commit 4" in refused(CollectionError, lambda: other.backup(folder / "b"))


def test_two_backups_at_once_are_refused(collection: Collection, folder: Path) -> None:
    messages: list[str] = []

    def second(name: str) -> None:
        messages.append(refused(CollectionLocked, lambda: collection.backup(folder / "b")))

    take_backup(collection.path, Interrupting(folder / "b", second))
    assert "is being written by another backup" in messages[0]
    assert restored(folder / "b", folder / "r") == numbered(0, 12)


@pytest.mark.parametrize("stop", [1, 9, 30])
def test_an_interrupted_backup_leaves_the_others_whole(collection: Collection, folder: Path, stop: int) -> None:
    collection.backup(folder / "b")
    collection.optimize()
    collection.add(numbered(20, 24))
    collection.commit()
    written: list[str] = []

    def stops(name: str) -> None:
        written.append(name)
        if len(written) == stop:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        take_backup(collection.path, Interrupting(folder / "b", stops))
    assert restored(folder / "b", folder / "r") == numbered(0, 12)
    collection.add(numbered(30, 31))
    collection.optimize()
    assert collection.backup(folder / "b", keep=1).removed == [3]
    assert {path.name for path in (folder / "b" / "segments").iterdir()} == {
        path.name for path in (collection.path / "segments").iterdir()
    }


@pytest.mark.parametrize("name", ["b", "b.tar"])
def test_a_full_target_is_one_line(collection: Collection, small_disk: Path, name: str) -> None:
    collection.backup(small_disk / "earlier")
    collection.add([Document("long", "x" * 500_000)])
    collection.commit()
    fill(small_disk, 100_000)
    message = refused(CollectionReadOnly, lambda: collection.backup(small_disk / name))
    assert f"no space left on the disk of {small_disk / name}" in message
    (small_disk / "filler").unlink()
    assert collection.backup(small_disk / name).documents == 13
    assert Collection.restore(small_disk / "earlier", small_disk / "r").documents == 12


def test_impossible_targets_are_refused(collection: Collection, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "file").touch()
    assert "is a file; expected a folder" in refused(BadInput, lambda: collection.backup(folder / "file"))
    assert "keep is 0" in refused(BadInput, lambda: collection.backup(folder / "b", keep=0))
    assert "keep is 2" in refused(BadInput, lambda: collection.backup(folder / "b.tar", keep=2))
    assert "nonsense" in refused(BadInput, lambda: collection.backup("nonsense://b"))
    collection.backup(folder / "b.tar")
    assert "b.tar exists" in refused(CollectionExists, lambda: collection.backup(folder / "b.tar"))


def test_an_empty_collection_is_backed_up(folder: Path) -> None:
    with Collection.create(folder / "c", lenses=["bm25"]) as collection:
        for target in ("b", "b.tar", "b.tgz"):
            assert collection.backup(folder / target).documents == 0
            assert restored(folder / target, folder / f"{target}-restored") == []
