"""The worker: batches, fairness, deadlines; a search that is slow on purpose lets requests pile up."""

from collections.abc import Sequence
from concurrent.futures import Future
from threading import Barrier, Event
from time import monotonic
from typing import Any

import pytest

pytest.importorskip("fastapi")

from trilens.cancellation import is_unwanted, require_wanted
from trilens.errors import BadInput, Stopped
from trilens.http.failures import Refused
from trilens.http.worker import MOST_AT_ONCE, SHARE, Worker

SOON = 30.0


class Blocked:
    """Searches that note what they were asked together, and wait until they may go on."""

    def __init__(self, waiting: int = 1000) -> None:
        self.batches: list[tuple[object, list[str]]] = []
        self.gate = Event()
        self.busy = Event()
        self.sizes: list[int] = []
        self.worker: Worker[str] = Worker("test", self.search, self.sizes.append, waiting)
        self.first = self.worker.call(self.block, monotonic() + SOON)
        self.busy.wait()

    def block(self) -> None:
        self.busy.set()
        self.gate.wait()

    def search(self, settings: object, queries: list[str]) -> Sequence[str]:
        self.batches.append((settings, queries))
        if "bad" in queries:
            raise BadInput("bad query")
        if "broken" in queries:
            raise ZeroDivisionError
        if "panic" in queries:
            panic()
        return [query.upper() for query in queries]

    def open(self) -> None:
        self.gate.set()
        self.worker.close()


def panic() -> None:
    """What no `except Exception` catches, as a panic in a compiled library."""
    raise KeyboardInterrupt


def endless(begun: Event) -> list[str]:
    """Work that goes on until it is stopped."""
    begun.set()
    while True:
        require_wanted()


def later() -> float:
    return monotonic() + SOON


def test_what_waits_is_searched_together_and_answered_apart() -> None:
    blocked = Blocked()
    futures = [blocked.worker.search("same", [f"q{n}", f"r{n}"], later()) for n in range(5)]
    other = blocked.worker.search("other", ["x"], later())
    blocked.open()
    assert [future.result() for future in futures] == [[f"Q{n}", f"R{n}"] for n in range(5)]
    assert other.result() == ["X"]
    assert [settings for settings, _ in blocked.batches] == ["same", "other"]
    assert blocked.sizes == [10, 1]


def test_who_waited_longest_comes_first_and_nobody_takes_it_all() -> None:
    blocked = Blocked()
    many = blocked.worker.search("same", [f"m{n}" for n in range(3 * MOST_AT_ONCE)], later())
    one = blocked.worker.search("other", ["x"], later())
    few = blocked.worker.search("same", ["few"], later())
    blocked.open()
    assert many.result() == [f"M{n}" for n in range(3 * MOST_AT_ONCE)]
    assert (one.result(), few.result()) == (["X"], ["FEW"])
    first, second, third, *_ = blocked.batches
    assert first == ("same", [*(f"m{n}" for n in range(SHARE)), "few"])
    assert second == ("other", ["x"])
    assert third[1] == [f"m{n}" for n in range(SHARE, 2 * SHARE)]


def test_one_bad_query_spoils_no_other() -> None:
    blocked = Blocked()
    futures = [blocked.worker.search("same", [query], later()) for query in ("a", "bad", "b")]
    blocked.open()
    assert futures[0].result() == ["A"]
    assert isinstance(futures[1].exception(), BadInput)
    assert futures[2].result() == ["B"]


def test_the_thread_survives_what_it_does_not_expect() -> None:
    blocked = Blocked()
    broken = blocked.worker.search("same", ["broken"], later())
    blocked.gate.set()
    assert isinstance(broken.exception(), ZeroDivisionError)
    assert isinstance(blocked.worker.search("same", ["panic"], later()).exception(), KeyboardInterrupt)
    assert isinstance(blocked.worker.call(panic, later()).exception(), KeyboardInterrupt)
    assert blocked.worker.search("same", ["a"], later()).result() == ["A"]
    blocked.worker.close()


def test_what_waited_too_long_is_not_searched() -> None:
    blocked = Blocked()
    late = blocked.worker.search("same", ["late"], monotonic() - 1)
    gone = blocked.worker.search("same", ["gone"], later())
    assert gone.cancel()
    kept = blocked.worker.search("same", ["kept"], later())
    blocked.open()
    assert kept.result() == ["KEPT"]
    error = late.exception()
    assert isinstance(error, Refused) and error.status == 504
    assert blocked.batches == [("same", ["kept"])]


@pytest.mark.parametrize("kind", ["call", "search"])
@pytest.mark.parametrize("ended_by", ["cancel", "deadline"])
def test_running_work_that_nobody_waits_for_stops(kind: str, ended_by: str) -> None:
    begun = Event()
    worker: Worker[str] = Worker("test", lambda options, queries: endless(begun), lambda size: None, waiting=1000)
    deadline = monotonic() + (SOON if ended_by == "cancel" else 2)
    future: Future[Any] = (
        worker.call(lambda: endless(begun), deadline) if kind == "call" else worker.search("same", ["q"], deadline)
    )
    assert begun.wait(SOON)
    if ended_by == "cancel":
        future.cancel()
    assert isinstance(future.exception(), Stopped)
    assert worker.call(lambda: "free", later()).result() == "free"
    worker.close()


def test_a_batch_stops_when_nobody_waits_for_any_of_it() -> None:
    blocked, calls, unwanted = Blocked(), list[list[str]](), list[bool]()

    def search(settings: object, queries: list[str]) -> Sequence[str]:
        calls.append(queries)
        first.cancel()
        unwanted.append(is_unwanted())
        second.cancel()
        unwanted.append(is_unwanted())
        require_wanted()
        return queries

    blocked.worker._search = search
    first = blocked.worker.search("same", ["a"], later())
    second = blocked.worker.search("same", [f"b{n}" for n in range(2 * MOST_AT_ONCE)], later())
    blocked.open()
    assert unwanted == [False, True]
    assert isinstance(first.exception(), Stopped) and isinstance(second.exception(), Stopped)
    assert calls == [["a", *(f"b{n}" for n in range(SHARE))]]  # not again one by one, and no further share


def test_the_rest_of_a_request_that_nobody_waits_for_is_not_searched() -> None:
    blocked, calls = Blocked(), list[list[str]]()

    def search(settings: object, queries: list[str]) -> Sequence[str]:
        calls.append(queries)
        many.cancel()
        return queries

    blocked.worker._search = search
    many = blocked.worker.search("same", ["q"] * 3 * SHARE, later())
    blocked.open()
    assert isinstance(many.exception(), Refused)
    assert calls == [["q"] * SHARE]


def test_too_many_are_sent_away_and_the_count_is_kept() -> None:
    blocked = Blocked(waiting=3)
    futures = [blocked.worker.search("same", [f"q{n}"], later()) for n in range(3)]
    with pytest.raises(Refused) as refused:
        blocked.worker.search("same", ["more"], later())
    assert refused.value.status == 503
    blocked.gate.set()
    assert [future.result() for future in futures] == [["Q0"], ["Q1"], ["Q2"]]
    for _ in range(10):
        broken = blocked.worker.search("same", ["broken"] * (SHARE + 1), later())
        assert isinstance(broken.exception(), ZeroDivisionError)
    assert blocked.worker.search("same", ["again"], later()).result() == ["AGAIN"]
    blocked.worker.close()
    with pytest.raises(Refused, match="shutting down"):
        blocked.worker.search("same", ["x"], later())


def test_threads_search_at_the_same_time_and_each_request_gets_its_own_answers() -> None:
    both = Barrier(2, timeout=SOON)

    def search(settings: object, queries: list[str]) -> Sequence[str]:
        if settings == "meet":
            both.wait()
        return [query.upper() for query in queries]

    worker: Worker[str] = Worker("test", search, lambda size: None, waiting=1000, threads=2)
    first = worker.search("meet", ["a"], later())
    while both.n_waiting == 0:  # else both could be taken together
        pass
    assert worker.search("meet", ["b"], later()).result() == ["B"]
    assert first.result() == ["A"]
    many = [worker.search(n % 3, [f"q{n}x{m}" for m in range(n)], later()) for n in range(1, 40)]
    worker.close()
    assert [future.result() for future in many] == [[f"Q{n}X{m}" for m in range(n)] for n in range(1, 40)]
