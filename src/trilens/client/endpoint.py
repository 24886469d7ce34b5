"""`Endpoint`: where the service is, what every request to it has, and what its responses mean; no input or output."""

import ssl
from dataclasses import dataclass
from typing import Any

import httpx

from trilens import errors
from trilens.client.calls import PREFIX, Call, Result
from trilens.errors import ERROR_HEADER, BadInput, BadOptions, CollectionLocked, ServiceFailed, Stopped, TrilensError

# The service names the class of an error of trilens in a header. These are for responses without it.
KINDS: dict[int, type[TrilensError]] = {
    400: BadInput,
    404: BadInput,
    409: CollectionLocked,
    413: BadInput,
    422: BadOptions,
    504: Stopped,
}
OVERLOADED = (429, 503)
LONGEST_PAUSE = 30.0  # a service that wants a longer one is reported at once


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A service, and how it is called.

    address  such as http://127.0.0.1:8000
    key      API key, if the service needs one
    timeout  seconds until the service has to answer
    retries  how often a request that may be repeated is sent again if the service answers 503 or 429 and says when to retry
    verify   TLS: an SSL context for certificates of an own authority, or False to accept any
    """

    address: str
    key: str | None
    timeout: float
    retries: int
    verify: ssl.SSLContext | bool

    def __post_init__(self) -> None:
        if not self.address.startswith(("http://", "https://")):
            raise BadInput(f"address is {self.address!r}; expected one such as http://127.0.0.1:8000")
        if self.key is not None and not (self.key.isascii() and self.key.isprintable()):
            raise BadInput("key has characters that no header can hold; expected ASCII characters")

    def settings(self) -> dict[str, Any]:
        """The arguments of the clients of httpx."""
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        base = self.address.rstrip("/") + PREFIX
        return {"base_url": base, "headers": headers, "timeout": self.timeout, "verify": self.verify}

    def arguments(self, call: Call[Result]) -> dict[str, Any]:
        """The arguments of a request of httpx."""
        content = call.content()
        headers = {} if content is None else {"Content-Type": "application/json"}
        query = httpx.QueryParams(list(call.query))
        return {"method": call.method, "url": call.path, "params": query, "content": content, "headers": headers}

    def pause(self, call: Call[Result], response: httpx.Response, sent: int) -> float | None:
        """The seconds after which a call that was sent so many times is sent again; None if it is not."""
        after = response.headers.get("Retry-After", "")
        if response.status_code not in OVERLOADED or not after.isascii() or not after.isdigit():
            return None
        return float(after) if call.repeatable and sent <= self.retries and float(after) <= LONGEST_PAUSE else None

    def result(self, call: Call[Result], response: httpx.Response) -> Result:
        """The result of a call; raises what the service refused."""
        if not response.is_success:
            raise self._failure(response)
        try:
            return call.read(response.json())
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise ServiceFailed(f"{response.url} did not answer as trilens does; check the address and the version") from error

    def unreachable(self, error: httpx.HTTPError) -> ServiceFailed:
        """The error to raise if there is no response."""
        if isinstance(error, httpx.TimeoutException):
            return ServiceFailed(f"{self.address} did not answer within {self.timeout:g} s; retry later, or raise timeout")
        return ServiceFailed(f"{self.address} cannot be reached ({error}); start `trilens serve` or correct the address")

    def _failure(self, response: httpx.Response) -> TrilensError:
        status = response.status_code
        try:
            message = str(response.json()["error"])
        except (ValueError, KeyError, TypeError):
            return ServiceFailed(f"{response.url} answered {status} without a message of trilens; check the address")
        named = getattr(errors, response.headers.get(ERROR_HEADER, ""), None)
        if isinstance(named, type) and issubclass(named, TrilensError):
            return named(message)
        return KINDS.get(status, ServiceFailed)(message)
