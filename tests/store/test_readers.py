"""Readers in other processes see only whole commits, and keep their snapshot until they refresh."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from trilens.collection import Collection
from trilens.errors import CollectionLocked
from trilens.store import merge, writer

from .reader import DOCUMENTS, WORD, documents, look
from .tiny import TinyEncoder

LAST = 30


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several segments per commit, and frequent merges."""
    monkeypatch.setattr(writer, "BUFFER_PASSAGES", 7)
    monkeypatch.setattr(merge, "FANOUT", 3)
    monkeypatch.setattr(merge, "SMALLEST", 8)


@pytest.fixture(params=["bm25", "multi"])
def root(folder: Path, request: pytest.FixtureRequest) -> Path:
    """A collection whose first commit is generation 0."""
    with Collection.create(folder / "c", lenses=[request.param], encoder=TinyEncoder()) as collection:
        collection.add(documents(0))
    return folder / "c"


@contextmanager
def reader(role: str, root: Path, *rest: int) -> Iterator["subprocess.Popen[str]"]:
    path = os.pathsep.join(entry for entry in sys.path if entry)
    command = [sys.executable, "-m", f"{__package__}.reader", role, str(root), *map(str, rest)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
        env={**os.environ, "PYTHONPATH": path},
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            stream.close()


def line(process: "subprocess.Popen[str]", order: str = "") -> dict[str, Any]:
    """The next line of a reader, after sending it an order if there is one."""
    assert process.stdin is not None
    assert process.stdout is not None
    if order:
        process.stdin.write(f"{order}\n")
    answer: dict[str, Any] = json.loads(process.stdout.readline())
    return answer


def rest(process: "subprocess.Popen[str]") -> list[dict[str, Any]]:
    """The remaining lines of a reader, which must exit with status 0."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    said = [json.loads(text) for text in process.stdout]
    assert process.wait() == 0
    return said


def write_generations(root: Path, first: int, last: int) -> None:
    """One commit per generation, some of them by optimize."""
    with Collection.open(root, encoder=TinyEncoder()) as collection:
        for generation in range(first, last + 1):
            collection.upsert(documents(generation))
            if generation % 5 == 0:
                collection.optimize(retrain=generation % 10 == 0)
            else:
                collection.commit()


def require_whole(seen: dict[str, Any]) -> None:
    """The reader saw all of one commit and nothing of another."""
    generation = seen["generation"]
    assert seen["commit"] == generation + 1
    assert seen["generations"] == [generation]
    assert seen["texts"] == [documents(generation)[0].text]
    assert seen["count"] == DOCUMENTS
    assert seen["found"] == [DOCUMENTS] * 3
    # The same text may be coded with more pages of the codebook in the second batch of a commit than in the first.
    assert max(seen["scores"]) - min(seen["scores"]) <= (0.02 if "multi" in seen["lenses"] else 0)


def test_readers_see_whole_commits_only(root: Path) -> None:
    with reader("watch", root, LAST) as one, reader("watch", root, LAST) as two:
        firsts = [line(one), line(two)]  # both are running
        write_generations(root, 1, LAST)
        for first, process in zip(firsts, (one, two), strict=True):
            seen = [first, *rest(process)]
            for item in seen:
                require_whole(item)
            commits = [item["commit"] for item in seen]
            assert commits == sorted(commits)
            assert commits[0] == 1
            assert commits[-1] == LAST + 1


def test_a_check_finds_nothing_wrong_while_others_write(root: Path) -> None:
    with reader("check", root, LAST) as process:
        first = line(process)
        write_generations(root, 1, LAST)
        for item in [first, *rest(process)]:
            assert item == {"problems": [], "documents": DOCUMENTS}


def test_a_snapshot_in_another_process_stays_until_refresh(root: Path) -> None:
    with reader("hold", root) as process:
        first = line(process)
        require_whole(first)
        assert first["generation"] == 0
        for last in (1, 2, 5, 11):
            write_generations(root, last, last)
            assert line(process, "look") == first | {"moved": None}
        moved = line(process, "refresh")
        assert moved.pop("moved") is True
        assert moved["generation"] == 11
        assert line(process, "refresh") == moved | {"moved": False}


def test_a_snapshot_in_the_same_process_stays_until_refresh(root: Path) -> None:
    with Collection.open(root, encoder=TinyEncoder()) as held:
        first = look(held)
        snapshot = held.snapshot
        write_generations(root, 1, 1)
        with Collection.open(root, encoder=TinyEncoder()) as other:
            other.delete([f"d{i}" for i in range(DOCUMENTS)])
            other.optimize()
            assert len(other) == 0
        assert not list((root / "segments").iterdir())
        assert look(held) == first
        assert held.refresh() is True
        assert len(held) == 0
        assert held.search([WORD]) == [[]]
        assert held.refresh() is False
        # The old snapshot remains usable.
        assert snapshot.documents_count == DOCUMENTS
        assert snapshot.document("d3") == documents(0)[3]


def test_opening_again_keeps_what_the_first_connection_holds(root: Path) -> None:
    """Closing any handle of a file drops all POSIX locks on it, and SQLite's with them; so none may be opened and closed."""
    with Collection.open(root, encoder=TinyEncoder()) as held, Collection.open(root, encoder=TinyEncoder()) as again:
        first = look(held)
        assert look(again) == first
        again.close()
        with reader("write", root) as process:  # when it ends, it removes the write-ahead log unless we hold it
            assert rest(process) == [{"error": None}]
        assert (root / "catalog.sqlite-wal").exists()
        assert look(held) == first
        held.refresh()
        assert len(held) == DOCUMENTS + 1


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files can be counted on Linux only")
def test_snapshots_that_nobody_holds_let_go_of_their_files(root: Path) -> None:
    def open_files_after(refreshes: int) -> int:
        for _ in range(refreshes):
            held.refresh()
            look(held)
        links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
        return sum(str(root) in str(link.readlink()) for link in links)

    with Collection.open(root, encoder=TinyEncoder()) as held:
        few = open_files_after(3)  # SQLite keeps a handle or two for reuse
        assert open_files_after(20) == few > 0
    assert not [link for link in Path("/proc/self/fd").iterdir() if link.exists() and root in link.resolve().parents]


def test_threads_may_search_while_another_refreshes(root: Path) -> None:
    with reader("share", root, LAST) as process:
        write_generations(root, 1, LAST)
        [said] = rest(process)
    assert said["errors"] == []
    assert said["seen"]
    for item in said["seen"]:
        assert item["count"] == DOCUMENTS
        assert len(item["generations"]) == 1


def test_a_second_writer_is_refused_in_one_line(root: Path) -> None:
    with Collection.open(root, encoder=TinyEncoder()) as first:
        first.add([documents(0)[0].__class__("first", "text")])
        with reader("write", root) as process:
            [said] = rest(process)
        assert said["error"] == CollectionLocked.__name__
        assert str(root) in said["message"]
        assert "\n" not in said["message"]
        with pytest.raises(CollectionLocked, match="another process"), Collection.open(root, encoder=TinyEncoder()) as second:
            second.delete(["d0"])
        first.commit()
        with reader("write", root) as process:
            assert rest(process) == [{"error": None}]
        first.refresh()
        assert len(first) == DOCUMENTS + 2


def test_the_lock_is_free_after_rollback_close_and_error(root: Path) -> None:
    for end in ("rollback", "close", "error"):
        first = Collection.open(root, encoder=TinyEncoder())
        first.upsert(documents(1))
        if end == "error":
            with pytest.raises(ZeroDivisionError), first:
                first.upsert(documents(2)[: 1 // 0])
        else:
            getattr(first, end)()
        with Collection.open(root, encoder=TinyEncoder()) as second:
            second.upsert(documents(0))
            assert second.commit().unchanged == DOCUMENTS


def test_the_lock_is_free_after_a_failed_start(root: Path) -> None:
    collection = Collection.open(root, encoder=TinyEncoder())
    (root / "catalog.sqlite").rename(root / "elsewhere")
    with pytest.raises(Exception, match=r"catalog"):
        collection.upsert(documents(1))
    try:
        collection.upsert(documents(1))
    except Exception as error:  # noqa: BLE001  the traceback holds the failed writer while we go on
        (root / "elsewhere").rename(root / "catalog.sqlite")
        with Collection.open(root, encoder=TinyEncoder()) as second:
            second.upsert(documents(1))
        assert str(error)
    with Collection.open(root, encoder=TinyEncoder()) as third:
        assert look(third)["generation"] == 1
