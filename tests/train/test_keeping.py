"""Checkpoints are complete or do not count."""

from pathlib import Path

import pytest

from trilens.errors import BadInput
from trilens.train.keeping import last_complete, require_sound, seal


def checkpoint(run: Path, step: int, sealed: bool = True) -> Path:
    folder = run / f"checkpoint-{step}"
    (folder / "inner").mkdir(parents=True)
    (folder / "weights").write_bytes(b"weights" * step)
    (folder / "inner" / "state").write_text("state")
    if sealed:
        seal(folder)
    return folder


def test_the_last_complete_one_counts_and_what_was_not_finished_goes(tmp_path: Path) -> None:
    checkpoint(tmp_path, 9)
    wanted = checkpoint(tmp_path, 10)
    unfinished = checkpoint(tmp_path, 11, sealed=False)
    assert last_complete(tmp_path) == wanted
    assert not unfinished.exists()


def test_no_checkpoint_is_none(tmp_path: Path) -> None:
    assert last_complete(tmp_path) is None


@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
@pytest.mark.parametrize("name", ["weights", "inner/state"])
def test_a_damaged_one_is_refused_by_name(tmp_path: Path, damage: str, name: str) -> None:
    file = checkpoint(tmp_path, 3) / name
    content = file.read_bytes()
    if damage == "remove":
        file.unlink()
    else:
        file.write_bytes(content[:-1] if damage == "cut" else bytes([content[0] ^ 1]) + content[1:])
    with pytest.raises(BadInput, match=f"{file} is (damaged|missing)"):
        last_complete(tmp_path)


def test_one_that_was_never_sealed_is_not_sound(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="not a complete checkpoint"):
        require_sound(checkpoint(tmp_path, 1, sealed=False))


def test_a_strange_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "checkpoint-mine").mkdir()
    with pytest.raises(BadInput, match="checkpoint-mine is in the way"):
        last_complete(tmp_path)
