"""The chapter on small collections with the bundled model, run as a command."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.everyday.__main__ import systems_of
from benchmarks.everyday.build import write
from benchmarks.everyday.questions import Question, write_rows
from benchmarks.judged import DEFAULT_SEARCH
from benchmarks.quality import LENSES
from benchmarks.record import ROOT
from trilens.collection import Collection
from trilens.encode.folder import ModelFolder
from trilens.encode.models import resolve_model
from trilens.store.config import DEFAULT_MODEL
from trilens.text.document import Document

DOCUMENTS = [
    Document("cat", "The cat sleeps on the warm roof and hunts mice at night.", "cat"),
    Document("dog", "A dog guards the farm and barks at strangers.", "dog"),
    Document("fish", "Fish breathe through gills and swim in schools.", "fish"),
    Document("bird", "Birds build nests in spring and sing before dawn.", "bird"),
]
QUESTIONS = [
    Question("which animal hunts mice", ["cat"]),
    Question("who barks at strangers", ["dog", "wolf"]),
    Question("how do fish breathe", ["fish"]),
    Question("who sings before dawn", ["bird"]),
    Question("what is a wolf", ["wolf"]),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "corpora", "stdlib", "a test", DOCUMENTS)
    write_rows(tmp_path / "questions" / "stdlib.jsonl", (question.row() for question in QUESTIONS))
    return tmp_path


def run(folder: Path, *arguments: str) -> tuple[subprocess.CompletedProcess[str], list[dict[str, Any]]]:
    command = [sys.executable, "-m", "benchmarks.everyday", "--collections", "stdlib", *arguments]
    for name in ("corpora", "questions", "cache"):
        command += [f"--{name}", str(folder / name)]
    environment = {"TRILENS_RESULTS": str(folder / "results"), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "src")}
    environment["GIT_DIR"] = str(folder)  # no commit, so that edits during the test do not change it
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    path = folder / "results" / "everyday.jsonl"
    return done, [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def test_both_halves_are_measured_once_for_each_system(folder: Path) -> None:
    done, rows = run(folder)
    assert done.returncode == 0, done.stderr
    systems = systems_of(ModelFolder.open(resolve_model(DEFAULT_MODEL)))
    assert [(row["system"], row["split"]) for row in rows] == [
        (system, split) for system in systems for split in ("dev", "test")
    ]
    assert [(row["RR@10"], row["Success@3"], row["nDCG@10"]) for row in rows if row["system"] == "bm25"] == [(1, 1, 1)] * 2
    assert {(row["left_out"], row["documents"], row["model_name"]) for row in rows} == {(1, 4, DEFAULT_MODEL)}
    expected = {split: sum(question.split == split for question in QUESTIONS[:4]) for split in ("dev", "test")}
    assert {row["split"]: row["queries"] for row in rows} == expected
    again, same = run(folder)
    assert (again.returncode, same) == (0, rows)


def test_a_collection_that_is_not_built_is_an_error(folder: Path) -> None:
    done, rows = run(folder, "--corpora", str(folder / "nowhere"), "--collections", "debian")
    assert done.returncode == 1
    assert "no collection debian: run `python -m benchmarks.everyday.build" in done.stderr
    assert rows == []


def test_the_default_search_is_that_of_a_collection_without_options(tmp_path: Path) -> None:
    how = systems_of(ModelFolder.open(resolve_model(DEFAULT_MODEL)))[DEFAULT_SEARCH]
    texts = [question.text for question in QUESTIONS]
    with Collection.create(tmp_path / "default") as default, Collection.create(tmp_path / "all", lenses=LENSES) as every:
        for collection in (default, every):
            collection.ingest(DOCUMENTS)
        expected = [[(hit.doc_id, hit.score) for hit in hits] for hits in default.search(texts, 10)]
        found = every.search(texts, 10, lenses=how.lenses, fusion=how.fusion)
        assert [[(hit.doc_id, hit.score) for hit in hits] for hits in found] == expected
