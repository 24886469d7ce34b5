"""Runs the application with uvicorn until a signal, with graceful shutdown."""

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


def address(listener: socket.socket) -> str:
    """The URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{shown}:{port}/"


def run(app: FastAPI, listener: socket.socket, grace_seconds: float, ready: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT, then accept no more requests and let running ones finish within `grace_seconds`."""
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
    # uvicorn raises the signal again after the shutdown; it must not interrupt the clean-up of the caller.
    before = {number: signal.signal(number, _ignore) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        server.run(sockets=[listener])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Server(uvicorn.Server):
    """A server that calls `ready` when it accepts requests."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start up, then call `ready`."""
        await super().startup(sockets)
        if self.started:
            self._ready()


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """A signal handler that does nothing."""
