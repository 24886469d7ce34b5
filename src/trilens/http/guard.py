"""ASGI middleware: Host check, body limits, response headers and request metrics."""

import asyncio
from collections.abc import Collection as Container
from time import monotonic, perf_counter

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trilens.http.access_log import AccessLog
from trilens.http.callers import caller_of
from trilens.http.failures import PREFIX, failure
from trilens.http.keys import ApiKeys
from trilens.http.limits import Limits
from trilens.http.metrics import Metrics

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
    """Refuses requests with another Host header than `hosts` (empty: any), and bodies that are too large or too slow.

    The Host check protects a service without keys on a loopback address from DNS rebinding: a malicious site could resolve
    its own domain to 127.0.0.1 and read every document through the visitor's browser.
    """

    def __init__(self, app: ASGIApp, limits: Limits, hosts: Container[str]) -> None:
        self._app, self._limits, self._hosts = app, limits, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if self._hosts and name not in self._hosts:
            refusal = f"the Host header is {host!r}; expected one of {', '.join(sorted(self._hosts))}"
            await failure(scope["path"], 403, refusal)(scope, receive, send)
            return
        length = headers.get("content-length", "")
        if length.isascii() and length.isdigit() and int(length[:20]) > self._limits.body_bytes:
            await failure(scope["path"], 413, self._too_large())(scope, receive, send)
            return
        await self._app(scope, self._bounded(receive), send)

    def _bounded(self, receive: Receive) -> Receive:
        received, complete, deadline = 0, False, monotonic() + self._limits.seconds

        async def bounded() -> Message:
            nonlocal received, complete
            if complete:  # later messages only report a disconnect
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), max(0.0, deadline - monotonic()))
            except TimeoutError as error:
                late = f"the body took longer than {self._limits.seconds:g} s to arrive"
                raise HTTPException(408, late, {"Connection": "close"}) from error
            received += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if received > self._limits.body_bytes:
                raise HTTPException(413, self._too_large())
            return message

        return bounded

    def _too_large(self) -> str:
        return f"the body is larger than {self._limits.body_bytes:,} bytes; split the request"


class Measured:
    """Records requests and latencies by route, writes the access log, and adds the security headers to each response."""

    def __init__(self, app: ASGIApp, metrics: Metrics, keys: ApiKeys, log: AccessLog | None) -> None:
        self._app, self._metrics, self._keys, self._log = app, metrics, keys, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request and observe its response."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status, sent = perf_counter(), 500, 0

        async def observed(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            sent += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, observed)
        finally:
            # Whether `path_format` includes the prefix of the router depends on the version of FastAPI.
            route = getattr(scope.get("route"), "path_format", "other").removeprefix(PREFIX)
            method = scope["method"] if route != "other" else "any"
            seconds = perf_counter() - started
            self._metrics.requests.labels(method, route, str(status)).inc()
            self._metrics.seconds.labels(method, route).observe(seconds)
            if self._log:
                answer = {"status": status, "ms": round(1000 * seconds, 3), "bytes": sent}
                self._log.write(scope, caller_of(scope, self._keys), route, answer)
