"""Backups of a collection to which another process commits without pause: each is whole and equals one commit."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from trilens.collection import Collection
from trilens.store.schema import FILE_NAME

from .writing import digest

ROOT = Path(__file__).parents[3]
PATIENCE = 120


@contextmanager
def writer(root: Path, log: Path, commits: int) -> Iterator[None]:
    """A process that writes; the block begins when it has made some commits."""
    process = subprocess.Popen([sys.executable, "-m", "tests.store.backup.writing", root, log], cwd=ROOT)
    try:
        deadline = time.monotonic() + PATIENCE
        while not (root / FILE_NAME).exists() or not log.exists() or log.read_text().count("\n") < commits:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


def require_commit(source: Path, commit: int, target: Path, expected: dict[int, str]) -> None:
    """The backup is a collection without faults that holds what the writer has committed."""
    restored = Collection.restore(source, target, commit=commit)
    assert restored.commit == commit
    with Collection.open(target) as collection:
        assert collection.check().problems == []
        assert collection.snapshot.commit == commit
        assert digest(collection.documents()) == expected[commit]
        assert restored.documents == len(collection)


def back_up_beside_a_writer(folder: Path, seconds: float, pause: float) -> list[int]:
    """Backups for some seconds into one folder, and one archive; returns the commits."""
    commits = []
    with writer(folder / "c", folder / "log", commits=10):
        collection = Collection.open(folder / "c")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            commits.append(collection.backup(folder / "b").commit)
            time.sleep(pause)
        archived = collection.backup(folder / "b.tar").commit
    expected = {int(number): hashed for number, hashed in map(str.split, (folder / "log").read_text().splitlines())}
    assert commits == sorted(commits)
    require_commit(folder / "b.tar", archived, folder / "archived", expected)
    for commit in dict.fromkeys(commits):
        require_commit(folder / "b", commit, folder / f"r{commit}", expected)
    return commits


def test_backups_beside_a_writer(folder: Path) -> None:
    assert len(set(back_up_beside_a_writer(folder, seconds=2, pause=0))) > 3


@pytest.mark.long
def test_a_backup_every_second_for_a_minute(folder: Path) -> None:
    assert len(set(back_up_beside_a_writer(folder, seconds=60, pause=1))) > 30
