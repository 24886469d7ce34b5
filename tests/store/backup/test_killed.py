"""Backups and restorations killed at random moments: what was there stays whole, and the next run succeeds."""

import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from trilens.collection import Collection
from trilens.errors import CollectionExists

from .conftest import numbered

ROOT = Path(__file__).parents[3]
LONGEST = {"backup": 0.05, "restore": 0.04}  # seconds in which most of them end


class Killer:
    """Runs children of killed.py and kills them."""

    def __init__(self, *paths: Path) -> None:
        command = [sys.executable, "-m", "tests.store.backup.killed", *map(str, paths)]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, order: str, seconds: float) -> bool:
        """Whether the child was killed; otherwise it has succeeded."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(f"{order} {seconds}\n")
        self._process.stdin.flush()
        status = int(self._process.stdout.readline())
        assert status in (0, signal.SIGKILL)
        return status != 0

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def kill_many(folder: Path, collection: Collection, rounds: int) -> int:
    """Kill a backup and a restoration in each round; returns how many were killed."""
    draw = random.Random(3)
    backups, restored = folder / "b", folder / "r"
    killer = Killer(collection.path, backups, restored)
    killed = 0
    collection.backup(backups)
    try:
        for number in range(rounds):
            collection.upsert(numbered(number, number + 40))
            collection.commit()
            before = [backup.commit for backup in Collection.backups(backups)]
            killed += killer.run("backup", draw.random() * LONGEST["backup"])
            left = [backup.commit for backup in Collection.backups(backups)]
            assert set(before[-1:]) <= set(left)
            killed += killer.run("restore", draw.random() * LONGEST["restore"])
            try:
                Collection.restore(backups, restored, commit=left[-1])
            except CollectionExists:
                Collection.open(restored).close()  # the restoration had ended
            assert Collection.open(restored).check().problems == []
            shutil.rmtree(restored)
            assert collection.backup(backups, keep=2, verify=True).problems == []
            needed = {name for backup in Collection.backups(backups) for name in backup.record.folders}
            assert {path.name for path in (backups / "segments").iterdir()} == needed
    finally:
        killer.close()
    return killed


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_random_moments(collection: Collection, folder: Path) -> None:
    assert kill_many(folder, collection, rounds=12) > 4


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_often_at_random_moments(collection: Collection, folder: Path) -> None:
    assert kill_many(folder, collection, rounds=250) > 100
