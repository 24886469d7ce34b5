"""What every request passes before a route sees it: the host that it names, the size of its body, the time of its arrival."""

import asyncio
from collections.abc import Collection as Container
from time import monotonic, perf_counter

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trilens.serve.http.failures import failure
from trilens.serve.http.limits import Limits
from trilens.serve.http.metrics import Metrics

PREFIX = "/api/v1"
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Guard:
    """`hosts` are the names under which the service may be called; none: any.

    A service without keys on the loopback address must not answer to other names: a page of a stranger could have its own
    name point to that address, and read everything through the visitor's browser.
    """

    def __init__(self, app: ASGIApp, limits: Limits, hosts: Container[str]) -> None:
        self._app, self._limits, self._hosts = app, limits, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if self._hosts and name not in self._hosts:
            await failure(403, f"the service was called {host!r}; expected one of {', '.join(sorted(self._hosts))}")(
                scope, receive, send
            )
            return
        length = headers.get("content-length", "")
        if length.isascii() and length.isdigit() and int(length[:20]) > self._limits.body_bytes:
            await failure(413, self._too_large())(scope, receive, send)
            return
        await self._app(scope, self._bounded(receive), send)

    def _bounded(self, receive: Receive) -> Receive:
        seen, complete, deadline = 0, False, monotonic() + self._limits.seconds

        async def bounded() -> Message:
            nonlocal seen, complete
            if complete:  # what follows is whether the client is still there
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), max(0.0, deadline - monotonic()))
            except TimeoutError as error:
                raise HTTPException(408, f"the body took longer than {self._limits.seconds:g} s to arrive") from error
            seen += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if seen > self._limits.body_bytes:
                raise HTTPException(413, self._too_large())
            return message

        return bounded

    def _too_large(self) -> str:
        return f"the body is larger than {self._limits.body_bytes:,} bytes; send less at once"


class Measured:
    """Counts requests and their time by route, and adds the headers that every answer has."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and look at the answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = perf_counter(), 500

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            # Versions of FastAPI differ in whether a route knows the prefix of the router that it is part of.
            route = getattr(scope.get("route"), "path_format", "other").removeprefix(PREFIX)
            method = scope["method"] if route != "other" else "any"
            self._metrics.requests.add(method, route, str(status))
            self._metrics.seconds.observe(perf_counter() - started, method, route)
