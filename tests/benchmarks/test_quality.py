"""The quality chapter on a small judged collection with the bundled model, run as a command."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.judged import DEFAULT_SEARCH, TUNED
from benchmarks.record import ROOT
from trilens.encode.folder import ModelFolder
from trilens.encode.models import resolve_model
from trilens.search.options import fused_name
from trilens.store.config import DEFAULT_LENSES, DEFAULT_MODEL

NAME = "cacm"  # one of the averaged collections
ANIMALS = {
    "cat": "The cat sleeps on the warm roof and hunts mice at night.",
    "dog": "A dog guards the farm and barks at strangers.",
    "fish": "Fish breathe through gills and swim in schools.",
    "bird": "Birds build nests in spring and sing before dawn.",
}
QUESTIONS = {"cat": "which animal hunts mice", "dog": "who barks at strangers", "fish": "how do fish breathe"}


def write_jsonl(path: Path, texts: dict[str, str]) -> None:
    path.write_text("".join(json.dumps({"_id": name, "text": text}) + "\n" for name, text in texts.items()), encoding="utf-8")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data" / NAME
    (folder / "qrels").mkdir(parents=True)
    write_jsonl(folder / "corpus.jsonl", ANIMALS)
    write_jsonl(folder / "queries.jsonl", QUESTIONS)
    judged = "".join(f"{name}\t{name}\t1\n" for name in QUESTIONS)
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}", encoding="utf-8")
    return folder.parent


def run(data: Path, *systems: str) -> tuple[subprocess.CompletedProcess[str], list[dict[str, Any]]]:
    folder = data.parent
    command = [sys.executable, "-m", "benchmarks.quality", "--data", str(data), "--sets", NAME, "--systems", *systems]
    environment = {"TRILENS_RESULTS": str(folder / "results"), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "src")}
    environment["GIT_DIR"] = str(folder)  # no commit, so that edits during the test do not change it
    done = subprocess.run(
        [*command, "--cache", str(folder / "cache")], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    path = folder / "results" / "quality.jsonl"
    return done, [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def test_lenses_share_one_encoding_and_a_second_run_repeats_nothing(data: Path) -> None:
    done, rows = run(data, "bm25", "dense")
    assert done.returncode == 0, done.stderr
    assert [(row["system"], row["nDCG@10"], row["R@100"]) for row in rows] == [("bm25", 1.0, 1.0), ("dense", 1.0, 1.0)]
    assert {row["model"] for row in rows} == {next((data.parent / "cache").iterdir()).name}
    segments = {path: path.stat().st_mtime_ns for path in (data.parent / "cache").rglob("segments/*")}
    _, again = run(data, "bm25", "dense", "rrf of bm25 and dense")
    assert [row["system"] for row in again] == ["bm25", "dense", "rrf of bm25 and dense"]
    assert segments == {path: path.stat().st_mtime_ns for path in (data.parent / "cache").rglob("segments/*")}
    lines = (data.parent / "results" / "significance.jsonl").read_text(encoding="utf-8").splitlines()
    compared = [json.loads(line) for line in lines]
    assert [(row["baseline"], row["difference"], row["p_value"]) for row in compared] == [("bm25", 0, 1), ("dense", 0, 1)]


def test_without_dev_questions_the_tuned_fusion_is_recorded_as_missing(data: Path) -> None:
    done, rows = run(data, "bm25", TUNED)
    assert done.returncode == 0, done.stderr
    missing = [row for row in rows if "missing" in row]
    assert [row["system"] for row in missing] == [TUNED]
    assert "nfcorpus" in missing[0]["missing"]


def test_the_default_search_has_the_lenses_and_the_fusion_of_a_collection_without_options(data: Path) -> None:
    done, (row,) = run(data, DEFAULT_SEARCH)
    assert done.returncode == 0, done.stderr
    config = ModelFolder.open(resolve_model(DEFAULT_MODEL)).config
    assert row["fusion"] == config.fusion[fused_name(DEFAULT_LENSES)]
