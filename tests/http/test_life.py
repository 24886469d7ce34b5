"""The service among others: many clients at once, commits by other processes, signals."""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from ..cli.conftest import Trilens
from .running import TEXTS, WRITE_KEY, Running, environment, make_collection, running

QUERIES = [
    f"{word} {other}"
    for word in ("remove", "create", "wait for", "difference of")
    for other in ("a folder", "two dates", "threads", "numbers")
]

LONG = [" ".join(["several words about directories and their trees"] * 40)] * 100


def ask(service: Running, query: str, **more: Any) -> list[tuple[str, float]]:
    answer = service.call("POST", "/collections/small/search", json={"queries": [query], **more}).json()
    return [(hit["doc_id"], hit["score"]) for hit in answer["answers"][0]["hits"]]


@pytest.mark.parametrize("lens", ["bm25", "dense", "sparse", "multi"])
def test_what_is_searched_together_is_found_as_if_alone(service: Running, lens: str) -> None:
    alone = [ask(service, query, lenses=[lens]) for query in QUERIES]
    with ThreadPoolExecutor(len(QUERIES)) as pool:
        together = list(pool.map(lambda query: ask(service, query, lenses=[lens]), QUERIES))
    for one, other in zip(alone, together, strict=True):
        assert [doc_id for doc_id, _ in one] == [doc_id for doc_id, _ in other]
        assert [score for _, score in one] == pytest.approx([score for _, score in other], abs=1e-5)


def test_queries_of_several_clients_form_batches(service: Running) -> None:
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda query: ask(service, query), QUERIES * 2))
    lines = service.call("GET", "/metrics").text.splitlines()
    batches = float(next(line.split()[1] for line in lines if line.startswith("trilens_batch_queries_count")))
    queries = float(next(line.split()[1] for line in lines if line.startswith("trilens_batch_queries_sum")))
    assert queries > batches


WRITES = """
import sys
from trilens import Collection, Document
collection = Collection.open(sys.argv[1])
collection.add([Document("z", "a zebra")])
collection.delete(["sqrt"])
print("writing", flush=True)
sys.stdin.read()
collection.commit()
"""


def test_what_another_process_writes(tmp_path: Path) -> None:
    """While it writes we cannot, but search; its commit is seen soon."""
    path = make_collection(tmp_path / "small.trilens", ("bm25",))
    put: dict[str, Any] = {"json": {"text": "x"}}
    with running(path, "--write", TRILENS_WRITE_KEYS=WRITE_KEY) as service:
        arguments = [sys.executable, "-c", WRITES, str(path)]
        with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment()) as other:
            assert other.stdin and other.stdout
            assert other.stdout.readline() == "writing\n"
            answer = service.call("PUT", "/collections/small/documents/a", WRITE_KEY, **put)
            assert answer.status_code == 409
            assert "another process" in answer.json()["error"]
            assert len(ask(service, "directory")) > 2
            assert ask(service, "zebra") == []
            other.stdin.close()
        deadline = time.monotonic() + 30
        while not (found := ask(service, "zebra")) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert [doc_id for doc_id, _ in found] == ["z"]
        assert service.call("GET", "/collections/small/documents/sqrt").status_code == 404
        assert service.call("GET", "/collections/small").json()["documents"] == len(TEXTS)
        assert service.call("PUT", "/collections/small/documents/a", WRITE_KEY, **put).status_code == 200


def test_requests_that_run_are_finished_before_it_ends(made: Path) -> None:
    with running(made, "--max-seconds", 120) as service, ThreadPoolExecutor(1) as pool:
        service.call("POST", "/encode", json={"texts": ["warm"]})
        work = pool.submit(service.call, "POST", "/encode", json={"texts": LONG[:40], "side": "doc", "heads": ["dense"]})
        time.sleep(0.2)
        assert not work.done()
        service.process.send_signal(signal.SIGTERM)
        answer = work.result()
        assert answer.status_code == 200
        assert len(answer.json()["dense"]) == 40
        assert service.process.wait(timeout=60) == 0
        with pytest.raises(httpx.ConnectError):
            service.call("GET", "/health")


@pytest.fixture(scope="module")
def hurried(made: Path) -> Iterator[Running]:
    """Two collections, pages of another origin, and little time."""
    with running(f"first={made}", f"second={made}", "--cors", "https://example.org", "--max-seconds", 1.5) as service:
        yield service


def test_origins_and_names(hurried: Running) -> None:
    assert [one["name"] for one in hurried.call("GET", "/collections").json()["collections"]] == ["first", "second"]
    for origin, allowed in (("https://example.org", "https://example.org"), ("https://evil.example", None)):
        answer = hurried.call("GET", "/collections", headers={"Origin": origin})
        assert answer.headers.get("Access-Control-Allow-Origin") == allowed


def test_a_body_that_never_comes_is_given_up(hurried: Running) -> None:
    host, port = hurried.address.removeprefix("http://").rstrip("/").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        path = "/api/v1/collections/first/search"
        connection.sendall(f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: 9\r\n\r\n".encode())
        assert b" 408 " in connection.recv(4096).splitlines()[0]


def test_a_request_that_takes_too_long_is_told_so(hurried: Running) -> None:
    answer = hurried.call("POST", "/encode", json={"texts": LONG, "side": "doc"})
    assert answer.status_code == 504
    assert list(answer.json()) == ["error"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere.trilens"], "no collection at"),
        (["MADE", "--host", "0.0.0.0"], "no read key"),
        (["MADE", "--write"], "no write key"),
        (["MADE", "MADE"], "both be called 'small'"),
        (["MADE", "--cors", "example.org"], "--cors"),
        (["MADE", "--host", "256.1.1.1", "--open"], "cannot listen on"),
        (["MADE", "--port", "TAKEN"], "choose another with --host or --port"),
    ],
)
def test_what_cannot_be_served_is_one_line(
    made: Path, service: Running, trilens: Trilens, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    for variable in ("TRILENS_READ_KEYS", "TRILENS_WRITE_KEYS"):
        monkeypatch.delenv(variable, raising=False)
    places = {"MADE": str(made), "TAKEN": service.address.rstrip("/").rpartition(":")[2]}
    free = [] if "--port" in arguments else ["--port", 0]
    outcome = trilens("serve", *free, *(places.get(argument, argument) for argument in arguments))
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (1, "", 1)
    assert says in outcome.err
