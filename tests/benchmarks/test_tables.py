"""Generated tables against the recorded rows."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.peers.environments import REQUIREMENTS
from benchmarks.plots import frontier
from benchmarks.record import COMMITTED, ROOT
from benchmarks.tables.__main__ import PAGES, SHORT_TABLES, TABLES, fill


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_table_of_a_page_matches_the_committed_rows(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "<!-- table: " in text
    assert fill(text) == text, f"{page.name} differs from the rows: run python -m benchmarks.tables"


def test_the_book_has_every_table_and_only_plots_that_exist() -> None:
    book = (ROOT / "benchmarks" / "BOOK.md").read_text(encoding="utf-8")
    assert [name for name in TABLES if f"<!-- table: {name} -->" not in book] == []
    drawn = [line.partition("](")[2].rstrip(")") for line in book.splitlines() if line.startswith("![")]
    assert drawn
    assert [path for path in drawn if not (ROOT / "benchmarks" / path).exists()] == []


def test_readme_has_the_short_tables_and_the_documentation_the_full_ones() -> None:
    readme, benchmarks = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/benchmarks.md"))
    assert [name for name in SHORT_TABLES if f"<!-- table: {name} -->" not in readme] == []
    assert [name for name in ("quality", "speed") if f"<!-- table: {name} -->" not in benchmarks] == []


def test_the_frontier_keeps_pareto_optimal_rows() -> None:
    rows = [{"ms_median": ms, "recall_at_10": recall} for ms, recall in [(3, 0.9), (1, 0.5), (2, 0.4), (4, 0.9), (5, 0.95)]]
    assert [(row["ms_median"], row["recall_at_10"]) for row in frontier(rows)] == [(1, 0.5), (3, 0.9), (5, 0.95)]


def test_a_trial_does_not_change_the_pages_and_names_missing_peers(tmp_path: Path) -> None:
    (tmp_path / "store.jsonl").write_text(
        '{"documents": 10, "open_ms_median": 1.5, "memory_mb_worst": 0.25}\n'
        '{"system": "a peer", "missing": "could not be installed: no such version"}\n',
        encoding="utf-8",
    )
    before = [page.read_bytes() for page in PAGES]
    subprocess.run(
        [sys.executable, "-m", "benchmarks.tables"],
        cwd=ROOT,
        env={"TRILENS_RESULTS": str(tmp_path), "PATH": "", "PYTHONPATH": str(ROOT / "src")},
        check=True,
    )
    assert [page.read_bytes() for page in PAGES] == before
    book = (tmp_path / "benchmarks" / "BOOK.md").read_text(encoding="utf-8")
    assert "| 10 documents | 1.5 | 0.2 |" in book
    assert "Not measured — a peer: could not be installed: no such version." in book
    assert "No rows are recorded in `results/bm25.jsonl` yet" in book


def test_results_are_rows_of_known_chapters_and_every_requirement_is_pinned() -> None:
    chapters = {chapter for chapter, _ in TABLES.values()} | {"reference"}  # rows of the quality table
    assert {path.stem for path in COMMITTED.glob("*.jsonl")} <= chapters
    for file in REQUIREMENTS.glob("*.txt"):
        lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
        assert lines
        assert [line for line in lines if "==" not in line] == [], file.name
