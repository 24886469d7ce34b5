"""The sparse head's graph against plain numpy."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the originals run in torch: pip install trilens[train]")
pytest.importorskip("onnx", reason="part of trilens[export]")

from trilens.encode.folder import Precision
from trilens.encode.onnx import open_session
from trilens.export.backbone import BackboneWriter, open_backbone
from trilens.export.calibrate import calibrate, token_states
from trilens.export.encoder_graph import EncoderGraph
from trilens.export.fit import clip_vocabulary, fit_vocabulary
from trilens.export.heads import HeadWeights, SparseWeights
from trilens.export.sparse_graph import SparseHeadGraph

from .tiny import DIM, write_plain
from .vocabulary import SHIFT, UNUSED, WORDS, Floats, description, given


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> BackboneWriter:
    folder = tmp_path_factory.mktemp("bert")
    write_plain(folder, words=WORDS)
    return open_backbone(folder)


def expected_weights(states: Floats, head: SparseWeights, words: Floats) -> Floats:
    """elu(x) + 1 of the highest product of each word with the states (tokens, hidden) of one text."""
    if head.transform is not None:
        linear = torch.from_numpy(states @ head.transform[0] + head.transform[1])
        states = torch.nn.functional.gelu(linear).numpy()
    spread = np.sqrt(states.var(axis=1, keepdims=True) + head.epsilon)
    x = (states - states.mean(axis=1, keepdims=True)) / spread * head.scale + head.shift
    best = (x @ words[SHIFT : WORDS - UNUSED].T).max(axis=0)
    activated: Floats = np.where(best > 0, best, np.exp(np.minimum(best, 0)) - 1) + 1
    return activated / np.linalg.norm(activated) if head.described.normalised else activated


@pytest.mark.parametrize(("normalised", "transform"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize(("precision", "error"), [("float32", 2e-5), ("int8-weights", 0.05), ("int8", 0.15)])
def test_the_sparse_head(
    backbone: BackboneWriter, tmp_path: Path, precision: Precision, error: float, normalised: bool, transform: bool
) -> None:
    fitted = token_states(backbone, given())
    head = fit_vocabulary(description(normalised), fitted, backbone.words, 1e-12)
    if transform:
        rng = np.random.default_rng(6)
        layer = rng.normal(0, 0.3, (DIM, DIM)).astype(np.float32), rng.normal(0, 0.3, DIM).astype(np.float32)
        head = clip_vocabulary(replace(head, transform=layer), fitted, backbone.words)
    ranges = calibrate(backbone, given()) if precision == "int8" else {}
    graph = EncoderGraph(backbone, "mean", precision, ranges, HeadWeights(sparse=head))
    weights = tmp_path / "model.onnx"
    weights.write_bytes(graph.model())
    (tmp_path / "sparse.onnx").write_bytes(SparseHeadGraph(precision, head, graph).model(weights))
    assert (tmp_path / "sparse.onnx").stat().st_size < 15_000  # the word embeddings are not stored again
    encoder = open_session(weights, {"states": None}, 1)
    vocabulary = open_session(tmp_path / "sparse.onnx", {"sparse": WORDS - UNUSED - SHIFT}, 1)
    rows = [text.ids for text in given()[:6]]
    ids, mask = np.zeros((6, 25), np.int64), np.zeros((6, 25), np.int64)
    for place, row in enumerate(rows):
        ids[place, : len(row)], mask[place, : len(row)] = row, 1
    (states,) = encoder(["states"], {"input_ids": ids, "attention_mask": mask})
    states[mask == 0] *= 50  # whatever a padding has must not show
    (actual,) = vocabulary(["sparse"], {"states": states, "attention_mask": mask})
    for place, row in enumerate(rows):
        expected = expected_weights(states[place, : len(row)], head, backbone.words)
        assert np.abs(actual[place] - expected).mean() < error
        (alone,) = vocabulary(
            ["sparse"], {"states": states[place : place + 1, : len(row)], "attention_mask": mask[place : place + 1, : len(row)]}
        )
        np.testing.assert_allclose(alone[0], actual[place], rtol=1e-5 if precision != "int8" else 0)
