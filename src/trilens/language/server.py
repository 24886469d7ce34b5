"""One request to an address with OpenAI's chat completions API, which ends in time whatever the service does."""

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from threading import Event, Timer
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import (
    BaseHandler,
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    Request,
    build_opener,
    getproxies,
    proxy_bypass,
)

from trilens.errors import ServiceBusy, ServiceFailed

KEY_NAMES = ("TRILENS_LLM_KEY", "TRILENS_HYDE_KEY", "OPENAI_API_KEY")
ENDPOINT = "/chat/completions"
MOST_BYTES = 1 << 20
BUSY = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
PORTS = {"http": 80, "https": 443}


def complete(address: str, model: str, prompt: str, max_tokens: int, timeout: float) -> str:
    """The text that the model writes. `timeout` limits the whole request, not each of its parts."""
    body = {
        "model": model,
        "messages": [{"role": "user", "content": prompt}],
        "temperature": 0,
        "max_tokens": max_tokens,
    }
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if key := next((os.environ[name] for name in KEY_NAMES if os.environ.get(name)), None):
        headers["Authorization"] = f"Bearer {key}"
    request = Request(address, json.dumps(body).encode(), headers, method="POST")
    is_cut = Event()
    try:
        with (
            _cut_after(timeout, is_cut) as handlers,
            build_opener(_NoRedirect, *handlers).open(request, timeout=timeout) as response,
        ):
            content = response.read(MOST_BYTES)
    except HTTPError as error:
        raise _refused(address, error) from error
    except (URLError, HTTPException, OSError) as error:
        reason = getattr(error, "reason", None) or error
        if is_cut.is_set() or isinstance(reason, TimeoutError):
            raise _late(address, timeout) from error
        raise ServiceBusy(f"{address} cannot be reached ({reason}); check the address, or try again later") from error
    if is_cut.is_set():
        raise _late(address, timeout)
    return _read(address, content)


def require_reachable(address: str, timeout: float) -> None:
    """Raise unless something listens at the address; behind a proxy, only a request can tell."""
    parts = urlsplit(address)
    if parts.scheme in getproxies() and not proxy_bypass(parts.netloc):
        return
    try:
        socket.create_connection((parts.hostname, parts.port or PORTS[parts.scheme]), timeout).close()
    except (OSError, ValueError) as error:
        raise ServiceFailed(f"{address} cannot be reached ({error}); check the address, and that the service runs") from error


class _NoRedirect(HTTPRedirectHandler):
    """Follows no redirect, which could send the API key elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        """Refuse."""


@contextmanager
def _cut_after(timeout: float, is_cut: Event) -> Iterator[list[BaseHandler]]:
    """Handlers of connections that are cut `timeout` seconds after they were opened, even if bytes still arrive."""
    timers: list[Timer] = []

    def cut(connection: socket.socket) -> None:
        is_cut.set()
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)

    def watched(kind: Any) -> Any:
        class Connection(kind):  # type: ignore[misc]
            def connect(self) -> None:
                super().connect()
                timers.append(Timer(timeout, cut, [self.sock]))
                timers[-1].daemon = True
                timers[-1].start()

        return Connection

    class Plain(HTTPHandler):
        def http_open(self, req: Request) -> Any:
            return self.do_open(watched(HTTPConnection), req)

    class Encrypted(HTTPSHandler):
        def https_open(self, req: Request) -> Any:
            return self.do_open(watched(HTTPSConnection), req)

    try:
        yield [Plain(), Encrypted()]
    finally:
        for timer in timers:
            timer.cancel()


def _late(address: str, timeout: float) -> ServiceBusy:
    return ServiceBusy(f"{address} did not answer within {timeout:g} s; try again later, or allow more time")


def _refused(address: str, error: HTTPError) -> ServiceFailed:
    """The error of an answer with another status than 200."""
    message = f"{address} answered {error.code} {error.reason}"
    if error.code in BUSY:
        wait = _retry_after(error.headers.get("Retry-After"))
        asked = "" if wait is None else f" and asks to wait {wait:.0f} s"
        return ServiceBusy(f"{message}{asked}; try again later", wait)
    hint = f"; put the key into {KEY_NAMES[0]}" if error.code in (401, 403) else ""
    return ServiceFailed(f"{message}; expected a chat completion{hint}")


def _retry_after(value: str | None) -> float | None:
    """The seconds of a Retry-After header, which is a number or a date; None if there is none."""
    if not value:
        return None
    with suppress(ValueError):
        return max(0.0, float(value))
    with suppress(ValueError):
        date = parsedate_to_datetime(value)
        return max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
    return None


def _read(address: str, content: bytes) -> str:
    try:
        text = json.loads(content)["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        shown = content[:80].decode("utf-8", "replace")
        raise ServiceFailed(f"{address} answered {shown!r}; expected a chat completion as OpenAI gives it") from error
    return text.strip() if isinstance(text, str) else ""
