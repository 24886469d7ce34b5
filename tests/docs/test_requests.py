"""The HTTP requests of docs/*.md, sent to a service in this process."""

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

from fastapi.testclient import TestClient

from trilens import Collection
from trilens.http.app import make_app
from trilens.http.keys import load_keys
from trilens.http.limits import Limits
from trilens.http.metrics import Metrics
from trilens.http.served import ServedCollection
from trilens.http.service import Service

from .pages import PAGES, commands

REQUESTS = [command for page in PAGES for command in commands(page) if command.text.startswith("curl ")]


@dataclass
class Curl:
    """The arguments of curl that the documentation uses."""

    url: str = ""
    method: str = "GET"
    headers: dict[str, str] = field(default_factory=dict)
    body: object = None
    content: str | None = None

    @staticmethod
    def parse(text: str) -> "Curl":
        request, words = Curl(), shlex.split(text)[1:]
        explicit = ""
        while words:
            word = words.pop(0)
            if word == "-X":
                explicit = words.pop(0)
            elif word == "-H":
                name, _, value = words.pop(0).partition(": ")
                request.headers[name] = value
            elif word == "--json":
                request.body, request.method = json.loads(words.pop(0)), "POST"
            elif word == "--data-binary":
                request.content, request.method = words.pop(0), "POST"
            else:
                assert word.startswith("http://127.0.0.1:8000/"), text
                request.url = word
        request.method = explicit or request.method
        return request


@pytest.fixture
def client(page_folder: Path) -> Iterator[TestClient]:
    """A service of my.trilens that may be written to with the key of keys.txt."""
    limits, metrics = Limits(), Metrics()
    served = ServedCollection("my", Collection.open(page_folder / "my.trilens", threads=1), limits, metrics, 1)
    write_keys = load_keys(page_folder / "keys.txt", {}).write
    keys_file = page_folder / "write-keys.txt"
    keys_file.touch(mode=0o600)
    keys_file.write_text("".join(f"write {key}\n" for key in write_keys))
    with TestClient(make_app(Service({"my": served}, limits, load_keys(keys_file, {}), metrics, True))) as client:
        yield client


def test_every_request_succeeds(client: TestClient) -> None:
    assert len(REQUESTS) >= 5
    for command in REQUESTS:
        request = Curl.parse(command.text)
        answer = client.request(
            request.method, request.url, headers=request.headers, json=request.body, content=request.content
        )
        assert answer.status_code == 200, f"{command}\n{answer.text}"


def test_every_documented_path_is_one_of_the_service(client: TestClient) -> None:
    documented = set()
    serving = next(page for page in PAGES if page.name == "serving.md").read_text()
    for line in serving.splitlines():
        if line.startswith("| `") and "/v1/" in line:
            cell = line.split("|")[1].replace("`", "").replace(",", "")
            *methods, path = cell.split()
            documented |= {(method, path) for method in methods}
    schema = client.get("/openapi.json").json()["paths"]
    served = {(method.upper(), path.replace(":anything", "")) for path, known in schema.items() for method in known}
    assert documented == served
