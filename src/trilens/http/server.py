"""Runs the application with uvicorn until a signal, with limits on connections and graceful shutdown."""

import asyncio
import ipaddress
import signal
import socket
import ssl
from collections.abc import Callable, Mapping
from types import FrameType

import uvicorn
from fastapi import FastAPI

from trilens.errors import BadInput
from trilens.http.acceptor import Acceptor
from trilens.http.addresses import Proxies
from trilens.http.connections import Connections
from trilens.http.service import Service

BACKLOG = 512
GRACE_SECONDS = 5.0  # on shutdown, in addition to the time limit of a request


def is_loopback(host: str) -> bool:
    """Whether the host is a loopback address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 selects a free port."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        raise BadInput(f"cannot listen on {host} port {port} ({error}); choose another with --host or --port") from error
    return listener


def is_free(host: str, port: int) -> bool:
    """Whether the port is free."""
    try:
        listen(host, port).close()
    except BadInput:
        return False
    return True


def address(listener: socket.socket, secure: bool) -> str:
    """The URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"{'https' if secure else 'http'}://{shown}:{port}/"


class Server(uvicorn.Server):
    """Serves an application on one socket, with limits on connections, until a signal.

    `ready` is called when the collections are warm; requests are accepted before.
    """

    def __init__(
        self,
        app: FastAPI,
        service: Service,
        listener: socket.socket,
        ready: Callable[[], None],
        proxies: Proxies,
        context: ssl.SSLContext | None,
    ) -> None:
        limits = service.limits
        config = uvicorn.Config(
            app,
            lifespan="on",
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=bool(proxies),
            forwarded_allow_ips=proxies.addresses,
            timeout_keep_alive=round(limits.idle_seconds) + 60,  # `Connection` cuts idle connections
            timeout_graceful_shutdown=round(limits.seconds + GRACE_SECONDS),
        )
        super().__init__(config)
        self._service, self._listener, self._ready, self._context = service, listener, ready, context
        self._connections = Connections(limits, proxies)
        self._accepting: asyncio.Task[None]
        self._warming: asyncio.Task[None]

    def run_until_signal(self, handlers: Mapping[int, Callable[[], None]]) -> None:
        """Serve until SIGTERM or SIGINT, then accept no more requests and let running ones finish.

        `handlers` are functions that other signals call.
        """
        # uvicorn raises the signals again after the shutdown; they must not interrupt the clean-up of the caller.
        calls = {signal.SIGTERM: _nothing, signal.SIGINT: _nothing, **handlers}
        before = {number: signal.signal(number, _handler(call)) for number, call in calls.items()}
        try:
            super().run()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        self._warming.result()  # raises what ended the warm-up

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections, and warm up meanwhile."""
        await super().startup(sockets=[])
        limits, metrics = self._service.limits, self._service.metrics
        acceptor = Acceptor(self._listener, self._protocol, self._connections, limits, metrics, self._context)
        self._accepting = asyncio.create_task(acceptor.run())
        self._warming = asyncio.create_task(self._warm_up())

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End the service after a signal."""
        self._service.end()
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more connections, and shut down after the warm-up, whose collections must stay open."""
        self._accepting.cancel()
        await asyncio.wait([self._accepting, self._warming])
        self._listener.close()
        await super().shutdown(sockets)

    async def _warm_up(self) -> None:
        try:
            await asyncio.to_thread(self._service.warm_up)
            if not self.should_exit:
                self._ready()
        except BaseException:
            self.should_exit = True
            raise

    def _protocol(self) -> asyncio.Protocol:
        make: Callable[..., asyncio.Protocol] = self.config.http_protocol_class
        return make(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)


def _handler(call: Callable[[], None]) -> Callable[[int, FrameType | None], None]:
    return lambda _number, _frame: call()


def _nothing() -> None:
    """Ignore a signal."""
