import ast
import bisect
import io
from pathlib import Path

import pytest

from trilens.read import python_code
from trilens.read.formats import InputFile, PageContent
from trilens.read.python_code import read_python

SOURCE = '''\
"""A module."""
import os

# Says hello.
@decorated
def hello(name):
    """Greet."""

    def inner():
        pass


class Pump:
    """Moves water."""

    speed = 1

    async def start(self):
        await self.turn()

    class Valve:
        def open(self): ...


LAST = 2
'''


def contents(source: str) -> list[PageContent]:
    return list(read_python(InputFile(io.BytesIO(source.encode()), "/a.py", "a.py")))


def test_functions_methods_and_classes_are_documents_beside_the_rest() -> None:
    assert [(content.part, content.metadata["line"], content.text) for content in contents(SOURCE)] == [
        ("", 1, '"""A module."""\nimport os\n\nLAST = 2'),
        (
            "hello",
            6,
            '# Says hello.\n@decorated\ndef hello(name):\n    """Greet."""\n\n    def inner():\n        pass',
        ),
        ("Pump", 13, 'class Pump:\n    """Moves water."""\n\n    speed = 1'),
        ("Pump.start", 18, "async def start(self):\n    await self.turn()"),
        ("Pump.Valve", 21, "class Valve:"),
        ("Pump.Valve.open", 22, "def open(self): ..."),
    ]
    assert contents(SOURCE)[3].title == "Pump.start"
    assert contents(SOURCE)[3].metadata == {"language": "python", "symbol": "Pump.start", "line": 18}


def test_modules_of_the_standard_library_are_read_without_loss() -> None:
    for module in (bisect, ast, pytest):
        source = Path(module.__file__ or "").read_text(encoding="utf-8")
        found = contents(source)
        lines = [line.strip() for content in found for line in content.text.split("\n") if line.strip()]
        assert sorted(lines) == sorted(line.strip() for line in source.split("\n") if line.strip())
    assert {"bisect_left", "insort_right"} <= {content.part for content in contents(Path(bisect.__file__).read_text())}


@pytest.mark.parametrize("source", ["print 'Python 2'", "(" * 100_000, "-" * 100_000 + "1", "1" + "+1" * 100_000, "a\f = 1 1"])
def test_what_cannot_be_parsed_is_split_by_blank_lines(source: str) -> None:
    assert contents(source) == [PageContent("a.py", source, {"language": "python", "line": 1})]


def test_generated_tables_are_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_code, "LARGEST_PARSED", len(SOURCE) - 1)
    assert [content.part for content in contents(SOURCE)] == [""]


def test_one_line_definitions_share_no_line_twice() -> None:
    parts = contents("def f(): return 1\ndef g(): return 2\n\nif True:\n    def h(): pass\n")
    assert [(content.part, content.text) for content in parts] == [
        ("", "if True:\n    def h(): pass"),
        ("f", "def f(): return 1"),
        ("g", "def g(): return 2"),
    ]
