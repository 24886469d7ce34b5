from pathlib import Path

import pytest

from trilens.errors import BadInput
from trilens.train.negatives.journal import Journal


def test_incomplete_appends_are_discarded(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file"
    for turn in range(3):
        journal = Journal(path, {"what": [1, 2]})
        assert (journal.done, journal.counts) == (2 * turn, {"seen": turn} if turn else {})
        journal.append([f"line {turn}", "é"], {"seen": 1})
        journal.close()
        with (tmp_path / "deep" / "file.partial").open("ab") as file:
            file.write(b"half a li")
    journal = Journal(path, {"what": [1, 2]})
    journal.finish()
    assert path.read_text() == "line 0\né\nline 1\né\nline 2\né\n"
    assert [actual.name for actual in path.parent.iterdir()] == ["file"]


def test_unwritable_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(BadInput, match="cannot be written"):
        Journal(tmp_path / "file" / "out", {})


def test_a_job_that_has_written_nothing_leaves_nothing(tmp_path: Path) -> None:
    Journal(tmp_path / "file", {}).close()
    assert not list(tmp_path.iterdir())
