"""Processes that create a collection at the same path: one succeeds, the others say why not, nothing acknowledged is lost."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from trilens.collection import Collection
from trilens.errors import CollectionExists, CollectionLocked
from trilens.store import creation
from trilens.text.document import Document

from .states import require_no_other_files

ROUNDS = 30
SECONDS_TO_LIVE = 60

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def started(act: Callable[[], None]) -> int:
    """The id of a child process, whose exit code says what came of it."""
    child = os.fork()
    if child:
        return child
    signal.alarm(SECONDS_TO_LIVE)
    code = 3
    try:
        act()
        code = 0
    except CollectionExists:
        code = 1
    except CollectionLocked:
        code = 2
    finally:
        os._exit(code)


def create_and_add(root: Path, name: str) -> None:
    """Create a collection and commit ten documents."""
    with Collection.create(root, lenses=["bm25"]) as collection:
        collection.add(Document(f"{name}{number}", f"river {number}") for number in range(10))


@pytest.fixture(autouse=True)
def warm(tmp_path: Path) -> None:
    """Load the kernels before the forks, so that each child does not."""
    create_and_add(tmp_path / "warm", "")


def exit_code(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def require_documents_of(root: Path, name: str) -> None:
    """The collection holds what this process has committed, and nothing else."""
    with Collection.open(root) as collection:
        assert len(collection) == 10
        assert all(collection.get(f"{name}{number}") for number in range(10))
        assert collection.check().problems == []
    require_no_other_files(root)


def test_processes_that_create_at_the_same_time(folder: Path) -> None:
    for number in range(ROUNDS):
        root = folder / str(number)
        ready, go = os.pipe(), os.pipe()

        def act(name: str, root: Path = root, ready: int = ready[1], go: int = go[0]) -> None:
            os.write(ready, b"x")
            os.read(go, 1)
            create_and_add(root, name)

        children = {name: started(lambda name=name: act(name)) for name in "ab"}  # type: ignore[misc]
        for _ in children:
            os.read(ready[0], 1)
        os.write(go[1], b"go")
        codes = {name: exit_code(child) for name, child in children.items()}
        for descriptor in (*ready, *go):
            os.close(descriptor)
        assert sorted(codes.values())[0] == 0 and set(codes.values()) <= {0, 1, 2}
        assert list(codes.values()).count(0) == 1
        require_documents_of(root, min(codes, key=lambda name: codes[name]))


@pytest.mark.parametrize("function", ["lock", "write_last_commit", "write_catalog"])
def test_a_process_that_stops_while_it_creates(folder: Path, monkeypatch: pytest.MonkeyPatch, function: str) -> None:
    root = folder / "c"
    original = getattr(creation, function)

    def stop_and_create() -> None:
        def stopping(*values: object) -> object:
            os.kill(os.getpid(), signal.SIGSTOP)
            return original(*values)

        monkeypatch.setattr(creation, function, stopping)
        create_and_add(root, "slow")

    slow = started(stop_and_create)
    os.waitpid(slow, os.WUNTRACED)
    fast = exit_code(started(lambda: create_and_add(root, "fast")))
    os.kill(slow, signal.SIGCONT)
    code = exit_code(slow)
    if function == "lock":  # before the lock is taken: the other process creates the collection
        assert (fast, code) == (0, 1)
        require_documents_of(root, "fast")
    else:
        assert (fast, code) == (2, 0)
        require_documents_of(root, "slow")
