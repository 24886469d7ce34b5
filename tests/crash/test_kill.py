"""After SIGKILL at any moment, the collection is in the state of a whole commit and can be written at once."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from trilens.collection import Collection
from trilens.errors import CollectionMissing
from trilens.store import merge, writer

from ..store.tiny import LENSES, TinyEncoder, real_lenses
from .driver import CREATION_POINTS, POINTS, SHARING_POINTS
from .history import PASSAGES, History, apply
from .states import require_documents, require_swept

FOREVER = 10_000
KILLED = -signal.SIGKILL
REAL = real_lenses()


class Driver:
    """The process that forks writers, seen from the test."""

    def __init__(self) -> None:
        path = os.pathsep.join(entry for entry in sys.path if entry)
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.driver"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            # A pool of OpenMP threads does not survive a fork: the child would wait for it forever.
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        )
        assert self.line() == ("ready", 0)

    def order(self, **order: Any) -> int:
        """Start a writer and return its process id."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        word, pid = self.line()
        assert word == "pid"
        return pid

    def line(self) -> tuple[str, int]:
        """The next line: a word and a number."""
        assert self._process.stdout is not None
        word, *number = self._process.stdout.readline().split()
        return word, int(number[0]) if number else 0

    def until_dead(self, commit: int) -> tuple[int, int]:
        """The last commit that was reported, given the last one read, and the exit code."""
        while True:
            word, number = self.line()
            if word == "dead":
                return commit, number
            commit = number

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    driver = Driver()
    yield driver
    driver.close()


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "BUFFER_PASSAGES", 6)
    monkeypatch.setattr(merge, "FANOUT", 3)
    monkeypatch.setattr(merge, "SMALLEST", 8)


def require_state(collection: Collection, history: History, number: int) -> None:
    """The collection holds exactly the documents of this state, whole and findable."""
    require_documents(collection, history.state(number), number)


def go_on(root: Path, history: History, commits: set[int], encoder: TinyEncoder | None = None) -> int:
    """Verify what a dead writer left, then write the next step; returns the number of commits there are now."""
    with Collection.open(root, threads=1, encoder=encoder) as collection:
        number = collection.snapshot.commit
        assert number in commits
        require_state(collection, history, number)
        apply(collection, history.step(number))
        require_state(collection, history, number + 1)
        require_swept(collection)
    return number + 1


def kill_again_and_again(
    driver: Driver, root: Path, seed: int, kills: int, lenses: list[str], encoder: TinyEncoder | None = None
) -> None:
    """Kill writers of one collection at moments spread over everything that they do."""
    random = Random(seed)
    history = History(seed)
    Collection.create(root, passages=PASSAGES, lenses=lenses, encoder=encoder).close()
    number, seconds_per_commit = 0, 0.1
    for _ in range(kills):
        pid = driver.order(root=str(root), seed=seed, first=number, last=FOREVER, point=None, tiny=encoder is not None)
        started = time.monotonic()
        wanted = random.randint(0, 3)
        for commit in range(number + 1, number + 1 + wanted):
            assert driver.line() == ("commit", commit)
        number += wanted
        if wanted:
            seconds_per_commit = (time.monotonic() - started) / wanted
        time.sleep(random.uniform(0, 1.2) * seconds_per_commit)
        os.kill(pid, signal.SIGKILL)
        number, code = driver.until_dead(number)
        assert code == KILLED
        number = go_on(root, history, {number, number + 1}, encoder)


@pytest.mark.parametrize("seed", range(4))
def test_kill_at_any_moment(driver: Driver, folder: Path, seed: int) -> None:
    kill_again_and_again(driver, folder / "c", seed, kills=8, lenses=["bm25"])


@pytest.mark.parametrize("seed", range(50, 53))
def test_kill_at_any_moment_with_tiny_vectors(driver: Driver, folder: Path, seed: int) -> None:
    kill_again_and_again(driver, folder / "c", seed, kills=8, lenses=LENSES, encoder=TinyEncoder())


@pytest.mark.skipif("dense" not in REAL, reason="the bundled model is not there")
def test_kill_at_any_moment_with_vectors(driver: Driver, folder: Path) -> None:
    kill_again_and_again(driver, folder / "c", seed=100, kills=3, lenses=REAL)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1020))
def test_many_kills(driver: Driver, tmp_path: Path, seed: int) -> None:
    lenses, encoder = [(REAL, None), (LENSES, TinyEncoder()), (["bm25"], None)][min(seed % 5, 2)]
    kill_again_and_again(driver, tmp_path / "c", seed, kills=10, lenses=lenses, encoder=encoder)


@pytest.mark.parametrize(
    ("lenses", "point"),
    [(lenses, point) for lenses in (["bm25"], LENSES) for point in POINTS] + [(LENSES, point) for point in SHARING_POINTS],
)
def test_kill_at_a_point(driver: Driver, folder: Path, lenses: list[str], point: str) -> None:
    history = History(7)
    root = folder / "c"
    with Collection.create(root, lenses=lenses, encoder=TinyEncoder(), passages=PASSAGES) as collection:
        for number in range(3):
            apply(collection, history.step(number))
    driver.order(root=str(root), seed=7, first=3, last=40, point=point, tiny=True)
    number, code = driver.until_dead(3)
    assert code == KILLED, "the writer never came to this point"
    happened, _ = (POINTS | SHARING_POINTS)[point]
    go_on(root, history, {number + happened}, TinyEncoder())


@pytest.mark.parametrize("point", CREATION_POINTS)
def test_kill_while_creating(driver: Driver, folder: Path, point: str) -> None:
    root = folder / "c"
    driver.order(create=str(root), point=point)
    assert driver.until_dead(0) == (0, KILLED)
    with pytest.raises(CollectionMissing):
        Collection.open(root)
    history = History(3)
    with Collection.create(root, lenses=["bm25"], passages=PASSAGES) as collection:
        apply(collection, history.step(0))
        require_state(collection, history, 1)
    assert sorted(path.name for path in root.iterdir()) == ["catalog.sqlite", "last-commit", "segments", "writer.lock"]
