"""A served collection: a worker pool that searches snapshots, and a lock that serialises writes."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from copy import copy
from dataclasses import asdict, dataclass
from functools import cached_property
from threading import Lock
from time import monotonic
from typing import TypeVar

from trilens.collection import Collection
from trilens.encode.models import resolve_model
from trilens.encode.onnx import OnnxEncoder
from trilens.errors import BadInput, BadModel, ServiceFailed, TrilensError
from trilens.http.answers import answer_json
from trilens.http.audit_log import Recorded, unrecorded
from trilens.http.examples import example_queries
from trilens.http.failures import Refused
from trilens.http.limits import Limits
from trilens.http.metrics import Metrics
from trilens.http.worker import Worker
from trilens.search.options import SearchOptions
from trilens.search.rerank import CROSS
from trilens.store.catalog import has_moved_on
from trilens.store.changes import Changes
from trilens.store.snapshot import Snapshot
from trilens.text.document import Document

# One core per search thread: encoder threads that split one small batch mostly wait for each other.
ENCODER_THREADS = 1
REFRESH_SECONDS = 0.25  # minimum interval between checks for commits of other processes

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Written:
    """The result of a write: its changes, the ids that do not exist, and the collection after the commit."""

    changes: Changes
    missing: list[str]
    documents: int
    commit: int


class ServedCollection:
    """A collection shared by all requests. Reads use snapshots and run concurrently; writes hold a lock."""

    def __init__(self, name: str, collection: Collection, limits: Limits, metrics: Metrics, threads: int) -> None:
        """`threads` is the number of concurrent searches."""
        self.name = name
        self.collection = collection
        self.limits = limits
        wait_seconds = min(limits.wait_seconds, limits.seconds)
        self._worker: Worker[bytes] = Worker(
            name, self._search, metrics.batches.labels(name).observe, limits.waiting, threads, wait_seconds
        )
        self._write_turn = asyncio.Lock()  # asynchronous, so that waiting writers occupy no thread
        self._writing = Lock()
        self._checked = monotonic()
        self._examples: tuple[int, list[str]] = (-1, [])  # the commit that they are from, and the queries
        self.broken: str | None = None  # why the collection could not be searched when that was last tried

    @property
    def has_model(self) -> bool:
        """Whether a lens of the collection uses a model."""
        return bool(self.collection.config.heads)

    @cached_property
    def encoder(self) -> OnnxEncoder:
        """The collection's model with all of its heads, including those that no lens uses."""
        if not self.has_model:
            raise BadInput(f"collection {self.name!r} has no model: its lenses are {', '.join(self.collection.lenses)}")
        return OnnxEncoder(resolve_model(self.collection.config.model), threads=ENCODER_THREADS)

    @property
    def heads(self) -> list[str]:
        """The heads of the model; empty if there is none or it cannot be loaded, since lenses without a model still work."""
        try:
            return list(self.encoder.heads) if self.has_model else []
        except BadModel:
            return []

    def current(self) -> Snapshot:
        """The snapshot of the last commit. Commits of other processes appear within `REFRESH_SECONDS`.

        No check is made during a write of this process: no other process can commit then.
        """
        collection = self.collection
        if monotonic() - self._checked > REFRESH_SECONDS and self._writing.acquire(blocking=False):
            try:
                self._checked = monotonic()
                if has_moved_on(collection.path, collection.snapshot.commit):
                    collection.refresh()
            finally:
                self._writing.release()
        return collection.snapshot

    def latest(self) -> Snapshot:
        """The snapshot of the last commit that can be read, also if the collection has become unreadable."""
        try:
            return self.current()
        except TrilensError:
            return self.collection.snapshot

    def pinned(self) -> Collection:
        """A copy of the collection that stays at the current commit."""
        self.current()
        return copy(self.collection)

    def warm_up(self) -> None:
        """Load the model and compile the kernels, so that the first request does not wait for them."""
        try:
            for rerank in (None, *({"by": CROSS, "model": model} for model in self.limits.cross_encoders)):
                self.collection.search(["warm up"], 1, rerank=rerank)
        except BadInput:  # of lenses that are not searched by text
            self.broken = None
        except TrilensError as error:  # the first search reports it
            self.broken = str(error)
        else:
            self.broken = None

    def require_searchable(self) -> None:
        """Raise an error of trilens if the collection cannot be searched."""
        if self.broken:
            self.warm_up()
        if self.broken:
            raise ServiceFailed(self.broken)
        self.current()

    def problem(self) -> str | None:
        """Why the collection cannot be searched; None if it can."""
        try:
            self.require_searchable()
        except TrilensError as error:
            return str(error)
        return None

    def examples(self) -> tuple[int, list[str]]:
        """The last commit and example queries from its documents, which are chosen once per commit."""
        snapshot = self.current()
        if self._examples[0] != snapshot.commit:
            self._examples = (snapshot.commit, example_queries(snapshot))
        return self._examples

    async def search(self, options: SearchOptions, queries: Sequence[str], document_texts: bool = False) -> list[bytes]:
        """The serialised answer to each query."""
        deadline = self.deadline()
        return await _within(self._worker.search((options, document_texts), queries, deadline), deadline)

    async def call(self, work: Callable[[], Result], deadline: float) -> Result:
        """Run other work on a search thread. Long work is split into several calls with a common deadline."""
        return await _within(self._worker.call(work, deadline), deadline)

    async def write(self, change: Callable[[Collection], list[str]], recorded: Recorded = unrecorded) -> Written:
        """Apply a change and commit it. `change` returns the ids that do not exist; `recorded` is the audit."""
        try:
            async with asyncio.timeout(self.limits.seconds):
                await self._write_turn.acquire()
        except TimeoutError as error:
            busy = "other requests are writing to the collection; retry later"
            raise Refused(503, busy, {"Retry-After": "5"}) from error
        try:
            return await asyncio.to_thread(self._write, change, recorded)
        finally:
            self._write_turn.release()

    async def put(self, documents: Iterable[Document], recorded: Recorded = unrecorded, replace: bool = True) -> Written:
        """Add documents; those with existing ids are replaced or, without `replace`, an error."""

        def change(collection: Collection) -> list[str]:
            (collection.upsert if replace else collection.add)(documents)
            return []

        return await self.write(change, recorded)

    def close(self) -> None:
        """Finish the queued requests and close the collection."""
        self._worker.close()
        with self._writing:
            self.collection.close()

    def _search(self, asked: tuple[SearchOptions, bool], queries: list[str]) -> list[bytes]:
        collection, (options, document_texts) = self.pinned(), asked
        answers = collection.search(queries, options=options)
        commit = collection.snapshot.commit
        return [answer_json(query, commit, hits, document_texts) for query, hits in zip(queries, answers, strict=True)]

    def _write(self, change: Callable[[Collection], list[str]], recorded: Recorded) -> Written:
        with self._writing, recorded(self.collection.snapshot.commit) as report:
            try:
                missing = change(self.collection)
                changes = self.collection.commit()
            except BaseException:
                self.collection.rollback()
                raise
            snapshot = self.collection.snapshot
            report({"commit": snapshot.commit, **asdict(changes), "missing": len(missing)})
            return Written(changes, missing, snapshot.documents_count, snapshot.commit)

    def deadline(self) -> float:
        """The deadline of a request that arrives at this moment, on the clock of `monotonic`."""
        return monotonic() + self.limits.seconds


async def _within(future: "Future[Result]", deadline: float) -> Result:
    try:
        return await asyncio.wait_for(asyncio.wrap_future(future), deadline - monotonic())
    except TimeoutError as error:
        raise Refused(504, "the request timed out; send less at once, or retry later", {"Retry-After": "2"}) from error
