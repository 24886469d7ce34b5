from pathlib import Path

import pytest

from trilens.collection import Collection
from trilens.text.document import Document

from .conftest import Trilens


@pytest.fixture
def indexed(trilens: Trilens, corpus: Path, tmp_path: Path) -> Path:
    assert trilens("index", corpus, "--to", tmp_path / "c", "--lens", "bm25").code == 0
    return tmp_path / "c"


def test_a_backup_is_made_listed_and_restored(trilens: Trilens, indexed: Path, tmp_path: Path) -> None:
    first = trilens("backup", indexed, tmp_path / "b")
    assert first.out.startswith("commit 1: 3 documents, 0.0 MB, of which 0.0 MB copied")
    with Collection.open(indexed) as collection:
        collection.add([Document("more", "text")])
    second = trilens("backup", indexed, tmp_path / "b", "--json").json
    assert {**second, "bytes": 0, "copied_bytes": 0} == {
        "commit": 2,
        "documents": 4,
        "bytes": 0,
        "copied_bytes": 0,
        "copied_folders": 1,
        "removed": [],
        "problems": [],
    }
    listed = trilens("restore", tmp_path / "b", "--list")
    assert [line.split()[0] for line in listed.out.splitlines()] == ["commit", "1", "2"]
    assert [entry["documents"] for entry in trilens("restore", tmp_path / "b", "--list", "--json").json] == [3, 4]
    restored = trilens("restore", tmp_path / "b", tmp_path / "r", "--commit", "1")
    assert restored.out.startswith("commit 1: 3 documents")
    assert trilens("check", tmp_path / "r").out.startswith("ok: 3 documents")
    assert trilens("restore", tmp_path / "b", tmp_path / "last", "--json").json["commit"] == 2
    pruned = trilens("backup", indexed, tmp_path / "b", "--keep", 1, "--verify")
    assert pruned.out.rstrip().endswith("0.0 MB copied; removed 1 older backups")


def test_problems_of_older_backups_are_reported(trilens: Trilens, indexed: Path, tmp_path: Path) -> None:
    trilens("backup", indexed, tmp_path / "b")
    for path in (tmp_path / "b").glob("segments/*/rows/keys.npy"):
        path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    with Collection.open(indexed) as collection:
        collection.delete(["sqrt"])
        collection.optimize()
    outcome = trilens("backup", indexed, tmp_path / "b", "--verify")
    assert outcome.code == 1
    assert outcome.err.startswith("trilens: commit 2 is backed up, but segments/")
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize("arguments", [["b"], ["b", "r", "--list"]])
def test_restore_needs_a_folder_or_list(trilens: Trilens, arguments: list[str]) -> None:
    outcome = trilens("restore", *arguments)
    assert (outcome.code, outcome.err.count("\n")) == (1, 1)
    assert "either the folder of the COLLECTION to make, or --list" in outcome.err


def test_errors_are_one_line(trilens: Trilens, indexed: Path, tmp_path: Path) -> None:
    for arguments in (
        ("restore", tmp_path / "none", tmp_path / "r"),
        ("restore", tmp_path / "none", "--list"),
        ("backup", indexed, indexed),
        ("backup", indexed, "nonsense://x"),
        ("backup", tmp_path / "none", tmp_path / "b"),
        ("dump", tmp_path / "none"),
        ("load", tmp_path / "none", "--to", tmp_path / "x"),
    ):
        outcome = trilens(*arguments)
        assert (outcome.code, outcome.err.count("\n")) == (1, 1), arguments
