"""Fixtures of the tests of readers."""

from pathlib import Path

import pytest

from .files import CORPUS


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    path.write_text(CORPUS)
    return path
