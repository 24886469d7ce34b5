"""How the mask of a filter is computed: in turns with other reads, once for all, and no longer than it is wanted."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from trilens import Collection, Document
from trilens.cancellation import stop_when
from trilens.errors import Stopped
from trilens.store import masks
from trilens.store.catalog import Catalog
from trilens.store.snapshot import Snapshot

COUNT = 50
WHERE = {"n": {"$gte": 10}}


@pytest.fixture
def collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Collection]:
    """Documents of two segments, each of which is a range of keys of its own."""
    monkeypatch.setattr(masks, "BYTES_PER_RANGE", 1)
    with Collection.create(tmp_path / "c", lenses=["bm25"]) as collection:
        for numbers in (range(COUNT // 2), range(COUNT // 2, COUNT)):
            collection.add(Document(f"d{number}", "word", metadata={"n": number}) for number in numbers)
            collection.commit()
        yield collection


def count_where(snapshot: Snapshot, where: dict[str, Any]) -> int:
    return int(snapshot.mask(where).sum())


def after(calls: int) -> Callable[[], bool]:
    """Unwanted after this many checks."""
    left = [True] * calls
    return lambda: not (left and left.pop())


def add_one_more(collection: Collection) -> None:
    """A commit that the snapshot of the collection does not see."""
    with Collection.open(collection.path) as other:
        other.add([Document("more", "word", metadata={"n": COUNT})])


def test_other_threads_read_while_a_filter_is_computed(collection: Collection) -> None:
    snapshot, keys = collection.snapshot, list[int | None]()

    def read_elsewhere() -> bool:
        keys.append(pool.submit(snapshot.key, "d3").result(30))
        return False

    with ThreadPoolExecutor(1) as pool, stop_when(read_elsewhere):
        assert count_where(snapshot, WHERE) == COUNT - 10
    assert len(keys) >= COUNT and None not in keys


def test_other_threads_read_between_the_turns_of_a_filter_over_an_older_commit(collection: Collection) -> None:
    snapshot, begun, seen = collection.snapshot, Event(), list[int]()
    add_one_more(collection)
    lock = snapshot._lock

    def wait_for_the_other() -> bool:
        seen.append(lock.waiting)
        begun.set()
        while not other.done() and not lock.waiting:
            pass
        return other.done() and len(seen) < COUNT

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(lambda: begun.wait(30) and snapshot.key("d3"))
        with stop_when(wait_for_the_other), pytest.raises(Stopped):
            snapshot.mask(WHERE)  # stops because the other has read before the end
        assert other.result() is not None


@pytest.mark.parametrize("commit", ["last", "older"])
def test_a_filter_that_nobody_waits_for_stops_and_leaves_the_snapshot_at_its_commit(
    collection: Collection, commit: str
) -> None:
    snapshot = collection.snapshot
    if commit == "older":
        add_one_more(collection)
    for checks in (0, 1, 2, 7, COUNT - 1):
        with stop_when(after(checks)), pytest.raises(Stopped):
            snapshot.mask(WHERE)
    assert snapshot.key("more") is None
    assert count_where(snapshot, WHERE) == COUNT - 10
    collection.refresh()
    assert count_where(collection.snapshot, WHERE) == COUNT - (9 if commit == "older" else 10)


def test_the_filter_of_one_large_document_stops_as_well(tmp_path: Path) -> None:
    with Collection.create(tmp_path / "c", lenses=["bm25"]) as collection:
        collection.add([Document("large", "word", metadata={"list": [1] * 20_000})])
        collection.commit()
        where = {"$or": [{"list": {"$gt": number}} for number in range(1, 20)]}
        checks = 0

        def third() -> bool:
            nonlocal checks
            checks += 1
            return checks >= 3

        with stop_when(third), pytest.raises(Stopped):
            collection.snapshot.mask(where)
        assert checks == 3, "SQLite did not end its statement"
        assert collection.search(["word"], filter={"list": 1})[0][0].doc_id == "large"


def test_threads_that_need_the_same_mask_compute_it_once(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot, begun, waiting, computed = collection.snapshot, Event(), Event(), 0
    compute = Catalog.keys_where

    def counted(*arguments: Any) -> Any:
        nonlocal computed
        computed += 1
        return compute(*arguments)

    def first() -> bool:
        begun.set()
        return not waiting.wait(30)

    def second() -> bool:
        waiting.set()
        return False

    def run(unwanted: Callable[[], bool]) -> int:
        with stop_when(unwanted):
            return count_where(snapshot, WHERE)

    monkeypatch.setattr(Catalog, "keys_where", counted)
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(run, first)
        begun.wait(30)
        other = pool.submit(run, second)
        assert (one.result(), other.result()) == (COUNT - 10, COUNT - 10)
    assert computed == 1


def test_a_thread_that_waits_for_a_mask_stops_or_takes_over(collection: Collection) -> None:
    snapshot, begun, stopped, waiting = collection.snapshot, Event(), Event(), Event()

    def first() -> bool:
        begun.set()
        return stopped.wait(30) and waiting.wait(30)

    def third() -> bool:
        waiting.set()
        return False

    def run(unwanted: Callable[[], bool]) -> int:
        with stop_when(unwanted):
            return count_where(snapshot, WHERE)

    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(run, first)
        begun.wait(30)
        with pytest.raises(Stopped):
            run(lambda: True)
        stopped.set()
        other = pool.submit(run, third)
        assert isinstance(one.exception(), Stopped)
        assert other.result() == COUNT - 10


def test_kept_masks_are_bounded(collection: Collection) -> None:
    snapshot = collection.snapshot
    for number in range(3 * masks.MASKS_KEPT):
        assert count_where(snapshot, {"n": number}) == (number < COUNT)
    kept = snapshot._masks
    assert len(kept._masks) == masks.MASKS_KEPT and not kept._running
