"""The graphs of all encoder types against transformers."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("torch", reason="the originals run in torch: pip install trilens[train]")
pytest.importorskip("onnx", reason="part of trilens[export]")

from trilens.encode.folder import Precision
from trilens.encode.onnx import open_session
from trilens.encode.tokens import Tokens
from trilens.errors import BadModel
from trilens.export.backbone import BackboneWriter, open_backbone
from trilens.export.calibrate import calibrate
from trilens.export.calibration_texts import TokenisedText
from trilens.export.encoder_graph import EncoderGraph

from .tiny import KINDS, SHIFT, WORDS, texts, torch, write_plain

LENGTHS = (300, 9, 3)


@pytest.fixture(params=KINDS, scope="module")
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[BackboneWriter, Any]:
    folder = tmp_path_factory.mktemp(request.param)
    model = write_plain(folder, request.param)
    return open_backbone(folder), model


def batch() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Texts of very different lengths; the first contains the padding token, the last is followed by mask tokens."""
    ids = np.random.default_rng(1).integers(SHIFT, len(WORDS), (len(LENGTHS), max(LENGTHS)))
    mask = (np.arange(max(LENGTHS)) < np.array(LENGTHS)[:, None]).astype(np.int64)
    ids[0, 5] = WORDS.index("[PAD]")
    ids[2, 3:20] = WORDS.index("[MASK]")
    return ids, mask


def original_states(model: Any) -> NDArray[np.float32]:
    ids, mask = batch()
    with torch.no_grad():
        states = model(input_ids=torch.from_numpy(ids), attention_mask=torch.from_numpy(mask)).last_hidden_state
    return np.asarray(states.numpy())


def written_states(backbone: BackboneWriter, folder: Path, precision: Precision, ranges: Any = None) -> NDArray[np.float32]:
    graph = EncoderGraph(backbone, "mean", precision, ranges)
    (folder / "model.onnx").write_bytes(graph.model([graph.states]))
    ids, mask = batch()
    run = open_session(folder / "model.onnx", {graph.states: None}, 1)
    return run([graph.states], {"input_ids": ids, "attention_mask": mask})[0]


def cosines(actual: NDArray[np.float32], expected: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(actual, axis=-1) * np.linalg.norm(expected, axis=-1)
    cosine: NDArray[np.float32] = (actual * expected).sum(-1) / lengths
    return cosine


def test_float32_equals_transformers(pair: tuple[BackboneWriter, Any], tmp_path: Path) -> None:
    backbone, model = pair
    actual, expected = written_states(backbone, tmp_path, "float32"), original_states(model)
    kept = batch()[1].astype(bool)
    kept[2, 3:20] = True  # filling that others do not attend to has states as well
    np.testing.assert_allclose(actual[kept], expected[kept], atol=1e-4)


def test_8_bit_weights_are_close(pair: tuple[BackboneWriter, Any], tmp_path: Path) -> None:
    backbone, model = pair
    actual = cosines(written_states(backbone, tmp_path, "int8-weights"), original_states(model))
    assert actual[batch()[1] == 1].mean() > 0.99


def test_8_bit_products_are_close(pair: tuple[BackboneWriter, Any], tmp_path: Path) -> None:
    backbone, model = pair
    tokens = Tokens(backbone.checkpoint.folder / "tokenizer.json")
    ids, _ = tokens.encode(texts(), 64)
    ranges = calibrate(backbone, [TokenisedText(row, len(row)) for row in ids])
    actual = written_states(backbone, tmp_path, "int8", ranges)
    assert cosines(actual, original_states(model))[batch()[1] == 1].mean() > 0.97
    np.testing.assert_array_equal(actual, written_states(backbone, tmp_path, "int8", ranges))


def test_longest(tmp_path: Path) -> None:
    longest = {kind: open_after(write_plain, tmp_path / kind, kind).longest for kind in ("bert", "xlm-roberta", "mpnet", "t5")}
    assert longest == {"bert": 330, "xlm-roberta": 328, "mpnet": 328, "t5": None}


def open_after(write: Any, folder: Path, kind: str) -> BackboneWriter:
    write(folder, kind)
    return open_backbone(folder)


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("model_type", "llama", "model_type 'llama'; expected one of bert, "),
        ("hidden_act", "silu", "hidden_act 'silu'; expected one of ['gelu'"),
        ("position_embedding_type", "relative_key", "expected 'absolute'"),
        ("num_hidden_layers", "two", "num_hidden_layers 'two'; expected a whole number"),
        ("num_hidden_layers", 3, "no tensor 'encoder.layer.2."),
        ("hidden_size", 16, "is 209 × 32; expected any × 16"),
    ],
)
def test_invalid_sources(tmp_path: Path, setting: str, value: object, message: str) -> None:
    write_plain(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {setting: value}))
    with pytest.raises(BadModel) as refused:
        EncoderGraph(open_backbone(tmp_path), "mean", "float32")
    assert message in str(refused.value) and "\n" not in str(refused.value)


def test_invalid_folders(tmp_path: Path) -> None:
    write_plain(tmp_path / "t5", "t5", feed_forward_proj="gated-silu")
    with pytest.raises(BadModel, match="feed_forward_proj 'gated-silu'; expected one of"):
        open_backbone(tmp_path / "t5")
    with pytest.raises(BadModel, match="there is no folder"):
        open_backbone(tmp_path / "none")
    write_plain(tmp_path / "bert")
    weights = tmp_path / "bert" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-5])
    with pytest.raises(BadModel, match="cannot be read"):
        open_backbone(tmp_path / "bert")
    shutil.move(weights, tmp_path / "bert" / "pytorch_model.bin")
    with pytest.raises(BadModel, match=r"as pytorch_model.bin; expected model.safetensors"):
        open_backbone(tmp_path / "bert")
    (tmp_path / "bert" / "pytorch_model.bin").unlink()
    with pytest.raises(BadModel, match=r"model\.safetensors is missing"):
        open_backbone(tmp_path / "bert")
    (tmp_path / "bert" / "config.json").write_text("[1]")
    with pytest.raises(BadModel, match="holds a list; expected an object"):
        open_backbone(tmp_path / "bert")
