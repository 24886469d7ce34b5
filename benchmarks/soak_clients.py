"""The clients of the soak test: searching, hostile, slow and writing ones, each from a loopback address of its own kind."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from time import monotonic, perf_counter
from typing import Any

from trilens import Document
from trilens.store.filters import MOST_CONDITIONS

SEARCH = "/api/v1/collections/soak/search"
DOCUMENTS = "/api/v1/collections/soak/documents"
PATIENCE = 120.0
BATCH = 10  # documents of a write
REPLACED = 500  # ids that the writer adds, replaces and deletes
HOSTILE_SHARE = 0.1  # of the requests of a searching client
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class Tally:
    """What the clients saw. `failed` counts lost connections, and 5xx that do not say when to retry."""

    statuses: dict[str, Counter[int]] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)
    cut: Counter[str] = field(default_factory=Counter)
    commits: int = 0

    def count(self, kind: str, status: int, head: bytes) -> None:
        """Count an answer."""
        self.statuses.setdefault(kind, Counter())[status] += 1
        if status >= 500 and not (status == 503 and b"retry-after" in head.lower()):
            self.failed[f"{kind}: {status}"] += 1


@dataclass(frozen=True)
class World:
    """The service, what is sent to it, and when it ends."""

    host: str
    port: int
    key: str
    deadline: float
    queries: Sequence[str]
    documents: Sequence[Document]
    tally: Tally

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return monotonic() >= self.deadline

    async def connect(self, client: str) -> Streams:
        """A connection from a loopback address."""
        return await asyncio.open_connection(self.host, self.port, local_addr=(client, 0))

    def head(self, method: str, path: str, length: int) -> bytes:
        """The head of a request."""
        lines = (f"{method} {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {self.key}")
        return "\r\n".join((*lines, "Content-Type: application/json", f"Content-Length: {length}", "", "")).encode()


def hostile(number: int) -> dict[str, Any]:
    """A filter that is meant to be expensive."""
    nested: dict[str, Any] = {"n": 1}
    for _ in range(40):
        nested = {"$not": nested}
    filters: list[dict[str, Any]] = [
        {"$or": [{"tags": f"x{one}"} for one in range(5_900)]},
        {"tags": {"$in": [f"x{one}" for one in range(5_900)]}},
        {"$and": [{"$or": [{"n": one}, {"tags": f"x{one}"}]} for one in range(300)]},
        {"$or": [{"n": {"$gt": one}} for one in range(MOST_CONDITIONS)]},  # within the limits of filters
        nested,
    ]
    return filters[number % len(filters)]


async def request(streams: Streams, head: bytes, body: bytes) -> tuple[int, bytes, bytes]:
    """Send a request; its status, the head of the answer and the body."""
    reader, writer = streams
    writer.write(head + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    length = int(answer.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
    return int(answer.split(b" ", 2)[1]), answer, await reader.readexactly(length)


async def searching(world: World, number: int) -> None:
    """Search all the time, sometimes with a hostile filter."""
    chance, client, streams = random.Random(number), f"127.0.1.{number + 1}", None
    while not world.is_over:
        body: dict[str, Any] = {"queries": [chance.choice(world.queries)], "k": 10}
        kind = "search"
        if chance.random() < HOSTILE_SHARE:
            kind, body["filter"] = "hostile search", hostile(chance.randrange(5))
        payload, started = json.dumps(body).encode(), perf_counter()
        try:
            async with asyncio.timeout(PATIENCE):
                streams = streams or await world.connect(client)
                status, head, _ = await request(streams, world.head("POST", SEARCH, len(payload)), payload)
        except (OSError, EOFError, TimeoutError) as error:
            world.tally.failed[f"{kind}: {type(error).__name__}"] += 1
            streams = _close(streams)
            continue
        world.tally.count(kind, status, head)
        if kind == "search" and status == 200:
            world.tally.seconds.append(perf_counter() - started)
        if status == 503:
            await asyncio.sleep(0.5)
        if b"connection: close" in head.lower():
            streams = _close(streams)
    _close(streams)


async def writing(world: World) -> None:
    """Put and delete documents in turns, a commit per request, about once a second."""
    number, streams = 0, None
    while not world.is_over:
        ids = [f"added {one % REPLACED}" for one in range(number, number + BATCH)]
        if number // BATCH % 4 == 3:
            method, path, body = "DELETE", f"{DOCUMENTS}?{'&'.join('id=' + one.replace(' ', '%20') for one in ids)}", b""
        else:
            texts = [world.documents[(number + one) % len(world.documents)].text[:2000] for one in range(BATCH)]
            put = [{"doc_id": doc_id, "text": text} for doc_id, text in zip(ids, texts, strict=True)]
            method, path, body = "PUT", DOCUMENTS, json.dumps({"documents": put}).encode()
        try:
            async with asyncio.timeout(PATIENCE):
                streams = streams or await world.connect("127.0.2.1")
                status, head, _ = await request(streams, world.head(method, path, len(body)), body)
            world.tally.count("write", status, head)
            world.tally.commits += status == 200
        except (OSError, EOFError, TimeoutError) as error:
            world.tally.failed[f"write: {type(error).__name__}"] += 1
            streams = _close(streams)
        number += BATCH
        await asyncio.sleep(1)
    _close(streams)


async def _slow_head(world: World, streams: Streams) -> None:
    for byte in world.head("GET", DOCUMENTS, 0)[:-4]:
        streams[1].write(bytes([byte]))
        await streams[1].drain()
        if await _ended(streams[0], 1):
            return


async def _idle(world: World, streams: Streams) -> None:
    while not world.is_over and not await _ended(streams[0], 1):
        pass


async def _slow_body(world: World, streams: Streams) -> None:
    streams[1].write(world.head("POST", SEARCH, 1000))
    while not world.is_over and not await _ended(streams[0], 1):
        streams[1].write(b" ")
        await streams[1].drain()


async def _slow_reader(world: World, streams: Streams) -> None:
    body = json.dumps({"queries": list(world.queries[:100]), "k": 100}).encode()
    reader, writer = streams
    reader._transport.pause_reading()  # type: ignore[attr-defined]  # nothing is taken from the socket
    for _ in range(20):
        writer.write(world.head("POST", SEARCH, len(body)) + body)
    while not world.is_over and not writer.transport.is_closing():
        await asyncio.sleep(1)
        reader._transport.resume_reading()  # type: ignore[attr-defined]
        await asyncio.sleep(0)
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        if await _ended(reader, 0.01):
            return


SLOW: dict[str, Callable[[World, Streams], Coroutine[Any, Any, None]]] = {
    "slow head": _slow_head,
    "idle": _idle,
    "slow body": _slow_body,
    "slow reader": _slow_reader,
}


async def slow(world: World, kind: str, number: int) -> None:
    """Open one slow connection after the other, and count how often the service cut it."""
    client = f"127.0.{3 + list(SLOW).index(kind)}.{number % 2 + 1}"
    while not world.is_over:
        streams = None
        try:
            streams = await world.connect(client)
            await SLOW[kind](world, streams)
        except (OSError, EOFError):
            pass
        if not world.is_over:
            world.tally.cut[kind] += 1
        _close(streams)
        await asyncio.sleep(0.2)


async def _ended(reader: asyncio.StreamReader, seconds: float) -> bool:
    """Whether the service answers or closes the connection within this time."""
    try:
        async with asyncio.timeout(seconds):
            await reader.read(1024)
    except TimeoutError:
        return False
    return True


def _close(streams: Streams | None) -> Streams | None:
    """Close a connection; None, which takes its place."""
    if streams:
        streams[1].transport.abort()
    return None
