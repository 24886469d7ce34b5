"""The plug-ins of docs/plugins.md, installed as a package and used from the command line."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .pages import ROOT, SNIPPET, commands

EXAMPLE = ROOT / "docs" / "examples" / "trilens_extras"
SUBTITLES = """\
1
00:00:01,000 --> 00:00:02,500
Grease the pump bearing

2
00:00:03,000 --> 00:00:04,000
every month.
"""

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for sys.path with the modules of the package and the metadata that an installer writes."""
    site = tmp_path_factory.mktemp("site")
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    for module in EXAMPLE.glob("*.py"):
        shutil.copy(module, site)
    info = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(groups))
    return site


@pytest.fixture(scope="module")
def collection(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    """Documents indexed by the plug-in lens, one of them read by the plug-in reader; and the command line that sees both."""
    folder = tmp_path_factory.mktemp("plugins")
    sources = folder / "sources"
    sources.mkdir()
    (sources / "pumps.txt").write_text("Centrifugal pumps move liquids.")
    (sources / "film.srt").write_text(SUBTITLES)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(installed), str(ROOT / "src")])}

    def run(*arguments: str) -> Any:
        command = [sys.executable, "-m", "trilens", *arguments, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    run("index", "sources", "--to", "my.trilens", "--lens", "bm25,trigrams")
    return folder, run


def test_the_commands_of_the_page_run(collection: tuple[Path, Run]) -> None:
    folder, run = collection
    shutil.copytree(folder / "sources", folder / "notes")
    written = [shlex.split(command.text) for command in commands(ROOT / "docs" / "plugins.md")]
    assert [words[:2] for words in written] == [["trilens", "index"], ["trilens", "search"], ["trilens", "explain"]]
    for words in written:
        assert run(*words[1:])


def test_the_page_includes_every_file_of_the_example() -> None:
    included = {ROOT / path for path in SNIPPET.findall((ROOT / "docs" / "plugins.md").read_text())}
    assert included == {path for path in EXAMPLE.iterdir() if path.is_file()}


def test_the_reader_supplies_text_and_metadata(collection: tuple[Path, Run]) -> None:
    _, run = collection
    film = run("get", "my.trilens", "film.srt")
    assert film["text"].split() == ["Grease", "the", "pump", "bearing", "every", "month."]
    assert film["metadata"]["until"] == "00:00:04,000"


def test_the_lens_finds_misspelled_words(collection: tuple[Path, Run]) -> None:
    _, run = collection
    assert run("search", "my.trilens", "centrifugel", "--lens", "bm25")["hits"] == []
    hits = run("search", "my.trilens", "centrifugel", "--lens", "trigrams")["hits"]
    assert [hit["doc_id"] for hit in hits] == ["pumps.txt"]


def test_the_parts_of_its_scores_add_up_and_have_places(collection: tuple[Path, Run]) -> None:
    _, run = collection
    explanation = run("explain", "my.trilens", "centrifugel", "pumps.txt", "--lens", "trigrams")
    assert sum(part["score"] for part in explanation["parts"]) == pytest.approx(explanation["score"], rel=1e-5)
    (first, *_) = [part for part in explanation["parts"] if part["label"] == "_ce"]
    assert [explanation["passage"]["text"][start:end] for start, end in first["doc_spans"]] == ["Ce"]


def test_the_lens_is_fused_with_others_and_takes_parameters(collection: tuple[Path, Run]) -> None:
    _, run = collection
    hits = run("search", "my.trilens", "pumpe bearing", "--fusion", "rrf:trigrams=2,bm25=1")["hits"]
    assert set(hits[0]["by_lens"]) == {"bm25", "trigrams"}
    exact = run("search", "my.trilens", "pumpe", "--lens", "trigrams", "--params", "trigrams:method=exact")["hits"]
    assert {hit["doc_id"] for hit in exact} == {"pumps.txt", "film.srt"}
