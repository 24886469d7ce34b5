"""Fitted heads against plain numpy."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the originals run in torch: pip install trilens[train]")
pytest.importorskip("onnx", reason="part of trilens[export]")

from trilens.export.backbone import BackboneWriter, open_backbone
from trilens.export.calibrate import token_states
from trilens.export.fit import clip_vocabulary, fit_lexical, fit_vocabulary, matching, principal
from trilens.export.heads import SparseWeights

from .tiny import DIM, write_plain
from .vocabulary import SHIFT, UNUSED, WORDS, Floats, description, given


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> BackboneWriter:
    folder = tmp_path_factory.mktemp("bert")
    write_plain(folder, words=WORDS)
    return open_backbone(folder)


def test_fitted_sparse_products_are_standardised(backbone: BackboneWriter) -> None:
    states = token_states(backbone, given())
    head = fit_vocabulary(description(), states, backbone.words, 1e-12)
    every = np.concatenate(states)
    x = (every - every.mean(axis=1, keepdims=True)) / every.std(axis=1, keepdims=True) * head.scale + head.shift
    np.testing.assert_allclose(x.mean(axis=0), 0, atol=1e-4)
    assert (x @ backbone.words[SHIFT : WORDS - UNUSED].T).std() == pytest.approx(1, abs=0.05)


def test_clipping_of_a_trained_sparse_head(backbone: BackboneWriter) -> None:
    trained = SparseWeights(description(), np.full(DIM, 0.5, np.float32), np.zeros(DIM, np.float32), 1e-5)
    clipped = clip_vocabulary(trained, token_states(backbone, given()), backbone.words)
    assert 0.2 < clipped.clip < 0.5 * np.sqrt(DIM)
    assert clipped.scale is trained.scale


def test_fitted_lexical_head_gives_inverse_document_frequencies() -> None:
    """The states determine the IDF of their tokens exactly."""
    rows = [[0, 7, 8], [0, 7, 9], [0, 7, 7, 9]]
    rare = {7: np.log1p(0.5 / 3.5), 8: np.log1p(2.5 / 1.5), 9: np.log1p(1.5 / 2.5)}
    states = [np.array([[50.0, 1] if id_ == 0 else [rare[id_], 1] for id_ in row], np.float32) for row in rows]
    small = fit_lexical(states, rows, {0})
    np.testing.assert_allclose(np.array([[rare[8], 1]]) @ small.weight + small.bias, rare[8], atol=0.02)


def test_principal_components() -> None:
    rng = np.random.default_rng(0)
    plane = np.linalg.qr(rng.normal(size=(8, 2)))[0]
    states = [(rng.normal(size=(20, 2)) @ plane.T).astype(np.float32) for _ in range(3)]
    actual = principal(states, 2)
    np.testing.assert_allclose(actual.T @ actual, np.eye(2), atol=1e-5)
    np.testing.assert_allclose(states[0] @ actual @ actual.T, states[0], atol=1e-5)


def test_matching_keeps_directions_in_which_matches_agree() -> None:
    """The two directions of largest variance are noise; six others, of smaller variance, determine the matches."""
    rng = np.random.default_rng(0)

    def states(topics: Floats) -> Floats:
        return np.concatenate([rng.normal(size=(len(topics), 2)) * 1.5, topics], axis=1).astype(np.float32)

    topics = [rng.normal(size=(5, 6)).astype(np.float32) for _ in range(300)]
    passages = [states(some) for some in topics]
    pairs = [(states(some[:3]), passage) for some, passage in zip(topics, passages, strict=True)]
    actual = matching(iter(pairs), iter(passages), 6)
    assert actual.shape == (8, 6) and actual.dtype == np.float32
    assert np.square(actual).sum() == pytest.approx(6)
    assert np.square(principal(passages, 6)[:2]).sum() > 1.9
    assert np.square(actual[:2]).sum() < 0.3
