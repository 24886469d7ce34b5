"""What is sent again, to a service that refuses the first requests."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from trilens import Document
from trilens.client import Client
from trilens.errors import ServiceFailed
from trilens.store.changes import Changes

ANSWERS = {"POST": {"answers": [{"hits": []}]}, "PUT": asdict(Changes())}


@contextmanager
def refusing(times: int, status: int = 503, after: str | None = "0") -> Iterator[tuple[str, list[str]]]:
    """The address of a service that refuses so many requests, and the methods of those that it received."""
    received: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            received.append(self.command)
            refused = len(received) <= times
            body = json.dumps({"error": "the service is overloaded"} if refused else ANSWERS[self.command]).encode()
            self.send_response(status if refused else 200)
            if refused and after is not None:
                self.send_header("Retry-After", after)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_PUT = do_DELETE = answer  # noqa: N815  names of the base class

        def log_message(self, format: str, *values: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", received
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("status", [503, 429])
def test_requests_that_may_be_repeated_are(status: int) -> None:
    with refusing(2, status) as (address, received), Client(address) as client:
        assert client.collection("c").search(["x"]) == [[]]
        assert received == ["POST"] * 3
    with refusing(2, status) as (address, received), Client(address) as client:
        client.collection("c").upsert([Document("a", "b")])
        assert received == ["PUT"] * 3


@pytest.mark.parametrize(("status", "after"), [(503, None), (503, "3600"), (503, "soon"), (500, "0"), (504, "0")])
def test_others_are_reported_at_once(status: int, after: str | None) -> None:
    with refusing(9, status, after) as (address, received), Client(address) as client:
        with pytest.raises(Exception, match="the service is overloaded"):
            client.collection("c").search(["x"])
        assert received == ["POST"]


def test_what_must_not_be_repeated_is_sent_once() -> None:
    with refusing(9) as (address, received), Client(address) as client:
        with pytest.raises(ServiceFailed):
            client.collection("c").add([Document("a", "b")])
        with pytest.raises(ServiceFailed):
            client.collection("c").delete(["a"])
        assert received == ["PUT", "DELETE"]


def test_retries_end() -> None:
    with refusing(9) as (address, received), Client(address, retries=1) as client:
        with pytest.raises(ServiceFailed):
            client.collection("c").search(["x"])
        assert len(received) == 2


def test_a_service_that_is_not_trilens_is_named() -> None:
    elsewhere = "/api/v1/collections/c/explain did not answer as trilens does"
    with refusing(0) as (address, _), Client(address) as client, pytest.raises(ServiceFailed, match=elsewhere):
        client.collection("c").explain("x", "a")
