"""A pool of search threads with a queue that batches requests.

Queued requests with equal options form a batch, so that the encoder and the kernels process many queries at once. Scheduling
is fair: the oldest request determines the next batch, and a request with many queries contributes a share of them to a batch
and then moves to the end of the queue. An idle thread starts at once instead of waiting for a batch to fill.

A request is unwanted when it is past its deadline or its future was cancelled. Then it is not started, and work that has begun
stops at its next check (`trilens.cancellation`); a batch stops if all of its requests are unwanted.
"""

import math
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Condition, Thread
from time import monotonic
from typing import Any, Generic, TypeVar

from trilens.cancellation import stop_when
from trilens.errors import Stopped, TrilensError
from trilens.http.failures import Refused
from trilens.http.pace import Pace

MOST_AT_ONCE = 16  # queries of a batch: larger ones gain no throughput and add latency
SHARE = 8  # queries of one request in a batch

Answer = TypeVar("Answer")
Result = TypeVar("Result")


class _Outcome(Future[Any]):
    """A future that remembers its cancellation also while the work runs, which `Future` ignores then."""

    abandoned = False

    def cancel(self) -> bool:
        """Cancel work in the queue, and tell running work that nobody waits for it."""
        self.abandoned = True
        return super().cancel()


@dataclass(eq=False, slots=True)
class _Job:
    """A queued request: queries with search options, or a function to call."""

    deadline: float
    future: _Outcome = field(default_factory=_Outcome)
    options: Any = None
    queries: Sequence[str] = ()
    answers: list[Any] = field(default_factory=list)
    work: Callable[[], Any] | None = None
    started: bool = False

    @property
    def unwanted(self) -> bool:
        """Whether nobody waits for the result any more."""
        return self.future.abandoned or monotonic() > self.deadline

    def begin(self) -> bool:
        """Mark the job as running; False if it is unwanted."""
        if not self.started and not self.future.set_running_or_notify_cancel():
            return False
        self.started = True
        if self.unwanted:
            self.future.set_exception(Refused(504, "the request timed out in the queue; retry later", {"Retry-After": "2"}))
            return False
        return True


class Worker(Generic[Answer]):
    """The queue and threads of one collection.

    `search(options, queries)` returns one answer per query; `report` is called with the size of each batch. Requests are
    refused while `waiting` queries are queued, or if they would wait longer than `wait_seconds`.
    """

    def __init__(
        self,
        name: str,
        search: Callable[[Any, list[str]], Sequence[Answer]],
        report: Callable[[int], None],
        waiting: int,
        threads: int = 1,
        wait_seconds: float = math.inf,
    ) -> None:
        self._search, self._report, self._most_waiting = search, report, waiting
        self._pace = Pace(wait_seconds, threads)
        self._queue: deque[_Job] = deque()
        self._waiting = 0  # queries and calls in the queue
        self._changed = Condition()
        self._closed = False
        self._threads = [Thread(target=self._run, name=f"search {name}", daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def search(self, options: Any, queries: Sequence[str], deadline: float) -> "Future[list[Answer]]":
        """Queue a search; the result is one answer per query. `deadline` is on the clock of `monotonic`."""
        return self._put(_Job(deadline, options=options, queries=list(queries)))

    def call(self, work: Callable[[], Result], deadline: float) -> "Future[Result]":
        """Queue a function call."""
        return self._put(_Job(deadline, work=work))

    def close(self) -> None:
        """Finish the queued requests, then end the threads."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _put(self, job: _Job) -> "Future[Any]":
        with self._changed:
            if self._closed:
                raise Refused(503, "the service is shutting down; retry later", {"Retry-After": "5"})
            if self._waiting >= self._most_waiting:
                raise Refused(503, f"{self._waiting:,} queries are queued; retry later", {"Retry-After": "2"})
            self._pace.require_short(self._waiting)
            self._waiting += max(1, len(job.queries))
            self._queue.append(job)
            self._changed.notify()
        return job.future

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._queue:
                    if self._closed:
                        return
                    self._changed.wait()
                first, shares = self._take()
            started, taken = monotonic(), sum(len(queries) for _, queries in shares) or 1
            if first and first.work:
                _finish(first, first.work)
            elif shares:
                self._answer(shares)
            if first:
                self._pace.measured(taken, monotonic() - started)
            del first, shares  # a waiting thread must not keep answers and snapshots alive

    def _take(self) -> "tuple[_Job | None, list[tuple[_Job, list[str]]]]":
        """The oldest request and its batch: a share of each request with equal options."""
        first: _Job | None = None
        shares: list[tuple[_Job, list[str]]] = []
        kept: list[_Job] = []
        room = MOST_AT_ONCE
        while self._queue and room:
            job = self._queue.popleft()
            if first and (first.work or job.work or job.options != first.options):
                kept.append(job)
                continue
            remaining = len(job.queries) - len(job.answers)
            if not job.begin():
                self._waiting -= max(1, remaining)
                continue
            first = first or job
            share = min(room, SHARE, remaining)
            self._waiting -= max(1, share)
            room -= share
            if job.work:
                break
            shares.append((job, list(job.queries[len(job.answers) : len(job.answers) + share])))
        self._queue.extendleft(reversed(kept))
        return first, shares

    def _answer(self, shares: "list[tuple[_Job, list[str]]]") -> None:
        self._report(sum(len(queries) for _, queries in shares))
        try:
            with stop_when(lambda: all(job.unwanted for job, _ in shares)):
                answers = list(self._search(shares[0][0].options, [query for _, queries in shares for query in queries]))
        except BaseException as error:  # noqa: BLE001  every error goes to the client, and the thread must survive
            self._fail(shares, error)
            return
        for job, queries in shares:
            job.answers += answers[: len(queries)]
            answers = answers[len(queries) :]
            if len(job.answers) == len(job.queries):
                job.future.set_result(job.answers)
            else:
                with self._changed:
                    self._queue.append(job)

    def _fail(self, shares: "list[tuple[_Job, list[str]]]", error: BaseException) -> None:
        """Report an error of a batch. The requests of a batch are retried one by one first: a single query may be the cause."""
        if len(shares) > 1 and isinstance(error, TrilensError) and not isinstance(error, Stopped):
            for share in shares:
                self._answer([share])
            return
        for job, queries in shares:
            with self._changed:
                self._waiting -= len(job.queries) - len(job.answers) - len(queries)
            job.future.set_exception(error)


def _finish(job: _Job, work: Callable[[], Any]) -> None:
    try:
        with stop_when(lambda: job.unwanted):
            result = work()
    except BaseException as error:  # noqa: BLE001  as above
        job.future.set_exception(error)
    else:
        job.future.set_result(result)
