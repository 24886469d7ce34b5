"""What the service refuses, and how: always a 4xx with {"error": one line}."""

import json
from typing import Any

import httpx
import pytest

from .running import READ_KEY, WRITE_KEY, Running

SEARCH = "/collections/small/search"
LONE_SURROGATE = b'{"queries": ["\\ud800"]}'


def refused(answer: httpx.Response, status: int, says: str) -> None:
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["error"]
    assert says in answer.json()["error"]
    assert "\n" not in answer.json()["error"]


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({"queries": []}, 422, "queries"),
        ({"queries": "directory"}, 422, "queries"),
        ({"queries": ["  "]}, 400, "query 1 is empty"),
        ({"queries": ["x"], "k": 0}, 422, "k"),
        ({"queries": ["x"], "k": True}, 422, "k"),
        ({"queries": ["x"], "k": 101}, 413, "k is 101; expected at most 100"),
        ({"queries": ["x"] * 41}, 413, "expected at most 40"),
        ({"queries": ["x" * 10_001]}, 413, "expected at most 10,000"),
        ({"queries": ["x"], "lenses": ["zip"]}, 400, "no lens 'zip'"),
        ({"queries": ["x"], "lenses": ["bm25", "bm25"]}, 422, "lenses are bm25, bm25; expected one or more, each once"),
        ({"queries": ["x"], "fusion": "magic"}, 400, "fusion is 'magic'"),
        ({"queries": ["x"], "filter": {"year": {"$like": 1}}}, 400, "operator '$like'"),
        ({"queries": ["x"], "filter": {"$where": "1"}}, 400, "'$where'"),
        ({"queries": ["x"], "rerank": "zip"}, 400, "no lens 'zip'"),
        (
            {"queries": ["x"], "params": {"multi": {"probes": 0}}},
            422,
            "params.multi.probes is 0; expected a value greater than or equal to 1",
        ),
        ({"queries": ["x"], "unknown": 1}, 422, "option 'unknown' is not known"),
    ],
)
def test_bad_searches(service: Running, body: dict[str, Any], status: int, says: str) -> None:
    refused(service.call("POST", SEARCH, json=body), status, says)


@pytest.mark.parametrize(
    ("content", "status", "says"),
    [
        (b"{broken", 422, "the body is not JSON"),
        (b"\xff\xfe", 422, "the body is not JSON"),
        (LONE_SURROGATE, 422, ""),
        (b'{"queries": ["x"], "filter": ' + b'{"$not": ' * 3000 + b"1" + b"}" * 3001, 400, ""),
        (b'{"queries": ["x"], "filter": {"a": ' + b"9" * 5000 + b"}}", 400, ""),
        (json.dumps({"queries": ["x" * 300_000]}).encode(), 413, "larger than 200,000 bytes"),
    ],
)
def test_bad_bodies(service: Running, content: bytes, status: int, says: str) -> None:
    headers = {"Content-Type": "application/json"}
    answer = service.call("POST", SEARCH, content=content, headers=headers)
    refused(answer, status, says)


def test_a_body_without_a_length_is_bounded_as_well(service: Running) -> None:
    def pieces() -> Any:
        for _ in range(30):
            yield b" " * 10_000

    refused(service.call("POST", SEARCH, content=pieces(), headers={"Content-Type": "application/json"}), 413, "larger than")


def test_nothing_there(service: Running) -> None:
    refused(service.call("POST", "/collections/other/search", json={"queries": ["x"]}), 404, "expected one of small")
    refused(service.call("GET", "/collections/small/documents/none"), 404, "no document 'none'")
    refused(service.call("GET", "/nowhere"), 404, "nothing at")
    refused(service.call("DELETE", "/health"), 405, "")


def test_read_only_unless_told(service: Running) -> None:
    refused(service.call("PUT", "/collections/small/documents/a", json={"text": "x"}), 403, "--write")
    refused(service.call("DELETE", "/collections/small/documents/rmtree", WRITE_KEY), 403, "--write")


def test_keys(writable: Running) -> None:
    refused(writable.call("GET", "/collections"), 401, "read key")
    refused(writable.call("GET", "/collections", "a-key-that-nobody-knows"), 401, "not known")
    assert writable.call("GET", "/collections", READ_KEY).status_code == 200
    assert writable.call("GET", "/collections", WRITE_KEY).status_code == 200
    assert writable.call("GET", "/health").status_code == 200
    put: dict[str, Any] = {"json": {"text": "x"}}
    refused(writable.call("PUT", "/collections/notes/documents/a", **put), 401, "write key")
    refused(writable.call("PUT", "/collections/notes/documents/a", READ_KEY, **put), 403, "may read only")
    refused(writable.call("GET", "/metrics"), 401, "read key")


def test_a_stranger_cannot_call_it_by_another_name(service: Running) -> None:
    answer = service.call("GET", "/collections", headers={"Host": "evil.example"})
    refused(answer, 403, "evil.example")


def test_other_origins_are_not_allowed_by_default(service: Running) -> None:
    answer = service.call("GET", "/collections", headers={"Origin": "https://evil.example"})
    assert not [name for name in answer.headers if name.lower().startswith("access-control")]


INJECTIONS = [
    "'; DROP TABLE documents; --",
    '" OR 1=1 --',
    "<script>alert(1)</script>",
    "{{7*7}} ${7*7} %s %n",
    "../../etc/passwd",
    "\x00\x1b[2J",
    "a\r\nSet-Cookie: x=1",
    "NEAR/2 *:* AND (",
]


@pytest.mark.parametrize("text", INJECTIONS)
def test_strange_strings_are_only_strings(service: Running, text: str) -> None:
    for body in (
        {"queries": [text]},
        {"queries": ["directory"], "filter": {"topic": text}},
        {"queries": ["directory"], "filter": {text.replace('"', ""): 1}},
    ):
        answer = service.call("POST", SEARCH, json=body)
        assert answer.status_code in (200, 400), answer.text
        assert "Set-Cookie" not in answer.headers
    filtered = service.call("POST", SEARCH, json={"queries": ["directory"], "filter": {"topic": text}})
    assert filtered.json()["answers"][0]["hits"] == []
    refused(service.call("POST", "/collections/small/explain", json={"query": text, "doc_ids": [text]}), 404, "no document")
    assert service.call("GET", "/collections/small").json()["documents"] == 11


def test_a_document_may_hold_anything(writable: Running) -> None:
    text = "\n".join(INJECTIONS)
    with writable.client(WRITE_KEY) as client:
        put = client.put("/collections/notes/documents/evil", json={"text": text, "title": text, "metadata": {text: text}})
        assert put.status_code == 200, put.text
        answer = client.get("/collections/notes/documents/evil")
        assert answer.json() == {"doc_id": "evil", "text": text, "title": text, "metadata": {text: text}}
        assert answer.headers["Content-Type"] == "application/json"
        client.delete("/collections/notes/documents/evil")
        for bad in ({"text": 1}, {"text": "x", "metadata": []}, {}, {"text": "x", "doc_id": "y"}):
            refused(client.put("/collections/notes/documents/bad", json=bad), 422, "")
        refused(client.put(f"/collections/notes/documents/{'i' * 2000}", json={"text": "x"}), 400, "1024 bytes")


@pytest.mark.parametrize("levels", [33, 900])
def test_deeply_nested_metadata(writable: Running, levels: int) -> None:
    """It would be accepted by the store, but no answer could hold it."""
    body = b'{"text": "x", "metadata": ' + b'{"a":' * levels + b"1" + b"}" * levels + b"}"
    headers = {"Content-Type": "application/json"}
    answer = writable.call("PUT", "/collections/notes/documents/deep", WRITE_KEY, content=body, headers=headers)
    assert 400 <= answer.status_code < 500, answer.text
    assert list(answer.json()) == ["error"]
