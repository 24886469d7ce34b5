"""Rate limits: a token bucket per key, or per client address without one."""

import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trilens.http.callers import caller_of
from trilens.http.failures import OPENAI_PREFIX, PREFIX, failure
from trilens.http.keys import ApiKeys

MOST_BUCKETS = 10_000
LIMITED = (f"{PREFIX}/", f"{OPENAI_PREFIX}/")
UNLIMITED = frozenset({f"{PREFIX}/health", f"{PREFIX}/ready"})


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class Buckets:
    """A bucket of `burst` tokens per client, refilled by `rate` tokens per second. A request takes one token.

    The buckets that were used last are kept; a forgotten bucket is full again.
    """

    def __init__(self, rate: float, burst: int, most: int = MOST_BUCKETS, now: Callable[[], float] = monotonic) -> None:
        self.rate, self.burst, self._most, self._now = rate, burst, most, now
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, client: str) -> tuple[int, float]:
        """Take a token; return how many are left, and the seconds until there is one if there was none."""
        now = self._now()
        bucket = self._buckets.setdefault(client, _Bucket(self.burst, now))
        self._buckets.move_to_end(client)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        bucket.tokens = min(self.burst, bucket.tokens + (now - bucket.at) * self.rate)
        bucket.at = now
        if bucket.tokens < 1:
            return 0, (1 - bucket.tokens) / self.rate
        bucket.tokens -= 1
        return int(bucket.tokens), 0.0


class Rated:
    """Middleware that answers 429 to clients who send API requests faster than permitted."""

    def __init__(self, app: ASGIApp, buckets: Buckets, keys: ApiKeys) -> None:
        self._app, self._buckets, self._keys = app, buckets, keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request, or refuse it."""
        if scope["type"] != "http" or not scope["path"].startswith(LIMITED) or scope["path"] in UNLIMITED:
            await self._app(scope, receive, send)
            return
        left, wait = self._buckets.take(caller_of(scope, self._keys).identity)

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["X-RateLimit-Limit"] = str(self._buckets.burst)
                headers["X-RateLimit-Remaining"] = str(left)
            await send(message)

        if wait:
            often = f"more than {self._buckets.rate:g} requests per second; retry in {wait:.1f} s"
            await failure(scope["path"], 429, often, {"Retry-After": str(math.ceil(wait))})(scope, receive, counted)
        else:
            await self._app(scope, receive, counted)
