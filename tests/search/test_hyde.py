"""Passages from a small service of our own that speaks OpenAI's chat completions."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trilens import Collection, Document
from trilens.errors import BadInput, ServiceFailed
from trilens.search.hyde import Hyde, imagine

PASSAGE = "The capital of France is Paris, on the river Seine."


class Service(HTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.seen: list[dict[str, Any]] = []
        self.status = 200
        self.body: Any = {"choices": [{"message": {"content": f"  {PASSAGE}\n"}}]}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Answers(BaseHTTPRequestHandler):
    server: Service

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append({"path": self.path, "key": self.headers.get("Authorization"), "body": json.loads(content)})
        body = self.server.body if isinstance(self.server.body, bytes) else json.dumps(self.server.body).encode()
        self.send_response(self.server.status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    for name in ("TRILENS_HYDE_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    made = Service()
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


def test_what_is_asked_and_answered(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    assert imagine(Hyde(url=service.url, model="tiny"), "capital of France") == PASSAGE
    monkeypatch.setenv("TRILENS_HYDE_KEY", "secret")
    assert imagine(Hyde(url=service.url + "/chat/completions"), "capital") == PASSAGE
    first, second = service.seen
    assert (first["path"], first["key"], second["path"]) == ("/v1/chat/completions", None, "/v1/chat/completions")
    assert second["key"] == "Bearer secret"
    assert first["body"]["model"] == "tiny"
    assert first["body"]["messages"][0]["content"].endswith("\n\ncapital of France")


def test_the_dense_lens_is_asked_with_the_mean(service: Service, tmp_path: Path) -> None:
    with Collection.create(tmp_path / "c", threads=1) as made:
        made.add([Document("paris", "Paris lies on the Seine."), Document("berlin", "Berlin lies on the Spree.")])
        made.commit()
        hyde = Hyde(url=service.url)
        (hits,) = made.search(["French government seat"], lenses=["dense"], hyde=hyde)
        query = made.model.encoder.encode_queries(["French government seat"], ["dense"]).dense
        passage, docs = (
            made.model.encoder.encode_docs(texts, heads=["dense"]).dense for texts in ([PASSAGE], ["Paris lies on the Seine."])
        )
        assert query and passage and docs
        mean = (query.vectors[0] + passage.vectors[0]) / 2
        expected = float(mean / np.linalg.norm(mean) @ docs.vectors[0])
        assert hits[0].doc_id == "paris"
        assert hits[0].score == pytest.approx(expected, abs=1e-5)
        found = made.explain("French government seat", "paris", lenses=["dense"], hyde=hyde)
        assert sum(part.score for part in found.parts) == pytest.approx(expected, abs=1e-4)
        assert found.expansion == {"method": "hyde", "model": "default", "passage": PASSAGE}
        with pytest.raises(BadInput, match="hyde is given, but the lenses searched are bm25; it applies to dense"):
            made.search(["x"], lenses=["bm25"], hyde=hyde)


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (500, {}, "answered 500"),
        (401, {}, "answered 401 .*TRILENS_HYDE_KEY"),
        (302, {}, "answered 302"),
        (200, b"<html>", "answered '<html>'; expected a chat completion"),
        (200, {"choices": []}, "expected a chat completion"),
        (200, {"choices": [{"message": {"content": " "}}]}, "wrote no passage"),
        (200, {"choices": [{"message": {"content": None}}]}, "wrote no passage"),
    ],
)
def test_answers_that_cannot_be_used(service: Service, status: int, body: Any, message: str) -> None:
    service.status, service.body = status, body
    with pytest.raises(ServiceFailed, match=message) as failure:
        imagine(Hyde(url=service.url), "query")
    assert "\n" not in str(failure.value)
    assert len(service.seen) == 1


def test_nobody_there() -> None:
    closed = Service()
    url = closed.url
    closed.server_close()
    with pytest.raises(ServiceFailed, match="cannot be reached"):
        imagine(Hyde(url=url, timeout=2), "query")


@pytest.mark.parametrize("url", ["", "localhost:80", "file:///etc/passwd", "ftp://host/v1", "http://name:key@host/v1"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(BadInput, match=r"url(:)? (is|contains)"):
        Hyde(url=url)
