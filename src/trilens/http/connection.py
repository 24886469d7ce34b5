"""One client connection: a protocol of uvicorn, behind limits on the time that the client may take.

A connection either waits for a request or has one in work. It is cut if the head of a request, or the next request, does not
arrive in time, and if the client does not take its response. The time that a body takes is limited in `guard.py`.
"""

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trilens.http.connections import Connections
from trilens.http.failures import failure
from trilens.http.guard import HEADERS
from trilens.http.limits import Limits
from trilens.http.metrics import Metrics

LEAST_TAKEN = 16 << 10  # bytes that a client takes of its response in `send_seconds`, unless fewer are left


class Connection(asyncio.Protocol):
    """Passes what happens on a connection to `inner`, and cuts the connection if the client is too slow."""

    def __init__(self, inner: asyncio.Protocol, connections: Connections, limits: Limits, metrics: Metrics) -> None:
        self._inner, self._connections, self._limits, self._metrics = inner, connections, limits, metrics
        self._loop = asyncio.get_running_loop()
        self._inner.app = self._watched(self._inner.app)  # type: ignore[attr-defined]  # all protocols of uvicorn have it
        self._transport: asyncio.Transport
        self._timer: asyncio.TimerHandle | None = None
        self._head_begun = False
        self._unsent = 0
        self.is_open = False
        self._lost = asyncio.Event()
        self._cycles: set[Any] = set()  # the requests in work
        self.opening: asyncio.Task[None] | None = None  # the TLS handshake

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the first request."""
        self._transport = cast(asyncio.Transport, transport)  # those of uvloop do not inherit from it
        self.is_open = True
        self._inner.connection_made(transport)
        self._start_timer(self._limits.head_seconds, self._late)

    def data_received(self, data: bytes) -> None:
        """Pass on a part of a request; its first part starts the time of its head."""
        if not (self._cycles or self._head_begun):
            self._head_begun = True
            self._start_timer(self._limits.head_seconds, self._late)
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """Pass on that the client sends nothing more."""
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        """The client takes its response more slowly than it is written."""
        self._inner.pause_writing()
        self._set_timer()

    def resume_writing(self) -> None:
        """The client has taken most of what was written."""
        self._inner.resume_writing()
        self._set_timer()

    def connection_lost(self, error: Exception | None) -> None:
        """Forget the connection."""
        self._stop_timer()
        self.is_open = False
        self._connections.forget(self)
        for cycle in self._cycles:  # the protocol itself tells only the last of several requests in a pipeline
            cycle.disconnected = True
        self._inner.connection_lost(error)
        self._lost.set()

    def cut(self, reason: str) -> None:
        """Close the connection, with an answer if a part of a request has arrived."""
        self._metrics.cut.labels(reason).inc()
        if self.opening:
            self.opening.cancel()
        elif self._transport.is_closing() or self._transport.get_write_buffer_size():
            self._transport.abort()
        else:
            if self._head_begun:
                late = f"the head of the request took longer than {self._limits.head_seconds:g} s to arrive"
                self._transport.write(unrequested(408, late))
            self._transport.close()
            self._start_timer(self._limits.send_seconds, self._transport.abort)

    def _watched(self, app: ASGIApp) -> ASGIApp:
        """The application of this connection: its start is the end of a head, its end that of a response."""

        async def run(scope: Scope, receive: Receive, send: Send) -> None:
            async def send_if_open(message: Message) -> None:
                if self._transport.is_closing():  # a write would be an error
                    await self._lost.wait()
                await send(message)

            cycle = send.__self__  # type: ignore[attr-defined]  # of all protocols of uvicorn
            self._cycles.add(cycle)
            self._set_timer()
            self._connections.waits(self, False)
            try:
                await app(scope, receive, send_if_open)
            finally:
                self._cycles.discard(cycle)
                self._head_begun = False
                self._connections.waits(self, not self._cycles)
                self._set_timer()

        return run

    def _set_timer(self) -> None:
        """Limit the time of what the service waits for: that the client takes its response, or sends the next request."""
        if not self.is_open:  # the client left while its request was in work
            return
        self._unsent = self._transport.get_write_buffer_size()
        if self._unsent:
            self._start_timer(self._limits.send_seconds, self._check_sending)
        elif self._cycles:
            self._stop_timer()
        else:
            self._start_timer(self._limits.idle_seconds, self._late)

    def _check_sending(self) -> None:
        unsent = self._transport.get_write_buffer_size()
        if unsent and self._unsent - unsent < LEAST_TAKEN:
            self.cut("slow reader")
        else:
            self._set_timer()

    def _late(self) -> None:
        self.cut("slow head" if self._head_begun else "idle")

    def _start_timer(self, seconds: float, act: Callable[[], object]) -> None:
        self._stop_timer()
        self._timer = self._loop.call_later(seconds, act)

    def _stop_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None


def unrequested(status: int, message: str, headers: dict[str, str] | None = None) -> bytes:
    """The bytes of an error response that no request asked for."""
    response = failure("", status, message, {**HEADERS, **(headers or {}), "Connection": "close"})
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode()]
    lines += [name + b": " + value for name, value in response.raw_headers]
    return b"\r\n".join([*lines, b"", bytes(response.body)])
