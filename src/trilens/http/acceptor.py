"""Accepts connections on a listening socket: admits or refuses each, and limits the time of its TLS handshake.

A server of asyncio would count a connection only after its handshake, so that connections without one would be unlimited.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress

from trilens.http.connection import Connection, unrequested
from trilens.http.connections import Connections
from trilens.http.limits import Limits
from trilens.http.metrics import Metrics

PAUSE_SECONDS = 0.5  # after an error of `accept`, for example if the process has no descriptors left


class Acceptor:
    """Accepts connections until it is cancelled."""

    def __init__(
        self,
        listener: socket.socket,
        make_protocol: Callable[[], asyncio.Protocol],
        connections: Connections,
        limits: Limits,
        metrics: Metrics,
        context: ssl.SSLContext | None,
    ) -> None:
        self._listener, self._make_protocol, self._context = listener, make_protocol, context
        self._connections, self._limits, self._metrics = connections, limits, metrics
        self._opening: set[asyncio.Task[None]] = set()  # a task without a reference may be collected

    async def run(self) -> None:
        """Accept connections."""
        loop = asyncio.get_running_loop()
        self._listener.setblocking(False)
        while True:
            try:
                accepted, address = await loop.sock_accept(self._listener)
            except OSError:
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            task = loop.create_task(self._open(accepted, address[0]))
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)
            await asyncio.sleep(0)  # a flood of connections must not stop those that are open

    async def _open(self, accepted: socket.socket, host: str) -> None:
        connection = Connection(self._make_protocol(), self._connections, self._limits, self._metrics)
        if not self._connections.admit(connection, host):
            self._refuse(accepted)
            return
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.opening = asyncio.current_task()
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=self._limits.head_seconds if self._context else None,
            )
        except OSError:  # of the client: not TLS, no common version, too slow, gone
            accepted.close()
        finally:
            connection.opening = None
            if not connection.is_open:
                self._connections.forget(connection)

    def _refuse(self, accepted: socket.socket) -> None:
        self._metrics.cut.labels("refused").inc()
        busy = unrequested(503, "too many connections have requests in work; retry later", {"Retry-After": "2"})
        with accepted, suppress(OSError):
            if not self._context:
                accepted.setblocking(False)
                accepted.send(busy)
