"""The demo over a few documents instead of the whole standard library."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from trilens.cli import demo
from trilens.collection import Collection
from trilens.text.document import Document

from .conftest import CORPUS, Trilens

DOCUMENTS = [Document(str(one["id"]), str(one["text"])) for one in CORPUS]
DEMO = """
from trilens.cli import demo, main
from trilens.text.document import Document
demo.standard_library = lambda: [Document("rmtree", "Recursively delete a directory tree.")]
main.main()
"""


@pytest.fixture(autouse=True)
def few_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "standard_library", lambda: DOCUMENTS)


def test_a_script_is_told_how_to_serve_and_goes_on(tmp_path: Path, trilens: Trilens) -> None:
    outcome = trilens("demo", "delete a directory", "--to", tmp_path / "demo")
    assert outcome.code == 0
    assert "rmtree" in outcome.out
    assert f"trilens serve {tmp_path / 'demo'}\n" in outcome.out
    quiet = trilens("demo", "delete a directory", "--to", tmp_path / "demo", "--no-serve")
    assert "trilens serve" not in quiet.out
    assert trilens("demo", "delete", "--to", tmp_path / "demo", "--json").json["query"] == "delete"


def test_bm25_answers_first_and_an_interrupted_run_goes_on(tmp_path: Path, trilens: Trilens) -> None:
    source = Path(__file__).parents[2] / "src"
    arguments = [sys.executable, "-c", DEMO, "demo", "delete a directory", "--to", str(tmp_path / "demo"), "--no-serve"]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as process:
        assert process.stdout
        said = b""
        while b"The other lenses follow" not in said:
            said += os.read(process.stdout.fileno(), 4096)
        process.kill()
    assert b"bm25" in said and b"rmtree" in said and b"dense" not in said
    with Collection.open(tmp_path / "demo") as collection:
        assert collection.lenses == ["bm25", "dense", "multi"]
        assert len(collection) < len(DOCUMENTS)  # the program above has one document
    first = trilens("demo", "delete a directory", "--to", tmp_path / "demo", "--no-serve")
    assert first.code == 0 and "The other lenses follow" in first.out and "dense" in first.out
    with Collection.open(tmp_path / "demo") as collection:
        assert len(collection) == len(DOCUMENTS)
        assert collection.check().problems == []
    again = trilens("demo", "delete a directory", "--to", tmp_path / "demo", "--no-serve")
    assert again.out == first.out[first.out.index("follow") :].partition("\n")[2]


def test_people_get_the_page(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    mine, theirs = pty.openpty()
    source = Path(__file__).parents[2] / "src"
    environment = {**{name: value for name, value in os.environ.items() if name != "CI"}, "PYTHONPATH": str(source)}
    arguments = [sys.executable, "-c", DEMO, "demo", "delete a directory", "--to", str(tmp_path / "demo")]
    with subprocess.Popen(arguments, stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL, env=environment) as process:
        os.close(theirs)
        said = b""
        try:
            while b"Ctrl-C ends it" not in said:
                said += os.read(mine, 4096)
        finally:
            process.send_signal(signal.SIGINT)
        assert b"/?q=delete+a+directory" in said
        assert process.wait(timeout=30) == 0
    os.close(mine)
