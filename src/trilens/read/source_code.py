"""Source code in any language: one document per group of blocks that blank lines separate."""

from collections.abc import Iterator
from pathlib import PurePath

from trilens.read.formats import InputFile, PageContent
from trilens.text.files import without_compression

_LANGUAGES = """
c: c h                c#: cs                c++: cc cpp cxx hh hpp hxx              ada: adb ads
clojure: clj cljs     css: css scss sass less                   cuda: cu cuh        d: d
dart: dart            elixir: ex exs        elm: elm            erlang: erl hrl     f#: fs fsx
fortran: f90 f95 f03  go: go                graphql: graphql    groovy: groovy gradle
haskell: hs           java: java            javascript: js mjs cjs jsx              julia: jl
kotlin: kt kts        lisp: el lisp scm rkt lua: lua            nim: nim            nix: nix
objective-c: mm       ocaml: ml mli         pascal: pas         perl: pl pm         php: php
powershell: ps1 psm1  protobuf: proto       r: r                ruby: rb            rust: rs
scala: scala          shell: sh bash zsh fish                   solidity: sol       sql: sql
svelte: svelte        swift: swift          terraform: tf       typescript: ts tsx mts cts
verilog: v sv         vhdl: vhd vhdl        vue: vue            zig: zig
"""
LARGEST_GROUP_LINES = 40


def _by_suffix() -> dict[str, str]:
    languages: dict[str, str] = {}
    language = ""
    for word in _LANGUAGES.split():
        if word.endswith(":"):
            language = word[:-1]
        else:
            languages[f".{word}"] = language
    return languages


LANGUAGES = _by_suffix()
"""The language of each suffix. Python has a reader of its own (`trilens.read.python_code`)."""


def read_source_code(file: InputFile) -> Iterator[PageContent]:
    """The groups of blocks of a file."""
    suffix = PurePath(without_compression(file.name).lower()).suffix
    return read_blocks(file.text(), PurePath(file.name).name, LANGUAGES[suffix])


def read_blocks(source: str, title: str, language: str) -> Iterator[PageContent]:
    """Groups of consecutive blocks of up to 40 lines; a longer block is a group of its own. Each is named by its first line."""
    lines = source.split("\n")
    groups = _groups(lines)
    for start, end in groups:
        text = "\n".join(lines[start:end]).strip("\n")
        part = f"L{start + 1}" if len(groups) > 1 else ""
        yield PageContent(title, text, {"language": language, "line": start + 1}, part)


def _groups(lines: list[str]) -> list[tuple[int, int]]:
    groups: list[tuple[int, int]] = []
    for start, end in _blocks(lines):
        if groups and end - groups[-1][0] <= LARGEST_GROUP_LINES:
            groups[-1] = (groups[-1][0], end)
        else:
            groups.append((start, end))
    return groups


def _blocks(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Start and end of blocks: after blank lines, a line that is not indented starts the next one."""
    start, last = None, 0
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        if start is None:
            start = number
        elif number > last + 1 and not line[0].isspace() and line[0] not in ")]}":
            yield start, last + 1
            start = number
        last = number
    if start is not None:
        yield start, last + 1
