"""The heads in the graph against numpy."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("torch", reason="the originals run in torch: pip install trilens[train]")
pytest.importorskip("onnx", reason="part of trilens[export]")

from trilens.encode.folder import ModelConfig
from trilens.encode.onnx import open_session
from trilens.errors import BadModel
from trilens.export.backbone import Backbone, open_backbone
from trilens.export.encoder import EncoderGraph, Pooling
from trilens.export.heads import Heads, PerToken, Pooled, Projection, read_heads

from .tiny import DESCRIPTION, DIM, head_tensors, write_heads, write_plain

Floats = NDArray[np.float32]
RNG = np.random.default_rng(2)
IDS = RNG.integers(7, 200, (3, 9))
MASK = (np.arange(9) < np.array([9, 4, 1])[:, None]).astype(np.int64)


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> Backbone:
    folder = tmp_path_factory.mktemp("bert")
    write_plain(folder)
    return open_backbone(folder)


def run(folder: Path, backbone: Backbone, heads: Heads, output: str, pooling: Pooling = "mean") -> tuple[Floats, Floats]:
    """What a head gives, and the states it was given."""
    graph = EncoderGraph(backbone, pooling, "float32", heads=heads)
    (folder / "model.onnx").write_bytes(graph.model([graph.states]))
    names = [output, graph.states]
    found, states = open_session(folder / "model.onnx", dict.fromkeys(names), 1)(
        names, {"input_ids": IDS, "attention_mask": MASK}
    )
    return found, states


def unit(rows: Floats) -> Floats:
    lengths: Floats = np.linalg.norm(rows, axis=-1, keepdims=True)
    return rows / lengths


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_dense(tmp_path: Path, backbone: Backbone, pooling: Pooling) -> None:
    found, states = run(tmp_path, backbone, Heads(), "dense", pooling)
    means = np.stack([row[:count].mean(axis=0) for row, count in zip(states, MASK.sum(axis=1), strict=True)])
    pooled = states[:, 0] if pooling == "cls" else means
    np.testing.assert_allclose(found, unit(pooled), atol=1e-6)


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("tanh", [False, True])
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_projected_dense(tmp_path: Path, backbone: Backbone, pooling: Pooling, tanh: bool, normalised: bool) -> None:
    weight, bias = RNG.normal(0, 0.1, (DIM, 5)).astype(np.float32), RNG.normal(size=5).astype(np.float32)
    found, states = run(tmp_path, backbone, Heads(Pooled(normalised, weight, bias, tanh)), "dense", pooling)
    means = np.stack([row[:count].mean(axis=0) for row, count in zip(states, MASK.sum(axis=1), strict=True)])
    expected = (states[:, 0] if pooling == "cls" else means) @ weight + bias
    expected = np.tanh(expected) if tanh else expected
    np.testing.assert_allclose(found, unit(expected) if normalised else expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("closing_mean", [False, True])
@pytest.mark.parametrize("with_bias", [False, True])
def test_multi(tmp_path: Path, backbone: Backbone, normalised: bool, closing_mean: bool, with_bias: bool) -> None:
    weight = RNG.normal(size=(DIM, 5)).astype(np.float32)
    bias = RNG.normal(size=5).astype(np.float32) if with_bias else None
    head = Projection(weight, normalised, bias, closing_mean)
    found, states = run(tmp_path, backbone, Heads(dense=None, multi=head), "multi")
    expected = states @ weight + (0 if bias is None else bias)
    if closing_mean:
        for row, count in zip(expected, MASK.sum(axis=1), strict=True):
            row[count - 1] = row[:count].mean(axis=0)
    if normalised:
        expected = unit(expected)
    np.testing.assert_allclose(found[MASK == 1], expected[MASK == 1], rtol=1e-4, atol=1e-5)


def test_weights_of_queries(tmp_path: Path, backbone: Backbone) -> None:
    weight, bias = RNG.normal(size=(DIM, 1)).astype(np.float32), np.array([0.5], np.float32)
    head = Projection(RNG.normal(size=(DIM, 5)).astype(np.float32), True, weigh=PerToken(weight, bias))
    found, states = run(tmp_path, backbone, Heads(dense=None, multi=head), "multi_weights")
    np.testing.assert_allclose(found, np.log1p(np.exp(states @ weight + bias))[..., 0], rtol=1e-4, atol=1e-5)


def test_lexical(tmp_path: Path, backbone: Backbone) -> None:
    weight = RNG.normal(size=(DIM, 1)).astype(np.float32)
    _, states = run(tmp_path, backbone, Heads(), "dense")
    head = PerToken(weight, -np.median(states @ weight).reshape(1))  # half of the weights are below zero
    found, states = run(tmp_path, backbone, Heads(lexical=head), "lexical")
    np.testing.assert_allclose(found, np.maximum(states @ head.weight + head.bias, 0)[..., 0], atol=1e-5)
    assert (found == 0).any() and (found > 0).any()


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
    ("changed", "says"),
    [
        ({"multi.linear.weight": np.zeros((12, 7), np.float32)}, "'multi.linear.weight' of .* is 12 × 7; expected 12 × 32"),
        ({"sparse.norm.bias": None}, "no tensor 'sparse.norm.bias'"),
        ({"lexical.linear.bias": np.zeros(2, np.float32)}, "'lexical.linear.bias' of .* is 2; expected 1"),
    ],
)
def test_heads_that_do_not_fit(tmp_path: Path, changed: dict[str, Floats | None], says: str) -> None:
    tensors = {name: tensor for name, tensor in (head_tensors() | changed).items() if tensor is not None}
    write_heads(tmp_path / "1_Heads", tensors)
    with pytest.raises(BadModel, match=says):
        read_heads(tmp_path / "1_Heads", described(), DIM)
    (tmp_path / "1_Heads" / "model.safetensors").unlink()
    with pytest.raises(BadModel, match="is missing; expected the weights of the heads"):
        read_heads(tmp_path / "1_Heads", described(), DIM)
