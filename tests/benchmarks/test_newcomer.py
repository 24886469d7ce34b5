"""Fresh installations and the trials of new users."""

import sys
from pathlib import Path

import pytest

from benchmarks.fresh import answers, environment
from benchmarks.newcomer import DOCUMENTS, pages
from benchmarks.record import record, rows, spread
from benchmarks.tables.newcomer import STEPS, newcomer

# Computes until its own clock shows more than the ticks of `/proc`.
BUSY = "from time import process_time as now; end = now() + 0.1\nwhile now() < end: pass"


def test_the_first_line_that_is_not_empty_is_the_first_answer(tmp_path: Path) -> None:
    code = f"print(flush=True)\n{BUSY}\nprint('first', flush=True)\n{BUSY}\nprint('last')"
    text, first, last = answers([sys.executable, "-c", code], tmp_path, environment())
    assert text == "\nfirst\nlast\n"
    assert first.cpu >= 0.05
    assert last.cpu - first.cpu >= 0.05
    assert first.wall <= last.wall


@pytest.mark.parametrize(
    ("code", "says"), [("print('a'); exit(3)", "exit code 3; it printed 1 lines"), ("print()", "exit code 0")]
)
def test_a_command_that_fails_or_does_not_answer_ends_the_trial(code: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=says):
        answers([sys.executable, "-c", code], tmp_path, environment())


def test_a_new_user_has_no_packages_caches_and_limits_of_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("PYTHONPATH", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "OMP_NUM_THREADS", "CI"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("PIP_INDEX_URL", "kept")
    variables = environment(tmp_path)
    assert variables["HOME"] == str(tmp_path)
    assert variables["PIP_INDEX_URL"] == "kept"
    assert {"PYTHONPATH", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "OMP_NUM_THREADS", "CI"} & set(variables) == set()


def test_every_module_with_docstrings_is_a_page() -> None:
    texts = pages()
    assert DOCUMENTS - 50 <= len(texts) <= DOCUMENTS
    assert texts["shutil.md"].startswith("# shutil\n\n## shutil\n\nUtility functions for copying")
    assert "## rmtree(path" in texts["shutil.md"]
    assert pages() == texts


def test_the_table_shows_the_last_row_of_each_tree(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("benchmarks.record.RESULTS", tmp_path)
    facts = {"data": "", "threads": 2, "seed": None, "repeats": 1, "documents": 300}
    for wall, tree in ((9.0, "this tree"), (4.0, "before"), (2.0, "this tree")):
        times = {name: value for step in STEPS for name, value in spread(f"{step}_wall", [wall]).items()}
        times |= {name: value / 2 for step in STEPS for name, value in spread(f"{step}_cpu", [wall]).items()}
        record("newcomer", **facts, tree=tree, tree_commit=f"commit of {tree}", **times)
    assert len(list(rows("newcomer"))) == 3
    header, _, *lines = newcomer().splitlines()
    assert header.endswith("| before, commit of before | this tree, commit of this tree |")
    assert len(lines) == len(STEPS)
    assert "| wheel: index of 300 documents | 4.0 / 2.0 | 2.0 / 1.0 |" in lines
