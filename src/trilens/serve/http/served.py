"""A collection while it is served: searched by the threads of its worker, kept up to date, changed by one request at a time."""

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from time import monotonic
from typing import Any, TypeVar

from trilens.collection import Collection
from trilens.encode.models import resolve_model
from trilens.encode.onnx import OnnxEncoder
from trilens.errors import BadInput, TrilensError
from trilens.serve.http.answers import answer_json
from trilens.serve.http.failures import Refused
from trilens.serve.http.limits import Limits
from trilens.serve.http.metrics import Metrics
from trilens.serve.http.worker import Worker
from trilens.store.catalog import has_moved_on
from trilens.store.snapshot import Snapshot
from trilens.store.writer import Changes
from trilens.text.document import Document

# A core for each searching thread: two cores that share the texts of one batch mostly wait for each other.
ENCODER_THREADS = 1
REFRESH_SECONDS = 0.25  # other processes' commits are looked for at most this often

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Settings:
    """How queries are put. Equal settings can be searched together, so they are compared and hashed: the filter is JSON."""

    k: int
    lenses: tuple[str, ...] | None
    where: str
    exact: bool
    fusion: str | None
    expand: str | None
    rerank: str | None
    params: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Written:
    """What a request changed, the ids that it named and that were not there, and what the collection is after it."""

    changes: Changes
    missing: list[str]
    documents: int
    commit: int


class ServedCollection:
    """Reading happens on snapshots, which threads may share; writing holds a lock."""

    def __init__(self, name: str, collection: Collection, limits: Limits, metrics: Metrics, threads: int) -> None:
        """`threads` search at the same time."""
        self.name = name
        self.collection = collection
        self.limits = limits
        self._worker: Worker[bytes] = Worker(
            name, self._search, lambda size: metrics.batches.observe(size, name), limits.waiting, threads
        )
        self._turn = asyncio.Lock()  # to write: who waits for it must not hold a thread that readers need
        self._writing = Lock()
        self._looked = monotonic()

    @property
    def has_model(self) -> bool:
        """Whether some lens needs a model."""
        return bool(self.collection.config.heads)

    @cached_property
    def encoder(self) -> OnnxEncoder:
        """The collection's model with all its heads, also those that no lens needs."""
        if not self.has_model:
            raise BadInput(f"collection {self.name!r} has no model: its lenses are {', '.join(self.collection.lenses)}")
        return OnnxEncoder(resolve_model(self.collection.config.model), threads=ENCODER_THREADS)

    def current(self) -> Snapshot:
        """The last commit, also of other processes, give or take `REFRESH_SECONDS`.

        While a request of ours writes, nobody else can commit, and the commit itself moves us on.
        """
        collection = self.collection
        if monotonic() - self._looked > REFRESH_SECONDS and self._writing.acquire(blocking=False):
            try:
                self._looked = monotonic()
                if has_moved_on(collection.path, collection.snapshot.commit):
                    collection.refresh()
            finally:
                self._writing.release()
        return collection.snapshot

    def pinned(self) -> Collection:
        """The collection as it is at present, which stays at its commit while other threads move on."""
        self.current()
        return copy(self.collection)

    def warm_up(self) -> None:
        """Load the model, and compile the kernels where that was never done: nobody should wait for it later."""
        with suppress(TrilensError):  # whoever searches will hear of it
            self.collection.search(["warm up"], 1)

    async def search(self, settings: Settings, queries: Sequence[str]) -> list[bytes]:
        """The answers to each query, in their order, as they are sent."""
        deadline = self.deadline()
        return await _within(self._worker.search(settings, queries, deadline), deadline)

    async def call(self, work: Callable[[], Result], deadline: float) -> Result:
        """Something else that takes the encoder, done in its turn. What takes long is done in pieces, with one deadline."""
        return await _within(self._worker.call(work, deadline), deadline)

    async def write(self, change: Callable[[Collection], list[str]]) -> Written:
        """A change and its commit. `change` returns ids that were not there."""
        try:
            async with asyncio.timeout(self.limits.seconds):
                await self._turn.acquire()
        except TimeoutError as error:
            busy = "other requests are still writing to the collection; try again later"
            raise Refused(503, busy, {"Retry-After": "5"}) from error
        try:
            return await asyncio.to_thread(self._write, change)
        finally:
            self._turn.release()

    async def put(self, documents: Iterable[Document]) -> Written:
        """Add or replace documents."""

        def change(collection: Collection) -> list[str]:
            collection.upsert(documents)
            return []

        return await self.write(change)

    def close(self) -> None:
        """Finish what waits, and let go of the files."""
        self._worker.close()
        with self._writing:
            self.collection.close()

    def _search(self, settings: Settings, queries: list[str]) -> list[bytes]:
        collection = self.pinned()
        answers = collection.search(
            queries,
            settings.k,
            lenses=settings.lenses,
            where=json.loads(settings.where) or None,
            exact=settings.exact,
            fusion=settings.fusion,
            expand=settings.expand,
            rerank=settings.rerank,
            params=dict(settings.params),
        )
        commit = collection.snapshot.commit
        return [answer_json(query, commit, hits) for query, hits in zip(queries, answers, strict=True)]

    def _write(self, change: Callable[[Collection], list[str]]) -> Written:
        with self._writing:
            try:
                missing = change(self.collection)
                changes = self.collection.commit()
            except BaseException:
                self.collection.rollback()
                raise
            snapshot = self.collection.snapshot
            return Written(changes, missing, snapshot.documents_count, snapshot.commit)

    def deadline(self) -> float:
        """When a request that comes at this moment has to be answered."""
        return monotonic() + self.limits.seconds


async def _within(future: "Future[Result]", deadline: float) -> Result:
    try:
        return await asyncio.wait_for(asyncio.wrap_future(future), deadline - monotonic())
    except TimeoutError as error:
        raise Refused(504, "the request took too long; ask for less, or try again later", {"Retry-After": "2"}) from error
