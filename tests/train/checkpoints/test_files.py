"""Weight files."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")
pytest.importorskip("sentence_transformers", reason="training needs sentence-transformers: pip install trilens[train]")


from trilens.errors import BadModel
from trilens.train.checkpoints import load_checkpoint

from .published import bge_m3


def test_pickles_with_code_are_rejected(tmp_path: Path) -> None:
    bge_m3(tmp_path)
    torch.save({"weight": Path("x"), "bias": Path("y")}, tmp_path / "colbert_linear.pt")
    with pytest.raises(BadModel, match="cannot be read as plain tensors") as refused:
        load_checkpoint(tmp_path)
    assert "\n" not in str(refused.value)


def test_empty_files_are_named(tmp_path: Path) -> None:
    bge_m3(tmp_path)
    (tmp_path / "colbert_linear.pt").write_bytes(b"")
    with pytest.raises(BadModel, match=r"cannot be read as plain tensors \([a-zA-Z]"):
        load_checkpoint(tmp_path)
