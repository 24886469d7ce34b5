"""Weights in other precisions, names and files."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="the originals run in torch: pip install trilens[train]")
pytest.importorskip("onnx", reason="part of trilens[export]")

from trilens.export.backbone import open_backbone
from trilens.export.encoder_graph import EncoderGraph

from .tiny import safetensors, torch, write_plain


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_16_bit_weights(tmp_path: Path, dtype: str) -> None:
    model = write_plain(tmp_path)
    exact = np.asarray(model.get_input_embeddings().weight.detach().numpy())
    model.to(getattr(torch, dtype)).save_pretrained(tmp_path)
    np.testing.assert_allclose(open_backbone(tmp_path).words, exact, rtol=2**-8)


def test_prefixed_and_old_tensor_names(tmp_path: Path) -> None:
    write_plain(tmp_path)
    file = tmp_path / "model.safetensors"
    backbone = open_backbone(tmp_path)
    old = {
        f"bert.{name}".replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in safetensors.load_file(file).items()
    }
    safetensors.save_file(old, file)
    graphs = [EncoderGraph(one, "cls", "float32").model() for one in (backbone, open_backbone(tmp_path))]
    assert graphs[0] == graphs[1]


def test_sharded_weights(tmp_path: Path) -> None:
    model = write_plain(tmp_path)
    words = open_backbone(tmp_path).words
    (tmp_path / "model.safetensors").unlink()
    model.save_pretrained(tmp_path, max_shard_size="20KB")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 1
    np.testing.assert_array_equal(open_backbone(tmp_path).words, words)
