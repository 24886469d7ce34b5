"""Runs the application on a socket until a signal ends it; running requests are finished first."""

import ipaddress
import signal
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn
from fastapi import FastAPI

from trilens.errors import BadInput

BACKLOG = 512


def is_loopback(host: str) -> bool:
    """Whether nobody outside this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 takes a free one."""
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
    """Whether one could listen there."""
    try:
        listen(host, port).close()
    except BadInput:
        return False
    return True


def address(listener: socket.socket) -> str:
    """The address for a browser."""
    host, port = listener.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{shown}:{port}/"


def run(app: FastAPI, listener: socket.socket, grace_seconds: float, ready: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT; then take no more requests, and give those that run `grace_seconds` to finish."""
    config = uvicorn.Config(
        app,
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=max(1, round(grace_seconds)),
        backlog=BACKLOG,
    )
    server = _Server(config, ready)
    # uvicorn raises the signal again when it has finished; by then there is nothing left to end.
    before = {number: signal.signal(number, _done) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        server.run(sockets=[listener])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Server(uvicorn.Server):
    """Says when it can be called."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn does it, and tell."""
        await super().startup(sockets)
        if self.started:
            self._ready()


def _done(_number: int, _frame: FrameType | None) -> None:
    """Nothing."""
