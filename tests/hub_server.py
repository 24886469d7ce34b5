"""A server that speaks the part of the Hugging Face hub's API that downloads of models use, on the loopback interface."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Hub:
    """The repositories by id; `gated` ones need a token that nobody has. `requests` is what clients have asked for."""

    address: str
    repositories: dict[str, Path]
    gated: set[str] = field(default_factory=set)
    requests: list[str] = field(default_factory=list)

    @property
    def downloads(self) -> list[str]:
        """The files that were downloaded."""
        return [request.rsplit("/", 1)[-1] for request in self.requests if request.startswith("GET") and "/resolve/" in request]


@contextmanager
def serve_hub(**repositories: Path) -> Iterator[Hub]:
    """Serve folders as the repositories `acme/NAME`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub = Hub(f"http://127.0.0.1:{server.server_port}", {f"acme/{name}": folder for name, folder in repositories.items()})
    server.hub = hub  # type: ignore[attr-defined]
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def use_hub(hub: Hub, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process and those that it starts download from the hub, into empty caches in this folder."""
    # huggingface_hub reads the environment when it is imported.
    template = f"{hub.address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    for name, value in {
        "ENDPOINT": hub.address,
        "HUGGINGFACE_CO_URL_TEMPLATE": template,
        "HF_HUB_CACHE": str(folder / "home" / "hub"),
    }.items():
        monkeypatch.setattr(f"huggingface_hub.constants.{name}", value)
    for name, value in {
        "HF_ENDPOINT": hub.address,
        "HF_HOME": str(folder / "home"),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }.items():
        monkeypatch.setenv(name, value)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        self.answer()

    def answer(self) -> None:
        hub: Hub = self.server.hub  # type: ignore[attr-defined]
        path = self.path.partition("?")[0]
        hub.requests.append(f"{self.command} {path}")
        parts = path.removeprefix("/api/models").strip("/").split("/")
        repository, (what, revision, *file) = "/".join(parts[:2]), [*parts[2:], "", ""][: max(2, len(parts) - 2)]
        folder = hub.repositories.get(repository)
        if folder is None:
            self.refuse(401, "RepoNotFound")
        elif revision not in ("main", COMMIT):
            self.refuse(404, "RevisionNotFound")
        elif what == "resolve":
            self.resolve(hub, repository, folder, "/".join(file))
        else:
            self.describe(repository, folder, what)

    def describe(self, repository: str, folder: Path, what: str) -> None:
        """The facts of a repository, or the list of its files."""
        names = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
        facts: Any = {"id": repository, "sha": COMMIT, "siblings": [{"rfilename": name} for name in names]}
        if what == "tree":
            facts = [{"type": "file", "path": name, "size": (folder / name).stat().st_size, "oid": "0" * 40} for name in names]
        self.send(200, json.dumps(facts).encode(), {"Content-Type": "application/json"})

    def resolve(self, hub: Hub, repository: str, folder: Path, name: str) -> None:
        """A file."""
        if repository in hub.gated:
            self.refuse(403, "GatedRepo")
        elif not (folder / name).is_file():
            self.refuse(404, "EntryNotFound")
        else:
            content = (folder / name).read_bytes()
            self.send(200, content, {"ETag": f'"{hashlib.sha1(content).hexdigest()}"', "X-Repo-Commit": COMMIT})

    def refuse(self, status: int, code: str) -> None:
        self.send(status, b"{}", {"X-Error-Code": code, "X-Error-Message": code, "X-Repo-Commit": COMMIT})

    def send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""
