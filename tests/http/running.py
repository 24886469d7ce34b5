"""A real `trilens serve` in a process of its own, as tests of the service and of its page use it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from trilens import Collection, Document

SOURCE = Path(__file__).parents[2] / "src"
READ_KEY, WRITE_KEY = "a-key-for-reading-0123", "a-key-for-writing-0123"
TEXTS = {
    "rmtree": ("shutil.rmtree", "Recursively delete a directory tree and everything inside it.", 2021, "files"),
    "rmdir": ("os.rmdir", "Remove (delete) an empty directory.", 2019, "files"),
    "mkdir": ("os.mkdir", "Create a directory named path with numeric mode.", 2019, "files"),
    "copytree": ("shutil.copytree", "Copy an entire directory tree rooted at src to another place.", 2020, "files"),
    "sqrt": ("math.sqrt", "Return the square root of a number.", 2020, "numbers"),
    "gcd": ("math.gcd", "Return the greatest common divisor of the given integers.", 2018, "numbers"),
    "sleep": ("time.sleep", "Suspend execution of the calling thread for some seconds.", 2022, "time"),
    "timedelta": ("datetime.timedelta", "A duration: the difference between two dates or times.", 2022, "time"),
    "barrier": ("threading.Barrier", "Threads wait until all of them have reached the same point.", 2023, "threads"),
    "matches": ("difflib.get_close_matches", "Find words that look almost like a misspelled one.", 2023, "text"),
    "guide/a b?#%.md": ("Odd ids", "An id may hold slashes, spaces and other signs.", 2024, "text"),
}


def make_collection(path: Path, lenses: tuple[str, ...] = ("bm25", "dense", "sparse", "multi")) -> Path:
    """A small collection with the bundled model."""
    with Collection.create(path, lenses=lenses) as collection:
        collection.add(
            Document(doc_id, text, title=title, metadata={"year": year, "topic": topic})
            for doc_id, (title, text, year, topic) in TEXTS.items()
        )
    return path


@dataclass(frozen=True)
class Running:
    """A service that runs, and how to call it."""

    process: "subprocess.Popen[str]"
    address: str

    def client(self, key: str | None = None) -> httpx.Client:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return httpx.Client(base_url=self.address + "api/v1", headers=headers, timeout=60)

    def call(self, method: str, path: str, key: str | None = None, **options: Any) -> httpx.Response:
        with self.client(key) as client:
            return client.request(method, path, **options)


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-c", "from trilens.cli.main import main; main()", *(str(argument) for argument in arguments)]


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRILENS_")}
    return {**kept, "PYTHONPATH": str(SOURCE), **more}


@contextmanager
def running(*arguments: object, **variables: str) -> Iterator[Running]:
    """`trilens serve` with these arguments on a free port, ended by SIGTERM. It must not have printed a traceback."""
    process = subprocess.Popen(
        command("serve", "--port", 0, *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**variables),
    )
    assert process.stdout is not None and process.stderr is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("serving at "), process.stderr.read()
        yield Running(process, line.split()[2])
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert "Traceback" not in errors, errors
