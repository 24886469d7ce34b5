"""Heads of the encoder graph against numpy."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("torch", reason="the originals run in torch: pip install trilens[train]")
pytest.importorskip("onnx", reason="part of trilens[export]")

from trilens.encode.onnx import open_session
from trilens.export.backbone import BackboneWriter, open_backbone
from trilens.export.encoder_graph import EncoderGraph, Pooling
from trilens.export.heads import DenseWeights, HeadWeights, MultiWeights, PerToken

from .tiny import DIM, write_plain

Floats = NDArray[np.float32]
RNG = np.random.default_rng(2)
IDS = RNG.integers(7, 200, (3, 9))
MASK = (np.arange(9) < np.array([9, 4, 1])[:, None]).astype(np.int64)


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> BackboneWriter:
    folder = tmp_path_factory.mktemp("bert")
    write_plain(folder)
    return open_backbone(folder)


def run(
    folder: Path, backbone: BackboneWriter, heads: HeadWeights, output: str, pooling: Pooling = "mean"
) -> tuple[Floats, Floats]:
    """The output of a head, and the states it was computed from."""
    graph = EncoderGraph(backbone, pooling, "float32", heads=heads)
    (folder / "model.onnx").write_bytes(graph.model([graph.states]))
    names = [output, graph.states]
    actual, states = open_session(folder / "model.onnx", dict.fromkeys(names), 1)(
        names, {"input_ids": IDS, "attention_mask": MASK}
    )
    return actual, states


def unit(rows: Floats) -> Floats:
    lengths: Floats = np.linalg.norm(rows, axis=-1, keepdims=True)
    return rows / lengths


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_dense(tmp_path: Path, backbone: BackboneWriter, pooling: Pooling) -> None:
    actual, states = run(tmp_path, backbone, HeadWeights(), "dense", pooling)
    means = np.stack([row[:count].mean(axis=0) for row, count in zip(states, MASK.sum(axis=1), strict=True)])
    pooled = states[:, 0] if pooling == "cls" else means
    np.testing.assert_allclose(actual, unit(pooled), atol=1e-6)


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("tanh", [False, True])
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_projected_dense(tmp_path: Path, backbone: BackboneWriter, pooling: Pooling, tanh: bool, normalised: bool) -> None:
    weight, bias = RNG.normal(0, 0.1, (DIM, 5)).astype(np.float32), RNG.normal(size=5).astype(np.float32)
    actual, states = run(tmp_path, backbone, HeadWeights(DenseWeights(normalised, weight, bias, tanh)), "dense", pooling)
    means = np.stack([row[:count].mean(axis=0) for row, count in zip(states, MASK.sum(axis=1), strict=True)])
    expected = (states[:, 0] if pooling == "cls" else means) @ weight + bias
    expected = np.tanh(expected) if tanh else expected
    np.testing.assert_allclose(actual, unit(expected) if normalised else expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("closing_mean", [False, True])
@pytest.mark.parametrize("with_bias", [False, True])
def test_multi(tmp_path: Path, backbone: BackboneWriter, normalised: bool, closing_mean: bool, with_bias: bool) -> None:
    weight = RNG.normal(size=(DIM, 5)).astype(np.float32)
    bias = RNG.normal(size=5).astype(np.float32) if with_bias else None
    head = MultiWeights(weight, normalised, bias, closing_mean)
    actual, states = run(tmp_path, backbone, HeadWeights(dense=None, multi=head), "multi")
    expected = states @ weight + (0 if bias is None else bias)
    if closing_mean:
        for row, count in zip(expected, MASK.sum(axis=1), strict=True):
            row[count - 1] = row[:count].mean(axis=0)
    if normalised:
        expected = unit(expected)
    np.testing.assert_allclose(actual[MASK == 1], expected[MASK == 1], rtol=1e-4, atol=1e-5)


def test_weights_of_queries(tmp_path: Path, backbone: BackboneWriter) -> None:
    weight, bias = RNG.normal(size=(DIM, 1)).astype(np.float32), np.array([0.5], np.float32)
    head = MultiWeights(RNG.normal(size=(DIM, 5)).astype(np.float32), True, weigh=PerToken(weight, bias))
    actual, states = run(tmp_path, backbone, HeadWeights(dense=None, multi=head), "multi_weights")
    np.testing.assert_allclose(actual, np.log1p(np.exp(states @ weight + bias))[..., 0], rtol=1e-4, atol=1e-5)


def test_lexical(tmp_path: Path, backbone: BackboneWriter) -> None:
    weight = RNG.normal(size=(DIM, 1)).astype(np.float32)
    _, states = run(tmp_path, backbone, HeadWeights(), "dense")
    head = PerToken(weight, -np.median(states @ weight).reshape(1))  # half of the weights are below zero
    actual, states = run(tmp_path, backbone, HeadWeights(lexical=head), "lexical")
    np.testing.assert_allclose(actual, np.maximum(states @ head.weight + head.bias, 0)[..., 0], atol=1e-5)
    assert (actual == 0).any() and (actual > 0).any()
