"""Reading of trained heads."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("torch", reason="the originals run in torch: pip install trilens[train]")
pytest.importorskip("onnx", reason="part of trilens[export]")

from trilens.encode.folder import ModelConfig
from trilens.errors import BadModel
from trilens.export.heads import read_heads

from .tiny import DESCRIPTION, DIM, head_tensors, write_heads

Floats = NDArray[np.float32]


def described(**changes: object) -> ModelConfig:
    return ModelConfig.model_validate(DESCRIPTION | {"precision": "float32"} | changes)


def test_trained_heads_are_read(tmp_path: Path) -> None:
    write_heads(tmp_path / "1_Heads")
    tensors, heads = head_tensors(), read_heads(tmp_path / "1_Heads", described(), DIM)
    assert heads.dense and heads.multi and heads.sparse and heads.lexical
    np.testing.assert_array_equal(heads.multi.weight, tensors["multi.linear.weight"].T)
    np.testing.assert_array_equal(heads.multi.bias, tensors["multi.linear.bias"])
    np.testing.assert_array_equal(heads.sparse.scale, tensors["sparse.norm.weight"])
    np.testing.assert_array_equal(heads.sparse.shift, tensors["sparse.norm.bias"])
    np.testing.assert_array_equal(heads.lexical.weight[:, 0], tensors["lexical.linear.weight"][0])
    assert heads.sparse.epsilon == 1e-5
    only = read_heads(tmp_path / "1_Heads", described(heads=["multi"], sparse=None, lexical=None), DIM)
    assert (only.dense, only.sparse, only.lexical) == (None, None, None)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"multi.linear.weight": np.zeros((12, 7), np.float32)}, "'multi.linear.weight' of .* is 12 × 7; expected 12 × 32"),
        ({"sparse.norm.bias": None}, "no tensor 'sparse.norm.bias'"),
        ({"lexical.linear.bias": np.zeros(2, np.float32)}, "'lexical.linear.bias' of .* is 2; expected 1"),
    ],
)
def test_misshapen_and_missing_tensors(tmp_path: Path, changed: dict[str, Floats | None], message: str) -> None:
    tensors = {name: tensor for name, tensor in (head_tensors() | changed).items() if tensor is not None}
    write_heads(tmp_path / "1_Heads", tensors)
    with pytest.raises(BadModel, match=message):
        read_heads(tmp_path / "1_Heads", described(), DIM)
    (tmp_path / "1_Heads" / "model.safetensors").unlink()
    with pytest.raises(BadModel, match="is missing; expected the weights of the heads"):
        read_heads(tmp_path / "1_Heads", described(), DIM)
