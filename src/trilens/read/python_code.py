"""Python source code: one document per function, method and class, and one for the rest of the module."""

import ast
import re
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import PurePath

from trilens.read.formats import InputFile, PageContent
from trilens.read.source_code import read_blocks

LANGUAGE = "python"
LARGEST_PARSED = 4 << 20
"""Longer sources are generated tables, whose syntax tree would take a gigabyte; they are split by blank lines."""

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def read_python(file: InputFile) -> Iterator[PageContent]:
    """The rest of the module first, then the definitions in order. Sources with another syntax are split by blank lines."""
    source = file.text()
    name = PurePath(file.name).name
    module = _parsed(source)
    if module is None:
        yield from read_blocks(source, name, LANGUAGE)
        return
    lines = source.split("\n")
    definitions = _definitions(module, lines)
    yield PageContent(name, _without(lines, 0, len(lines), definitions), {"language": LANGUAGE, "line": 1})
    for definition in definitions:
        yield from _contents(definition, lines, "")


def _parsed(source: str) -> ast.Module | None:
    if len(source) > LARGEST_PARSED:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the parsed code
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def _definitions(owner: ast.Module | ast.ClassDef, lines: list[str]) -> list[tuple[int, Definition]]:
    """The definitions in the body of a module or class, each with the index of its first line."""
    nodes = [node for node in owner.body if isinstance(node, Definition)]
    return [(_start(node, lines), node) for node in nodes]


def _start(node: Definition, lines: list[str]) -> int:
    """The index of the first line of a definition, with its decorators and the comment above it."""
    start = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1
    while start > 0 and lines[start - 1].lstrip().startswith("#"):
        start -= 1
    return start


def _contents(definition: tuple[int, Definition], lines: list[str], owner: str) -> Iterator[PageContent]:
    start, node = definition
    symbol = f"{owner}.{node.name}" if owner else node.name
    members = _definitions(node, lines) if isinstance(node, ast.ClassDef) else []
    text = _without(lines, start, node.end_lineno or start + 1, members)
    yield PageContent(symbol, text, {"language": LANGUAGE, "symbol": symbol, "line": node.lineno}, symbol)
    for member in members:
        yield from _contents(member, lines, symbol)


def _without(lines: list[str], start: int, end: int, definitions: list[tuple[int, Definition]]) -> str:
    """The lines from `start` to `end` without those of the definitions."""
    pieces = []
    for first, node in definitions:
        pieces += lines[start:first]
        start = max(start, node.end_lineno or first + 1)
    pieces += lines[start:end]
    return re.sub(r"\n{3,}", "\n\n", textwrap.dedent("\n".join(pieces))).strip("\n")
