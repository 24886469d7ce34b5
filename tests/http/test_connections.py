"""Slow, idle and excess connections, over real sockets."""

import re
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from trilens.errors import BadInput
from trilens.http.addresses import Proxies, client_name
from trilens.http.connections import Connections
from trilens.http.limits import Limits

from .running import Running, running

HEAD = b"GET /api/v1/collections HTTP/1.1\r\nHost: localhost\r\n"
SHORT = ("--max-head", 1, "--max-idle", 1, "--max-send", 1)
PATIENCE = 30


@pytest.fixture(scope="module")
def hasty(plain: Path) -> Iterator[Running]:
    """Cuts slow clients after a second."""
    with running(plain, *SHORT) as service:
        yield service


@pytest.fixture(scope="module")
def roomy(plain: Path) -> Iterator[Running]:
    """Gives slow clients the default time, and has room for 50 connections of an address."""
    with running(plain, "--max-connections", 200, "--max-client-connections", 50) as service:
        yield service


def connect(service: Running, client: str = "127.0.0.1") -> socket.socket:
    address = urlsplit(service.address)
    return socket.create_connection((address.hostname, address.port or 0), timeout=PATIENCE, source_address=(client, 0))


def read_all(connection: socket.socket) -> bytes:
    """What arrives until the service closes the connection."""
    received = b""
    try:
        while part := connection.recv(65536):
            received += part
    except ConnectionResetError:
        pass
    return received


def cut(service: Running, reason: str) -> float:
    """How many connections were cut for a reason."""
    counted = re.search(rf'trilens_connections_cut_total{{reason="{reason}"}} (\S+)', service.call("GET", "/metrics").text)
    return float(counted[1]) if counted else 0.0


def test_a_head_that_never_ends_is_answered_408(hasty: Running) -> None:
    with connect(hasty) as dripping, connect(hasty) as silent:
        dripping.sendall(HEAD)
        answer = read_all(dripping)
        assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
        assert b"took longer than 1 s" in answer and b"x-content-type-options: nosniff" in answer
        assert read_all(silent) == b""
    assert cut(hasty, "slow head") >= 1
    assert cut(hasty, "idle") >= 1


def test_each_byte_does_not_buy_more_time(hasty: Running) -> None:
    with connect(hasty) as dripping:
        dripping.settimeout(0.1)
        began, answer = time.monotonic(), b""
        while not answer and time.monotonic() < began + PATIENCE:
            dripping.sendall(b"G" if not answer else b"")
            try:
                answer = dripping.recv(100)
            except TimeoutError:
                continue
        assert answer.startswith((b"HTTP/1.1 408", b"HTTP/1.1 400"))


def test_a_connection_without_a_next_request_is_closed_and_a_slow_next_one_is_cut(hasty: Running) -> None:
    with connect(hasty) as idle, connect(hasty) as slow:
        for connection in (idle, slow):
            connection.sendall(HEAD + b"\r\n")
            assert connection.recv(15) == b"HTTP/1.1 200 OK"
        slow.sendall(HEAD)
        assert b"HTTP/1.1 408" not in read_all(idle)
        assert b"HTTP/1.1 408" in read_all(slow)


def test_a_pipeline_whose_client_leaves_is_no_error(roomy: Running) -> None:
    """Some responses wait until the client takes them. The fixture looks for tracebacks when the service ends."""
    with connect(roomy) as greedy:
        greedy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        greedy.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 300)
        time.sleep(0.5)  # until the buffers are full
        greedy.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing resets the connection
    assert roomy.call("GET", "/health").status_code == 200


def test_a_client_that_does_not_take_its_answer_is_cut(hasty: Running) -> None:
    """Pipelined requests fill the buffers of the sockets, and no answer is read."""
    before = cut(hasty, "slow reader")
    with connect(hasty) as greedy:
        greedy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        greedy.setblocking(False)
        deadline = time.monotonic() + PATIENCE
        request = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100
        while cut(hasty, "slow reader") == before and time.monotonic() < deadline:
            try:
                greedy.send(request)
            except BlockingIOError:
                time.sleep(0.05)
            except OSError:
                break
        assert cut(hasty, "slow reader") > before


def test_a_client_that_takes_its_answer_slowly_but_steadily_gets_it(hasty: Running) -> None:
    with connect(hasty) as steady:
        steady.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        steady.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        received = b""
        while part := steady.recv(2048):
            received += part
            time.sleep(0.02)
    head, _, body = received.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head)
    assert length and int(length[1]) == len(body)


@pytest.mark.parametrize("slow", ["127.0.0.1", "127.0.0.2"])
@pytest.mark.parametrize("sent", [b"", HEAD])
def test_three_hundred_connections_that_wait_shut_nobody_out(roomy: Running, slow: str, sent: bytes) -> None:
    """Neither others nor honest requests of the same address, although no connection ends by itself in this time."""
    before = cut(roomy, "crowded")
    with ExitStack() as opened:
        for _ in range(300):
            opened.enter_context(connect(roomy, slow)).sendall(sent)
        with connect(roomy) as honest:
            honest.sendall(HEAD + b"Connection: close\r\n\r\n")
            assert read_all(honest).startswith(b"HTTP/1.1 200 OK")
        assert cut(roomy, "crowded") >= before + 250


def test_requests_in_work_are_not_cut_and_the_excess_is_refused_at_once(plain: Path) -> None:
    """Bodies that do not end keep connections busy; only their address is short of connections."""
    body = b"POST /api/v1/encode HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n"
    with running(plain, "--max-client-connections", 3) as service, ExitStack() as opened:
        for _ in range(3):
            busy = opened.enter_context(connect(service, "127.0.0.2"))
            busy.sendall(body)
            assert busy.recv(100).startswith(b"HTTP/1.1 100 Continue")
        with connect(service, "127.0.0.2") as excess:
            answer = read_all(excess)
        assert answer.startswith(b"HTTP/1.1 503 Service Unavailable")
        assert b"retry-after: 2" in answer and b"too many connections" in answer
        with pytest.raises(httpx.HTTPStatusError, match="503"):  # also for a client that sends its request first
            transport = httpx.HTTPTransport(local_address="127.0.0.2")
            httpx.Client(transport=transport).get(service.address).raise_for_status()
        with connect(service, "127.0.0.3") as other:
            other.sendall(HEAD + b"Connection: close\r\n\r\n")
            assert read_all(other).startswith(b"HTTP/1.1 200 OK")


def test_a_client_that_leaves_while_its_request_is_in_work_is_not_counted_as_idle(hasty: Running) -> None:
    body = b"POST /api/v1/encode HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n"
    before = cut(hasty, "idle")
    with connect(hasty) as leaving:
        leaving.sendall(body)
        assert leaving.recv(100).startswith(b"HTTP/1.1 100 Continue")
    with connect(hasty) as later:  # outlives the timers of the one that left
        later.sendall(HEAD)
        assert b"HTTP/1.1 408" in read_all(later)
    assert cut(hasty, "idle") == before


class Open:
    """A connection that notes why it was cut."""

    def __init__(self) -> None:
        self.reason = ""

    def cut(self, reason: str) -> None:
        self.reason = reason


def test_who_waited_longest_gives_way_and_who_works_stays() -> None:
    connections = Connections(Limits(connections=5, client_connections=3), Proxies(["10.0.0.1"]))
    first, second, third, fourth, fifth = (Open() for _ in range(5))
    assert all(connections.admit(one, "192.0.2.1") for one in (first, second, third))
    connections.waits(first, False)
    assert connections.admit(fourth, "192.0.2.1")
    assert [one.reason for one in (first, second, third)] == ["", "crowded", ""]
    for one in (third, fourth):
        connections.waits(one, False)
    assert not connections.admit(fifth, "192.0.2.1")
    connections.forget(first)
    assert connections.admit(fifth, "192.0.2.1")
    assert len(connections) == 3


def test_the_connections_of_a_proxy_are_limited_in_total_only() -> None:
    connections = Connections(Limits(connections=5, client_connections=1), Proxies(["10.0.0.0/8"]))
    several = [Open() for _ in range(5)]
    assert all(connections.admit(one, "10.1.2.3") for one in several)
    assert connections.admit(Open(), "192.0.2.1")
    assert [one.reason for one in several] == ["crowded", "", "", "", ""]
    for one in several[1:]:
        connections.waits(one, False)
        connections.waits(one, True)
        connections.forget(one)
    assert len(connections) == 1


def test_an_ipv6_client_is_its_network() -> None:
    assert client_name("2001:db8::1") == client_name("2001:db8::ffff") != client_name("2001:db8:0:1::1")
    assert client_name("::ffff:192.0.2.1") == client_name("192.0.2.1") == "192.0.2.1"
    with pytest.raises(BadInput, match="--proxy is 'nginx'"):
        Proxies(["nginx"])
