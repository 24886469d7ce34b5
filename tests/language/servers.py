"""A small service that speaks OpenAI's chat completions, well or badly."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = Callable[["Answers", str], None]
"""Answers a prompt, in its own way."""


class Service(ThreadingHTTPServer):
    """Answers by `replies`, one for each request; the last one serves all further requests."""

    daemon_threads = True

    def __init__(self, *replies: Reply) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.replies, self.prompts, self.over = list(replies), list[str](), threading.Event()
        self.requests: list[dict[str, Any]] = []
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Silent: clients leave."""


class Answers(BaseHTTPRequestHandler):
    server: Service

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = body["messages"][0]["content"]
        with self.server.lock:
            self.server.prompts.append(prompt)
            self.server.requests.append({"path": self.path, "key": self.headers.get("Authorization"), "body": body})
            reply = self.server.replies.pop(0) if len(self.server.replies) > 1 else self.server.replies[0]
        reply(self, prompt)

    def send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""


def says(text: str | Callable[[str], str]) -> Reply:
    """The model writes this text, or what a function makes of the prompt."""

    def reply(to: Answers, prompt: str) -> None:
        content = text if isinstance(text, str) else text(prompt)
        to.send(200, json.dumps({"choices": [{"message": {"content": content}}]}).encode())

    return reply


def sends(status: int, body: bytes = b"", **headers: str) -> Reply:
    return lambda to, _: to.send(status, body, **headers)


def stays_silent(to: Answers, _: str) -> None:
    to.server.over.wait(60)


def closes(to: Answers, _: str) -> None:
    to.close_connection = True
    to.connection.close()


def drips(to: Answers, _: str) -> None:
    """A byte now and then, so that no single read takes long."""
    to.send_response(200)
    to.end_headers()
    while not to.server.over.wait(0.05):
        to.wfile.write(b" ")
        to.wfile.flush()


@contextmanager
def serving(*replies: Reply) -> Iterator[Service]:
    """The service in a thread."""
    made = Service(*replies)
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.over.set()
        made.shutdown()
        made.server_close()
        thread.join()


@contextmanager
def nobody() -> Iterator[str]:
    """An address at which nothing listens."""
    made = Service(says(""))
    made.server_close()
    yield made.url
