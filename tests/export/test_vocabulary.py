"""The sparse head's graph and the fitted heads against plain numpy."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

torch = pytest.importorskip("torch", reason="the originals run in torch: pip install trilens[train]")
pytest.importorskip("onnx", reason="part of trilens[export]")

from trilens.encode.folder import SparseHead
from trilens.encode.onnx import open_session
from trilens.export.backbone import Backbone, open_backbone
from trilens.export.calibrate import calibrate, token_states
from trilens.export.encoder import EncoderGraph
from trilens.export.fit import clip_vocabulary, fit_lexical, fit_vocabulary, matching, principal
from trilens.export.heads import Heads, Vocabulary
from trilens.export.layers import Precision
from trilens.export.texts import Given
from trilens.export.vocabulary import VocabularyGraph

from .tiny import DIM, write_plain

Floats = NDArray[np.float32]
WORDS, SHIFT, UNUSED = 5000, 9, 3  # the last embeddings belong to no token


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> Backbone:
    folder = tmp_path_factory.mktemp("bert")
    write_plain(folder, words=WORDS)
    return open_backbone(folder)


def given(count: int = 30) -> list[Given]:
    rng = np.random.default_rng(4)
    rows = [rng.integers(0, WORDS, length).tolist() for length in rng.integers(3, 20, count)]
    return [Given(row, len(row)) for row in rows]


def description(normalised: bool = False) -> SparseHead:
    return SparseHead(dim=WORDS - UNUSED - SHIFT, shift=SHIFT, normalised=normalised)


def expected_weights(states: Floats, head: Vocabulary, words: Floats) -> Floats:
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
    backbone: Backbone, tmp_path: Path, precision: Precision, error: float, normalised: bool, transform: bool
) -> None:
    fitted = token_states(backbone, given())
    head = fit_vocabulary(description(normalised), fitted, backbone.words, 1e-12)
    if transform:
        rng = np.random.default_rng(6)
        layer = rng.normal(0, 0.3, (DIM, DIM)).astype(np.float32), rng.normal(0, 0.3, DIM).astype(np.float32)
        head = clip_vocabulary(replace(head, transform=layer), fitted, backbone.words)
    ranges = calibrate(backbone, given()) if precision == "int8" else {}
    graph = EncoderGraph(backbone, "mean", precision, ranges, Heads(sparse=head))
    weights = tmp_path / "model.onnx"
    weights.write_bytes(graph.model())
    (tmp_path / "sparse.onnx").write_bytes(VocabularyGraph(precision, head, graph).model(weights))
    assert (tmp_path / "sparse.onnx").stat().st_size < 15_000  # the word embeddings are not stored again
    encoder = open_session(weights, {"states": None}, 1)
    vocabulary = open_session(tmp_path / "sparse.onnx", {"sparse": WORDS - UNUSED - SHIFT}, 1)
    rows = [text.ids for text in given()[:6]]
    ids, mask = np.zeros((6, 25), np.int64), np.zeros((6, 25), np.int64)
    for place, row in enumerate(rows):
        ids[place, : len(row)], mask[place, : len(row)] = row, 1
    (states,) = encoder(["states"], {"input_ids": ids, "attention_mask": mask})
    states[mask == 0] *= 50  # whatever a padding has must not show
    (found,) = vocabulary(["sparse"], {"states": states, "attention_mask": mask})
    for place, row in enumerate(rows):
        expected = expected_weights(states[place, : len(row)], head, backbone.words)
        assert np.abs(found[place] - expected).mean() < error
        (alone,) = vocabulary(
            ["sparse"], {"states": states[place : place + 1, : len(row)], "attention_mask": mask[place : place + 1, : len(row)]}
        )
        np.testing.assert_allclose(alone[0], found[place], rtol=1e-5 if precision != "int8" else 0)


def test_products_of_a_fitted_head_have_mean_zero_and_deviation_one(backbone: Backbone) -> None:
    states = token_states(backbone, given())
    head = fit_vocabulary(description(), states, backbone.words, 1e-12)
    every = np.concatenate(states)
    x = (every - every.mean(axis=1, keepdims=True)) / every.std(axis=1, keepdims=True) * head.scale + head.shift
    np.testing.assert_allclose(x.mean(axis=0), 0, atol=1e-4)
    assert (x @ backbone.words[SHIFT : WORDS - UNUSED].T).std() == pytest.approx(1, abs=0.05)


def test_a_trained_head_gets_the_cut_that_suits_it(backbone: Backbone) -> None:
    trained = Vocabulary(description(), np.full(DIM, 0.5, np.float32), np.zeros(DIM, np.float32), 1e-5)
    clipped = clip_vocabulary(trained, token_states(backbone, given()), backbone.words)
    assert 0.2 < clipped.clip < 0.5 * np.sqrt(DIM)
    assert clipped.scale is trained.scale


def test_a_fitted_lexical_head_gives_inverse_document_frequencies() -> None:
    """Fitted to states that tell rare tokens from common ones exactly."""
    rows = [[0, 7, 8], [0, 7, 9], [0, 7, 7, 9]]
    rare = {7: np.log1p(0.5 / 3.5), 8: np.log1p(2.5 / 1.5), 9: np.log1p(1.5 / 2.5)}
    states = [np.array([[50.0, 1] if id_ == 0 else [rare[id_], 1] for id_ in row], np.float32) for row in rows]
    small = fit_lexical(states, rows, {0})
    np.testing.assert_allclose(np.array([[rare[8], 1]]) @ small.weight + small.bias, rare[8], atol=0.02)


def test_principal_components_keep_the_plane_that_states_lie_in() -> None:
    rng = np.random.default_rng(0)
    plane = np.linalg.qr(rng.normal(size=(8, 2)))[0]
    states = [(rng.normal(size=(20, 2)) @ plane.T).astype(np.float32) for _ in range(3)]
    found = principal(states, 2)
    np.testing.assert_allclose(found.T @ found, np.eye(2), atol=1e-5)
    np.testing.assert_allclose(states[0] @ found @ found.T, states[0], atol=1e-5)


def test_matches_decide_which_directions_are_kept_not_what_differs_most() -> None:
    """Tokens differ most in two directions that say nothing of what answers what; six others, smaller, say all of it."""
    rng = np.random.default_rng(0)

    def states(topics: Floats) -> Floats:
        return np.concatenate([rng.normal(size=(len(topics), 2)) * 1.5, topics], axis=1).astype(np.float32)

    topics = [rng.normal(size=(5, 6)).astype(np.float32) for _ in range(300)]
    passages = [states(some) for some in topics]
    pairs = [(states(some[:3]), passage) for some, passage in zip(topics, passages, strict=True)]
    found = matching(iter(pairs), iter(passages), 6)
    assert found.shape == (8, 6) and found.dtype == np.float32
    assert np.square(found).sum() == pytest.approx(6)
    assert np.square(principal(passages, 6)[:2]).sum() > 1.9
    assert np.square(found[:2]).sum() < 0.3
