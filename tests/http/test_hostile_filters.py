"""Filters that take minutes: other searches go on meanwhile, and the work ends with the request or with its client."""

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from trilens import Collection, Document
from trilens.store.filters import MOST_CONDITIONS

from .running import Running, running

SEARCH = "/collections/large/search"
# Every condition reads all elements of all lists and holds for none.
MINUTES = {"$or": [{"list": {"$gt": number}} for number in range(1, MOST_CONDITIONS)]}
CLIENTS = 3


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "large.trilens"
    with Collection.create(path, lenses=["bm25"]) as collection:
        metadata = {"list": [1] * 1_500}
        collection.add(Document(f"d{number}", "word", metadata=metadata | {"n": number}) for number in range(3_000))
    return path


@contextmanager
def asking(service: Running, body: dict[str, Any]) -> Iterator[socket.socket]:
    """A search whose client leaves at the end of the block."""
    host, port = service.address.removeprefix("http://").rstrip("/").split(":")
    content = json.dumps(body).encode()
    head = f"POST /api/v1{SEARCH} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        yield connection


def search(service: Running, **options: Any) -> httpx.Response:
    return service.call("POST", SEARCH, json={"queries": ["word"], "k": 3, **options})


def test_others_are_answered_while_filters_take_their_time(large: Path) -> None:
    with running(large, "--threads", CLIENTS + 1, "--max-seconds", 5) as service, ThreadPoolExecutor(CLIENTS) as pool:
        search(service)
        hostile = [pool.submit(search, service, filter={"$and": [MINUTES, {"x": {"$ne": n}}]}) for n in range(CLIENTS)]
        answered = 0
        while not any(future.done() for future in hostile):
            for options in ({}, {"filter": {"n": {"$lt": answered % 100}}}):
                answer = search(service, **options)
                assert answer.status_code == 200, answer.text
                answered += 1
        assert answered
        for future in hostile:
            answer = future.result()
            assert answer.status_code == 504 and answer.headers["Retry-After"]
            assert list(answer.json()) == ["error"] and "\n" not in answer.json()["error"]


def test_threads_are_free_after_their_requests_timed_out(large: Path) -> None:
    with running(large, "--threads", 1, "--max-seconds", 2) as service:
        for number in range(2):
            assert search(service, filter={"$and": [MINUTES, {"x": {"$ne": number}}]}).status_code == 504
            assert len(search(service).json()["answers"][0]["hits"]) == 3


def test_work_stops_when_its_client_has_left(large: Path) -> None:
    """The only thread answers the next client although the request had ten minutes; and what was queued never starts."""
    with running(large, "--threads", 1, "--max-seconds", 600) as service:
        with asking(service, {"queries": ["word"], "filter": MINUTES}):
            while "large" not in started(service):
                pass
            with asking(service, {"queries": ["word"], "filter": {"$not": MINUTES}}):
                pass
        with service.client() as client:
            answer = client.post(SEARCH, json={"queries": ["word"], "k": 3}, timeout=30)
        assert len(answer.json()["answers"][0]["hits"]) == 3
        assert 'status="499"' in service.call("GET", "/metrics").text


def started(service: Running) -> list[str]:
    """The collections that have begun a search."""
    lines = service.call("GET", "/metrics").text.splitlines()
    return [
        line.split('"')[1] for line in lines if line.startswith("trilens_batch_queries_count") and not line.endswith(" 0.0")
    ]


def test_more_conditions_than_documented_are_refused_at_once(large: Path) -> None:
    with running(large) as service:
        answer = search(service, filter={"$or": [{"n": {"$gt": number}} for number in range(5_900)]})
        assert answer.status_code == 400
        assert answer.json()["error"].startswith(f"filter has more than {MOST_CONDITIONS} conditions; expected fewer")
        assert search(service, filter={"$or": [{"n": number} for number in range(5_900)]}).status_code == 200
