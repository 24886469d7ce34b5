"""The documentation as data: the code blocks and shell commands of its pages."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SNIPPET = re.compile(r'--8<-- "(.+)"')


@dataclass(frozen=True)
class Command:
    """One line of a shell block."""

    page: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}: {self.text}"


@dataclass(frozen=True)
class Block:
    """A fenced code block; `line` is that of its first line of code."""

    page: Path
    line: int
    language: str
    code: str


def blocks(page: Path) -> list[Block]:
    """The fenced code blocks of a page."""
    text = page.read_text(encoding="utf-8")
    return [Block(page, text.count("\n", 0, match.start(2)) + 1, match[1], match[2]) for match in FENCE.finditer(text)]


def commands(page: Path) -> list[Command]:
    """The commands in the shell blocks of a page, one per line."""
    return [
        Command(page, block.line + number, line.strip())
        for block in blocks(page)
        if block.language == "sh"
        for number, line in enumerate(block.code.splitlines())
        if line.strip()
    ]


def python(page: Path) -> list[Block]:
    """The Python blocks of a page that are written there; included files are tested where they are."""
    return [block for block in blocks(page) if block.language == "python" and not SNIPPET.search(block.code)]
