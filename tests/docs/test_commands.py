"""Every shell command of README.md, CONTRIBUTING.md and docs/*.md is run on small data, or parsed where that is impossible.

Commands are run if they need neither the network, torch nor minutes; `parsed` says which ones are not. Parsing checks that
the command, its options, and the files and extras of the repository that it names exist.
"""

import io
import json
import os
import re
import shlex
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.__main__ import CHAPTERS
from trilens.cli.main import load_command, main

from .pages import PAGES, ROOT, Command, commands, python

PLUGINS = ROOT / "docs" / "plugins.md"  # needs an installed package: test_plugins.py runs it
OTHER_PACKAGES = [ROOT / "docs" / name for name in ("integrations.md", "send.md")]  # tests/doors/test_page.py runs their Python
COMMANDS = [command for page in PAGES if page != PLUGINS for command in commands(page)]
NEEDS_TORCH_OR_SERVER = ("train", "export", "serve", "mcp", "demo")
STARTERS = ("torchrun", "uvx", "pipx", "docker")  # the arguments after the last `trilens` are those of the command
NETWORK = re.compile(r"^beir/|^irds/|^(\w+\+)?https?://|^postgresql:|^cross-encoder/|^BAAI/|^vsearch/")


def parsed(command: Command) -> bool:
    """Whether a command is only parsed."""
    words = shlex.split(command.text)
    if words[0] == "trilens":
        return words[1] in NEEDS_TORCH_OR_SERVER or any(NETWORK.match(word) for word in words[2:])
    return words[0] in ("pip", *STARTERS) or words[0].startswith("./scripts/")


def run(command: Command) -> bool:
    """Whether a command is run."""
    return command.text.startswith(("trilens ", "cat ")) and not parsed(command)


def requested(command: Command) -> bool:
    """Whether a command is a request to the service, sent by test_requests.py."""
    return command.text.startswith("curl ")


def test_every_command_is_either_run_or_parsed_or_sent() -> None:
    assert len(COMMANDS) > 80
    for command in COMMANDS:
        assert [run(command), parsed(command), requested(command)].count(True) == 1, command


@pytest.mark.parametrize("page", [page for page in PAGES if page != PLUGINS], ids=lambda page: page.name)
def test_commands_run(
    page: Path, page_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commands of a page in order, in one folder."""
    for command in filter(run, commands(page)):
        words = shlex.split(command.text)
        stdin = b""
        if words[0] == "cat":
            file, pipe, *words = words[1:]
            stdin = Path(file).read_bytes()
            assert pipe == "|", command
        monkeypatch.setattr(sys, "argv", words)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = _exit_code(main)
        captured = capsys.readouterr()
        assert code == 0, f"{command}\n{captured.err}"
        assert captured.out, command
        if "--json" in words:
            assert all(json.loads(line) for line in captured.out.splitlines()), command


@pytest.mark.parametrize("command", [command for command in COMMANDS if parsed(command)], ids=str)
def test_commands_parse(command: Command) -> None:
    words = shlex.split(command.text)
    if words[0] in STARTERS:
        words = words[len(words) - words[::-1].index("trilens") - 1 :] if "trilens" in words else ["trilens"]
    checks: dict[str, Callable[[list[str]], None]] = {"trilens": parse_trilens, "pip": parse_pip}
    checks.get(words[0], parse_script)(words)
    for word in words[1:]:
        if word.startswith(("recipes/", "benchmarks/", "scripts/")):
            assert (ROOT / word).exists(), command


def parse_trilens(words: list[str]) -> None:
    """The command exists and accepts these arguments and options."""
    if words[1:] in ([], ["."], ["--version"]):  # a start without a command, or the build of an image
        return
    with load_command(words[1]).make_context(words[1], list(words[2:])) as context:
        assert context.params


def parse_pip(words: list[str]) -> None:
    """The repository or a pinned extra of it is installed."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    matched = re.fullmatch(r"\.(?:\[(.+)\])?", words[2])
    assert words[:2] == ["pip", "install"] and matched, words
    assert set(filter(None, (matched[1] or "").split(","))) <= set(extras)


def parse_script(words: list[str]) -> None:
    """The script exists; arguments of `bench` and `demo` are those of the programs that they start."""
    script = ROOT / words[0]
    assert script.is_file() and os.access(script, os.X_OK), words
    if script.name == "demo":
        parse_trilens(["trilens", "demo", *words[1:]])
    elif script.name == "bench" and words[1] != "--help":
        assert words[1] in [*CHAPTERS, "speed"], words
    elif words[1:] and words[1] != "--help":
        markers = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["markers"]
        assert words[1:] in [["-m", marker.partition(":")[0]] for marker in markers], words


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page not in OTHER_PACKAGES and python(page)], ids=lambda page: page.name
)
def test_python_blocks_run(page: Path, page_folder: Path) -> None:
    """The blocks of a page in order, in one namespace."""
    namespace: dict[str, object] = {}
    for block in python(page):
        exec(compile("\n" * (block.line - 1) + block.code, str(page), "exec"), namespace)


def _exit_code(function: Callable[[], None]) -> int:
    try:
        function()
    except SystemExit as leaving:
        return int(leaving.code or 0)
    return 0
