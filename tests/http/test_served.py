"""A collection while it is served, without the network around it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

pytest.importorskip("fastapi")

from trilens import Collection, Document
from trilens.http.failures import Refused
from trilens.http.limits import Limits
from trilens.http.metrics import Metrics
from trilens.http.served import ServedCollection

MANY = 60  # more than the threads that an event loop has


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Collection.create(tmp_path / "c.trilens", lenses=["bm25"]) as collection:
        collection.add([Document("a", "a first text"), Document("b", "a second text")])
    return tmp_path / "c.trilens"


@pytest.fixture
def served(path: Path) -> Iterator[ServedCollection]:
    served = ServedCollection("c", Collection.open(path), Limits(seconds=3), Metrics(), threads=1)
    yield served
    served.close()


def test_who_waits_to_write_keeps_nobody_from_reading_and_is_told_in_time(served: ServedCollection) -> None:
    begun, done = Event(), Event()

    def slowly(collection: Collection) -> list[str]:
        begun.set()
        done.wait(60)
        collection.upsert([Document("c", "a third text")])
        return []

    async def ask() -> None:
        writing = asyncio.create_task(served.write(slowly))
        await asyncio.to_thread(begun.wait, 60)
        others = [asyncio.create_task(served.put([Document(str(number), "a text")])) for number in range(MANY)]
        await asyncio.sleep(0)
        snapshot = await asyncio.to_thread(served.current)
        assert snapshot.documents_count == 2 and not any(other.done() for other in others)
        refused = await asyncio.gather(*others, return_exceptions=True)
        assert all(isinstance(error, Refused) and error.status == 503 for error in refused)
        done.set()
        assert (await writing).documents == 3

    asyncio.run(ask())


def test_a_pinned_collection_stays_where_it_is(served: ServedCollection) -> None:
    pinned = served.pinned()
    assert asyncio.run(served.put([Document("c", "a third text")])).commit == 2
    assert pinned.snapshot.key("c") is None
    assert served.pinned().snapshot.key("c") is not None
