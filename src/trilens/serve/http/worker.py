"""The threads that search a collection. What waits while they are busy is searched together.

Requests that are put in the same way form a batch, so that the encoder and the kernels see many queries at once. It is fair:
the request that has waited longest decides what comes next, and a request with many queries gets a share of a batch,
then goes to the end of the line. No client waits for a batch to fill: when a thread is idle a query is searched at once.
"""

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Condition, Thread
from time import monotonic
from typing import Any, Generic, TypeVar

from trilens.errors import TrilensError
from trilens.serve.http.failures import Refused

MOST_AT_ONCE = 16  # queries of a batch: more gain nothing, and all who wait would wait for each other
SHARE = 8  # of one request

Answer = TypeVar("Answer")
Result = TypeVar("Result")


@dataclass(eq=False, slots=True)
class _Job:
    """A request: queries that are put with some settings, or else a piece of work of its own."""

    deadline: float
    future: "Future[Any]" = field(default_factory=Future)
    settings: Hashable = None
    queries: Sequence[str] = ()
    answers: list[Any] = field(default_factory=list)
    work: Callable[[], Any] | None = None
    started: bool = False

    def begin(self, now: float) -> bool:
        """Whether it is still wanted."""
        if not self.started and not self.future.set_running_or_notify_cancel():
            return False
        self.started = True
        if now > self.deadline:
            self.future.set_exception(Refused(504, "the request waited too long for its turn; try again", {"Retry-After": "2"}))
            return False
        return True


class Worker(Generic[Answer]):
    """`search(settings, queries)` gives an answer to each query; `report` is told the size of each batch."""

    def __init__(
        self,
        name: str,
        search: Callable[[Any, list[str]], Sequence[Answer]],
        report: Callable[[int], None],
        waiting: int,
        threads: int = 1,
    ) -> None:
        self._search, self._report, self._most_waiting = search, report, waiting
        self._line: deque[_Job] = deque()
        self._waiting = 0  # queries and pieces of work in the line
        self._changed = Condition()
        self._closed = False
        self._threads = [Thread(target=self._run, name=f"search {name}", daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def search(self, settings: Hashable, queries: Sequence[str], deadline: float) -> "Future[list[Answer]]":
        """Search when its turn comes; the answers come in the order of the queries. `deadline` is a moment of `monotonic`."""
        return self._put(_Job(deadline, settings=settings, queries=list(queries)))

    def call(self, work: Callable[[], Result], deadline: float) -> "Future[Result]":
        """Do something else in one of the threads when its turn comes."""
        return self._put(_Job(deadline, work=work))

    def close(self) -> None:
        """Finish what waits, then end the threads."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _put(self, job: _Job) -> "Future[Any]":
        with self._changed:
            if self._closed:
                raise Refused(503, "the service is shutting down; try again later", {"Retry-After": "5"})
            if self._waiting >= self._most_waiting:
                raise Refused(503, f"{self._waiting:,} queries are waiting already; try again later", {"Retry-After": "2"})
            self._waiting += max(1, len(job.queries))
            self._line.append(job)
            self._changed.notify()
        return job.future

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._line:
                    if self._closed:
                        return
                    self._changed.wait()
                first, shares = self._take()
            if first and first.work:
                _finish(first, first.work)
            elif shares:
                self._answer(shares)
            del first, shares  # a thread that waits must not hold on to answers and to what they were found in

    def _take(self) -> "tuple[_Job | None, list[tuple[_Job, list[str]]]]":
        """The request that waited longest, and its batch: a share of each request that is put in the same way."""
        now, first = monotonic(), None
        shares: list[tuple[_Job, list[str]]] = []
        kept: list[_Job] = []
        room = MOST_AT_ONCE
        while self._line and room:
            job = self._line.popleft()
            if first and (first.work or job.work or job.settings != first.settings):
                kept.append(job)
                continue
            left = len(job.queries) - len(job.answers)
            if not job.begin(now):
                self._waiting -= max(1, left)
                continue
            first = first or job
            share = min(room, SHARE, left)
            self._waiting -= max(1, share)
            room -= share
            if job.work:
                break
            shares.append((job, list(job.queries[len(job.answers) : len(job.answers) + share])))
        self._line.extendleft(reversed(kept))
        return first, shares

    def _answer(self, shares: "list[tuple[_Job, list[str]]]") -> None:
        self._report(sum(len(queries) for _, queries in shares))
        try:
            answers = list(self._search(shares[0][0].settings, [query for _, queries in shares for query in queries]))
        except BaseException as error:  # noqa: BLE001  whatever it is, who asked must hear of it, and the thread must live
            self._fail(shares, error)
            return
        for job, queries in shares:
            job.answers += answers[: len(queries)]
            answers = answers[len(queries) :]
            if len(job.answers) == len(job.queries):
                job.future.set_result(job.answers)
            else:
                with self._changed:
                    self._line.append(job)

    def _fail(self, shares: "list[tuple[_Job, list[str]]]", error: BaseException) -> None:
        """One bad query must not spoil the others that it was searched with: each request gets its own try."""
        if len(shares) > 1 and isinstance(error, TrilensError):
            for share in shares:
                self._answer([share])
            return
        for job, queries in shares:
            with self._changed:
                self._waiting -= len(job.queries) - len(job.answers) - len(queries)
            job.future.set_exception(error)


def _finish(job: _Job, work: Callable[[], Any]) -> None:
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001  as above
        job.future.set_exception(error)
    else:
        job.future.set_result(result)
