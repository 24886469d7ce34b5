"""Command line of the benchmark book."""

import subprocess
import sys
from importlib.util import find_spec

from benchmarks.__main__ import CHAPTERS, SPEED
from benchmarks.record import ROOT


def test_every_chapter_is_listed_with_its_requirements_and_has_its_scripts() -> None:
    run = subprocess.run([sys.executable, "-m", "benchmarks", "--help"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name, chapter in CHAPTERS.items():
        assert f"  {name} " in run.stdout
        assert f"needs {chapter.needs}; takes {chapter.takes}" in run.stdout
        assert [call for call in (*chapter.before, *chapter.runs) if find_spec(f"benchmarks.{call[0]}") is None] == []
    assert set(SPEED) < set(CHAPTERS)


def test_an_unknown_chapter_is_an_error() -> None:
    run = subprocess.run([sys.executable, "-m", "benchmarks", "none"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert "invalid choice: 'none'" in run.stderr
