"""Files sent to the service become the documents that the command line would read."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from .running import READ_KEY, WRITE_KEY, Running

RECORDS = b'{"id": "r1", "text": "first"}\n{"id": "r2", "text": "second", "year": 2020}\n'


@pytest.fixture(autouse=True)
def as_before(writable: Running) -> Iterator[None]:
    """The collection is shared with other tests, which know its documents."""
    yield
    added = ["notes/a b.md", "r1", "r2", "page.html"]
    writable.call("DELETE", "/collections/notes/documents", WRITE_KEY, params={"id": added})


def send(service: Running, name: str, content: bytes, key: str | None = WRITE_KEY, **params: Any) -> httpx.Response:
    return service.call("POST", f"/collections/notes/files/{name}", key, content=content, params=params)


def document(service: Running, doc_id: str) -> Any:
    return service.call("GET", "/collections/notes/documents", READ_KEY, params={"id": doc_id}).json()["documents"][0]


def count(service: Running) -> int:
    return int(service.call("GET", "/collections/notes", READ_KEY).json()["documents"])


def test_the_suffix_selects_the_reader(writable: Running) -> None:
    before = count(writable)
    answer = send(writable, "notes/a%20b.md", b"# Bees\n\nHow to *care* for them.").json()
    assert (answer["added"], answer["documents"]) == (1, before + 1)
    read = document(writable, "notes/a b.md")
    assert (read["title"], "How to care for them." in read["text"]) == ("Bees", True)
    assert send(writable, "records.jsonl", RECORDS).json()["added"] == 2
    assert document(writable, "r2")["metadata"] == {"year": 2020}
    assert send(writable, "page.html", b"<title>T</title><p>x<script>y</script>").json()["added"] == 1
    assert document(writable, "page.html")["text"] == "x"


def test_nothing_is_replaced_unless_asked(writable: Running) -> None:
    send(writable, "records.jsonl", RECORDS)
    changed = RECORDS.replace(b"second", b"changed").replace(b"r1", b"r3")
    refused = send(writable, "records.jsonl", changed)
    assert refused.status_code == 400 and "'r2'" in refused.json()["error"]
    assert document(writable, "r2")["text"] == "second"
    again = send(writable, "records.jsonl", RECORDS.replace(b"second", b"changed"), replace=True).json()
    assert (again["added"], again["replaced"], again["unchanged"]) == (0, 1, 1)
    texts = {"documents": [{"doc_id": "r1", "text": "other"}], "replace": False}
    put = writable.call("PUT", "/collections/notes/documents", WRITE_KEY, json=texts)
    assert put.status_code == 400 and document(writable, "r1")["text"] == "first"


@pytest.mark.parametrize(
    ("name", "content", "status", "says"),
    [
        ("a.xyz", b"x", 400, "a.xyz has no known suffix; expected .jsonl"),
        ("a.txt", b"", 400, "holds no text"),
        ("a.txt", b"\0\1", 400, "binary"),
        ("a.jsonl", b"{broken", 400, "a.jsonl:1"),
        ("a.jsonl.gz", b"\x1f\x8b", 400, "compressed"),
        ("a.jsonl", b"".join(b'{"id": "%d", "text": "x"}\n' % number for number in range(1001)), 413, "more than 1,000"),
    ],
)
def test_bad_files_get_one_line(writable: Running, name: str, content: bytes, status: int, says: str) -> None:
    before = count(writable)
    answer = send(writable, name, content)
    assert answer.status_code == status, answer.text
    assert says in answer.json()["error"] and "\n" not in answer.json()["error"]
    assert count(writable) == before


def test_writing_needs_a_write_key(writable: Running, service: Running) -> None:
    assert send(writable, "a.txt", b"x", READ_KEY).status_code == 403
    assert send(writable, "a.txt", b"x", None).status_code == 401
    assert service.call("POST", "/collections/small/files/a.txt", content=b"x").status_code == 403
    assert writable.call("GET", "/collections", READ_KEY).json()["may_write"] is False
    assert writable.call("GET", "/collections", WRITE_KEY).json()["may_write"] is True
