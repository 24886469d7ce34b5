"""Incomplete checkpoints are ignored, damaged ones are errors."""

from pathlib import Path

import pytest

from trilens.errors import BadInput
from trilens.train.checkpointing import last_complete, require_intact, seal


def checkpoint(run: Path, step: int, sealed: bool = True) -> Path:
    folder = run / f"checkpoint-{step}"
    (folder / "inner").mkdir(parents=True)
    (folder / "weights").write_bytes(b"weights" * step)
    (folder / "inner" / "state").write_text("state")
    if sealed:
        seal(folder)
    return folder


def test_last_complete_checkpoint_is_used_and_incomplete_ones_removed(tmp_path: Path) -> None:
    checkpoint(tmp_path, 9)
    wanted = checkpoint(tmp_path, 10)
    unfinished = checkpoint(tmp_path, 11, sealed=False)
    assert last_complete(tmp_path) == wanted
    assert not unfinished.exists()


def test_without_checkpoints(tmp_path: Path) -> None:
    assert last_complete(tmp_path) is None


@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
@pytest.mark.parametrize("name", ["weights", "inner/state"])
def test_damaged_files_are_reported_by_name(tmp_path: Path, damage: str, name: str) -> None:
    file = checkpoint(tmp_path, 3) / name
    content = file.read_bytes()
    if damage == "remove":
        file.unlink()
    else:
        file.write_bytes(content[:-1] if damage == "cut" else bytes([content[0] ^ 1]) + content[1:])
    with pytest.raises(BadInput, match=f"{file} is (damaged|missing)"):
        last_complete(tmp_path)


def test_unsealed_checkpoint_is_not_intact(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="not a complete checkpoint"):
        require_intact(checkpoint(tmp_path, 1, sealed=False))


def test_unexpected_folders_are_reported(tmp_path: Path) -> None:
    (tmp_path / "checkpoint-mine").mkdir()
    with pytest.raises(BadInput, match="checkpoint-mine is not a checkpoint"):
        last_complete(tmp_path)
