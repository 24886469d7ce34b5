"""Requests that would wait too long are refused at once."""

from threading import Event
from time import monotonic, sleep

import pytest

from trilens.http.failures import Refused
from trilens.http.pace import Pace
from trilens.http.worker import Worker

SOON = 30.0


def test_the_expected_wait_by_hand() -> None:
    pace = Pace(longest=2.0, threads=2)
    pace.require_short(10**6)  # nothing is known yet
    pace.measured(queries=4, seconds=2.0)
    assert pace.seconds == 0.5
    pace.measured(queries=1, seconds=1.5)
    assert pace.seconds == pytest.approx(0.9 * 0.5 + 0.1 * 1.5)
    pace.require_short(6)  # 6 × 0.6 s on two threads: 1.8 s
    with pytest.raises(Refused, match="the wait would be about 6 s") as refused:
        pace.require_short(19)
    assert (refused.value.status, refused.value.headers) == (503, {"Retry-After": "4"})


def test_a_worker_refuses_what_would_wait_too_long_and_recovers() -> None:
    begun, gate = Event(), Event()

    def search(_: object, queries: list[str]) -> list[str]:
        return queries

    def block() -> None:
        begun.set()
        gate.wait()

    worker: Worker[str] = Worker("test", search, lambda size: None, 1000, wait_seconds=0.01)
    worker.call(lambda: sleep(0.1), monotonic() + SOON).result()
    blocked = worker.call(block, monotonic() + SOON)
    begun.wait()
    waiting = worker.search("same", ["first"], monotonic() + SOON)
    with pytest.raises(Refused, match="overloaded"):
        worker.search("same", ["second"], monotonic() + SOON)
    gate.set()
    blocked.result()
    assert waiting.result() == ["first"]
    assert worker.search("same", ["third"], monotonic() + SOON).result() == ["third"]
    worker.close()
