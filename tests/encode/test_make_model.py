"""The graphs that `scripts/make_model.py` writes against plain numpy, on a small model of random weights."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from trilens.encode.folder import SparseHead
from trilens.encode.onnx import open_session

pytest.importorskip("onnx", reason="part of trilens[model]")
safetensors = pytest.importorskip("safetensors.numpy", reason="part of trilens[model]")

SCRIPT = Path(__file__).parents[2] / "scripts" / "make_model.py"
WORDS, DIM, SHIFT = 5000, 32, 9
Floats = NDArray[np.float32]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_model", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_model"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def bert(script: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder, rng = tmp_path_factory.mktemp("bert"), np.random.default_rng(3)
    config = {
        "model_type": "bert",
        "hidden_act": "gelu",
        "position_embedding_type": "absolute",
        "hidden_size": DIM,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "max_position_embeddings": 32,
        "layer_norm_eps": 1e-12,
    }
    (folder / "config.json").write_text(json.dumps(config))
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (WORDS, DIM),
        "embeddings.position_embeddings.weight": (32, DIM),
        "embeddings.token_type_embeddings.weight": (2, DIM),
    }
    at = "encoder.layer.0"
    for name in ("query", "key", "value"):
        shapes |= {f"{at}.attention.self.{name}.weight": (DIM, DIM), f"{at}.attention.self.{name}.bias": (DIM,)}
    for name, shape in (("attention.output.dense", (DIM, DIM)), ("intermediate.dense", (64, DIM)), ("output.dense", (DIM, 64))):
        shapes |= {f"{at}.{name}.weight": shape, f"{at}.{name}.bias": shape[:1]}
    for name in ("embeddings.LayerNorm", f"{at}.attention.output.LayerNorm", f"{at}.output.LayerNorm"):
        shapes |= {f"{name}.weight": (DIM,), f"{name}.bias": (DIM,)}
    tensors = {name: rng.normal(size=shape).astype(np.float32) * np.float32(0.3) for name, shape in shapes.items()}
    safetensors.save_file(tensors, folder / "model.safetensors")
    return script.Bert(folder)


def texts(count: int = 30) -> list[list[int]]:
    rng = np.random.default_rng(4)
    return [rng.integers(0, WORDS, length).tolist() for length in rng.integers(3, 20, count)]


def expected_weights(states: Floats, head: Any, words: Floats) -> Floats:
    """elu(x) + 1 of the highest product of each word with the states (tokens, hidden) of one text."""
    spread = np.sqrt(states.var(axis=1, keepdims=True) + 1e-12)
    x = (states - states.mean(axis=1, keepdims=True)) / spread * head.scale + head.shift
    best = (x @ words[SHIFT:].T).max(axis=0)
    activated: Floats = np.where(best > 0, best, np.exp(np.minimum(best, 0)) - 1) + 1
    return activated / np.linalg.norm(activated) if head.described.normalised else activated


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize(("precision", "error"), [("float32", 2e-5), ("int8-weights", 0.05), ("int8", 0.15)])
def test_the_sparse_head(script: ModuleType, bert: Any, tmp_path: Path, precision: str, error: float, normalised: bool) -> None:
    described = SparseHead(dim=WORDS - SHIFT, shift=SHIFT, normalised=normalised)
    head = script.fit_vocabulary(bert, described, list(script.token_states(bert, "mean", texts())))
    ranges = script.calibrate(bert, "mean", texts()) if precision == "int8" else {}
    graph = script.Graph(bert, "mean", precision, ranges, script.Heads(sparse=head))
    weights = tmp_path / "model.onnx"
    weights.write_bytes(graph.model())
    (tmp_path / "sparse.onnx").write_bytes(script.VocabularyGraph(bert, precision, head, graph).model(weights))
    assert (tmp_path / "sparse.onnx").stat().st_size < 10_000  # the word embeddings are not stored again
    encoder = open_session(weights, {"states": None}, 1, alone=False)
    vocabulary = open_session(tmp_path / "sparse.onnx", {"sparse": WORDS - SHIFT}, 1, alone=False)
    rows = texts()[:6]
    ids, mask = np.zeros((6, 25), np.int64), np.zeros((6, 25), np.int64)
    for place, row in enumerate(rows):
        ids[place, : len(row)], mask[place, : len(row)] = row, 1
    (states,) = encoder(["states"], {"input_ids": ids, "attention_mask": mask})
    states[mask == 0] *= 50  # whatever a padding has must not show
    (found,) = vocabulary(["sparse"], {"states": states, "attention_mask": mask})
    for place, row in enumerate(rows):
        expected = expected_weights(states[place, : len(row)], head, bert.words)
        scale = np.linalg.norm(expected) if normalised else 1
        assert np.abs(found[place] - expected).mean() * (scale if normalised else 1) < error
        (alone,) = vocabulary(
            ["sparse"], {"states": states[place : place + 1, : len(row)], "attention_mask": mask[place : place + 1, : len(row)]}
        )
        np.testing.assert_allclose(alone[0], found[place], rtol=1e-5 if precision != "int8" else 0)


def test_products_of_a_fitted_head_have_mean_zero_and_deviation_one(script: ModuleType, bert: Any) -> None:
    described = SparseHead(dim=WORDS - SHIFT, shift=SHIFT, normalised=False)
    states = list(script.token_states(bert, "mean", texts()))
    head = script.fit_vocabulary(bert, described, states)
    every = np.concatenate(states)
    x = (every - every.mean(axis=1, keepdims=True)) / every.std(axis=1, keepdims=True) * head.scale + head.shift
    np.testing.assert_allclose(x.mean(axis=0), 0, atol=1e-4)
    assert (x @ bert.words[SHIFT:].T).std() == pytest.approx(1, abs=0.05)


def test_the_lexical_head(script: ModuleType, bert: Any, tmp_path: Path) -> None:
    """Fitted to states that tell rare tokens from common ones exactly, it gives their inverse document frequency."""
    rows = [[0, 7, 8], [0, 7, 9], [0, 7, 7, 9]]
    rare = {7: np.log1p(0.5 / 3.5), 8: np.log1p(2.5 / 1.5), 9: np.log1p(1.5 / 2.5)}
    states = [np.array([[50.0, 1] if id_ == 0 else [rare[id_], 1] for id_ in row], np.float32) for row in rows]
    small = script.fit_lexical(states, rows, {0})
    np.testing.assert_allclose(np.array([[rare[8], 1]]) @ small.weight + small.bias, rare[8], atol=0.02)
    head = script.Lexical(np.full((DIM, 1), 0.1, np.float32), np.array([-0.3], np.float32))
    weights = tmp_path / "model.onnx"
    weights.write_bytes(script.Graph(bert, "mean", "float32", {}, script.Heads(lexical=head)).model(["0.states"]))
    run = open_session(weights, {"lexical": None}, 1, alone=True)
    ids = np.array([texts()[0]])
    found, tokens = run(["lexical", "0.states"], {"input_ids": ids, "attention_mask": np.ones_like(ids)})
    np.testing.assert_allclose(found, np.maximum(tokens @ head.weight + head.bias, 0)[..., 0], atol=1e-5)
    assert (found == 0).any() and (found > 0).any()
