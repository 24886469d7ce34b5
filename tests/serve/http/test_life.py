"""The service among others: many clients at once, commits by other processes, signals."""

import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from .running import TEXTS, WRITE_KEY, Running, command, environment, make_collection, running

QUERIES = [
    f"{word} {other}"
    for word in ("remove", "create", "wait for", "difference of")
    for other in ("a folder", "two dates", "threads", "numbers")
]


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
    batches = int(next(line.split()[1] for line in lines if line.startswith("trilens_batch_queries_count")))
    queries = float(next(line.split()[1] for line in lines if line.startswith("trilens_batch_queries_sum")))
    assert queries > batches


def test_a_commit_of_another_process_is_seen(tmp_path: Path) -> None:
    path = make_collection(tmp_path / "small.trilens", ("bm25",))
    with running(path) as service:
        assert ask(service, "zebra") == []
        code = (
            "import sys; from trilens import Collection, Document\n"
            "with Collection.open(sys.argv[1]) as c: c.add([Document('z', 'a zebra')]); c.delete(['sqrt'])"
        )
        subprocess.run([sys.executable, "-c", code, str(path)], check=True, env=environment())
        deadline = time.monotonic() + 20
        while not (found := ask(service, "zebra")) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert [doc_id for doc_id, _ in found] == ["z"]
        assert service.call("GET", "/collections/small/documents/sqrt").status_code == 404
        assert service.call("GET", "/collections/small").json()["documents"] == len(TEXTS)


def test_a_collection_that_another_process_writes_is_busy(tmp_path: Path) -> None:
    path = make_collection(tmp_path / "small.trilens", ("bm25",))
    code = (
        "import sys; from trilens import Collection, Document\n"
        "c = Collection.open(sys.argv[1]); c.add([Document('z', 'a zebra')]); print('writing', flush=True); sys.stdin.read()"
    )
    with running(path, "--write", TRILENS_WRITE_KEYS=WRITE_KEY) as service:
        arguments = [sys.executable, "-c", code, str(path)]
        with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment()) as other:
            assert other.stdin and other.stdout
            assert other.stdout.readline() == "writing\n"
            answer = service.call("PUT", "/collections/small/documents/a", WRITE_KEY, json={"text": "x"})
            assert answer.status_code == 409
            assert "another process" in answer.json()["error"]
            assert len(ask(service, "directory")) > 2
            other.stdin.close()
        assert service.call("PUT", "/collections/small/documents/a", WRITE_KEY, json={"text": "x"}).status_code == 200


def test_requests_that_run_are_finished_before_it_ends(made: Path) -> None:
    with running(made) as service, ThreadPoolExecutor(1) as pool:
        service.call("POST", "/encode", json={"texts": ["warm"]})
        texts = [" ".join(["several words about directories and their trees"] * 40)] * 60
        before = time.monotonic()
        work = pool.submit(service.call, "POST", "/encode", json={"texts": texts, "side": "doc", "heads": ["dense"]})
        time.sleep(0.2)
        assert not work.done()
        service.process.send_signal(signal.SIGTERM)
        answer = work.result()
        assert answer.status_code == 200
        assert len(answer.json()["dense"]) == 60
        assert service.process.wait(timeout=30) == 0
        assert time.monotonic() - before < 60
        with pytest.raises(httpx.ConnectError):
            service.call("GET", "/health")


def test_a_request_that_takes_too_long_is_told_so(made: Path) -> None:
    with running(made, "--max-seconds", 0.3) as service:
        texts = [" ".join(["several words about directories and their trees"] * 40)] * 100
        answer = service.call("POST", "/encode", json={"texts": texts, "side": "doc"})
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
    ],
)
def test_what_cannot_be_served_is_one_line(made: Path, arguments: list[str], says: str) -> None:
    given = [str(made) if argument == "MADE" else argument for argument in arguments]
    done = subprocess.run(command("serve", "--port", 0, *given), capture_output=True, text=True, env=environment(), timeout=60)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert says in done.stderr


def test_a_port_in_use_is_one_line(made: Path, service: Running) -> None:
    port = service.address.rstrip("/").rpartition(":")[2]
    done = subprocess.run(command("serve", made, "--port", port), capture_output=True, text=True, env=environment(), timeout=60)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "--port" in done.stderr


def test_origins_and_names(made: Path) -> None:
    with running(f"first={made}", f"second={made}", "--cors", "https://example.org") as service:
        assert [one["name"] for one in service.call("GET", "/collections").json()["collections"]] == ["first", "second"]
        for origin, allowed in (("https://example.org", "https://example.org"), ("https://evil.example", None)):
            answer = service.call("GET", "/collections", headers={"Origin": origin})
            assert answer.headers.get("Access-Control-Allow-Origin") == allowed
