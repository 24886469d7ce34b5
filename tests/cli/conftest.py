"""The command line in this process, as the tests of all commands use it."""

import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from trilens.cli.main import main

CORPUS = [
    {"id": "rmtree", "title": "shutil", "text": "Recursively delete a directory tree.", "year": 2021},
    {"id": "mkdir", "title": "os", "text": "Create a directory.", "year": 2019},
    {"id": "sqrt", "title": "math", "text": "Return the square root of x.", "year": 2020},
]


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Trilens(Protocol):
    def __call__(self, *arguments: object, stdin: str = "") -> Outcome: ...


@pytest.fixture
def trilens(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Trilens:
    def run(*arguments: object, stdin: str = "") -> Outcome:
        monkeypatch.setattr(sys, "argv", ["trilens", *(str(argument) for argument in arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = 0
        try:
            main()
        except SystemExit as leaving:
            code = int(leaving.code or 0)
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in CORPUS))
    return path
