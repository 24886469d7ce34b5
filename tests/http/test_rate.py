"""Rate limits: buckets by hand, and a service that counts keys and forwarded addresses."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from trilens.http.rate import Buckets

from .running import READ_KEY, WRITE_KEY, Running, running


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_a_bucket_empties_and_fills_again() -> None:
    clock = Clock()
    buckets = Buckets(rate=2.0, burst=3, now=clock)
    assert [buckets.take("a") for _ in range(4)] == [(2, 0.0), (1, 0.0), (0, 0.0), (0, 0.5)]
    assert buckets.take("b") == (2, 0.0)
    clock.seconds = 0.25
    assert buckets.take("a") == (0, 0.25)
    clock.seconds = 1.0
    assert buckets.take("a") == (1, 0.0)
    clock.seconds = 1000.0
    assert buckets.take("a") == (2, 0.0)  # never more than the burst


def test_only_so_many_buckets_are_kept() -> None:
    buckets = Buckets(rate=0.001, burst=1, most=100, now=Clock())
    for number in range(1000):
        buckets.take(str(number))
    assert len(buckets) == 100
    assert buckets.take("999")[1] > 0
    assert buckets.take("0")[1] == 0


@pytest.fixture(scope="module")
def rated(plain: Path, keys: Path) -> Iterator[Running]:
    """Three requests at once and then nearly none, behind a proxy that connects from 127.0.0.9."""
    with running(plain, "--keys", keys, "--rate", 0.001, "--burst", 3, "--proxy", "127.0.0.9") as service:
        yield service


def statuses(service: Running, key: str | None, times: int, via: str = "127.0.0.1", forwarded: str = "") -> list[int]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    headers |= {"X-Forwarded-For": forwarded} if forwarded else {}
    with httpx.Client(transport=httpx.HTTPTransport(local_address=via), headers=headers, timeout=60) as client:
        return [client.get(f"{service.address}api/v1/collections").status_code for _ in range(times)]


def test_each_key_has_its_own_rate_and_strangers_share_that_of_their_address(rated: Running) -> None:
    assert statuses(rated, READ_KEY, 4) == [200, 200, 200, 429]
    assert statuses(rated, WRITE_KEY, 4) == [200, 200, 200, 429]
    assert statuses(rated, "an-invented-key-0123", 2) == [401, 401]
    assert statuses(rated, "another-invented-key", 2) == [401, 429]
    assert statuses(rated, None, 1, via="127.0.0.2") == [401]
    refused = rated.call("GET", "/collections", READ_KEY)
    assert refused.status_code == 429
    assert int(refused.headers["Retry-After"]) > 1
    assert (refused.headers["X-RateLimit-Limit"], refused.headers["X-RateLimit-Remaining"]) == ("3", "0")
    assert "more than 0.001 requests per second" in refused.json()["error"]
    assert refused.headers["X-Content-Type-Options"] == "nosniff"
    refused = httpx.get(rated.address + "v1/models", headers={"Authorization": f"Bearer {READ_KEY}"})
    assert (refused.status_code, refused.json()["error"]["type"]) == (429, "rate_limit_error")


def test_probes_and_pages_are_not_limited(rated: Running) -> None:
    for path in ("api/v1/health", "api/v1/ready", "web/app.js"):
        assert {httpx.get(rated.address + path).status_code for _ in range(5)} == {200}


def test_only_the_proxy_may_name_another_client(rated: Running) -> None:
    assert statuses(rated, None, 4, via="127.0.0.3", forwarded="192.0.2.1")[-1] == 429
    assert statuses(rated, None, 1, via="127.0.0.3", forwarded="192.0.2.2") == [429]
    assert statuses(rated, None, 4, via="127.0.0.9", forwarded="192.0.2.1") == [401, 401, 401, 429]
    assert statuses(rated, None, 1, via="127.0.0.9", forwarded="192.0.2.2") == [401]
    assert statuses(rated, None, 1, via="127.0.0.9", forwarded="192.0.2.9, 192.0.2.1") == [429]
