"""A model in training as an encoder equals the ONNX encoder of the same weights, and is left unchanged."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")
pytest.importorskip("sentence_transformers", reason="training needs sentence-transformers: pip install trilens[train]")

from sentence_transformers import SentenceTransformer

from tests.train import tiny
from trilens.encode.onnx import OnnxEncoder
from trilens.encode.terms import SparseMode
from trilens.errors import BadInput, BadModel
from trilens.index.term_weighting import PLAIN, weight_docs
from trilens.train.build import build_model
from trilens.train.encoder import TorchEncoder
from trilens.train.model import stacks_of

TEXTS = [*tiny.TEXTS, "", "the " * 60, "fox, fox. fox"]


@pytest.fixture(params=[False, True], ids=["plain", "with further layers"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> SentenceTransformer:
    """With and without optional layers: weighted queries and the transform of the sparse head."""
    multi = {"dim": 8, "query_tokens": 12, "mask_token": "[MASK]", "query_marker": "[unused0]", "doc_marker": "[unused1]"}
    changes = {
        "multi": multi | {"weighted": request.param},
        "sparse": {"top": 5, "transform": request.param},
        "query_prefix": "a ",
    }
    made = build_model(tiny.bert(tmp_path / "tiny"), tiny.ALL, changes=changes)
    for name, parameter in tiny.heads_of(made).named_parameters():
        if "weigh." in name or "transform." in name:
            torch.nn.init.normal_(parameter, 0, 0.3)
    return made


@pytest.fixture
def served(model: SentenceTransformer, tmp_path: Path) -> OnnxEncoder:
    """The exported model."""
    pytest.importorskip("onnx", reason="part of trilens[export]")
    from trilens.export.describe import ExportOptions
    from trilens.export.folder import export

    model.save_pretrained(str(tmp_path / "saved"), create_model_card=False)
    export(tmp_path / "saved", tmp_path / "served", ExportOptions(precision="float32"), check=False)
    return OnnxEncoder(tmp_path / "served", threads=1)


@pytest.mark.parametrize("side", ["queries", "docs"])
def test_equals_the_onnx_encoder(model: SentenceTransformer, served: OnnxEncoder, side: str) -> None:
    actual: Any = getattr(TorchEncoder(model), f"encode_{side}")(TEXTS)
    expected: Any = getattr(served, f"encode_{side}")(TEXTS)
    assert actual.truncated == expected.truncated == 1
    np.testing.assert_allclose(actual.dense.vectors, expected.dense.vectors, atol=2e-5)
    np.testing.assert_array_equal(actual.multi.offsets, expected.multi.offsets)
    np.testing.assert_array_equal(actual.multi.tokens, expected.multi.tokens)
    np.testing.assert_allclose(actual.multi.vectors, expected.multi.vectors, atol=2e-5)
    for name in ("sparse", "lexical", "bag"):
        one, other = getattr(actual, name), getattr(expected, name)
        np.testing.assert_array_equal(one.indptr, other.indptr)
        np.testing.assert_array_equal(one.terms, other.terms)
        np.testing.assert_allclose(one.weights, other.weights, atol=2e-4, rtol=1e-4)


def test_equals_training_outputs(model: SentenceTransformer) -> None:
    """Losses use the indexed representations, except for dropped weights and repeated tokens of bags."""
    encoder = TorchEncoder(model, mode=SparseMode(top=None))
    seen = model.eval()(model.preprocess(tiny.TEXTS, task="document"))
    encoded = encoder.encode_docs(tiny.TEXTS)
    assert encoded.dense and encoded.sparse and encoded.lexical and encoded.multi and encoded.bag
    np.testing.assert_allclose(encoded.dense.vectors, seen["sentence_embedding"].detach(), atol=1e-5)
    np.testing.assert_allclose(encoded.multi.vectors, seen["multi"][seen["multi_mask"]].detach(), atol=1e-5)
    bag = weight_docs(encoded, "bag", PLAIN)
    for sparse, tensor in ((encoded.sparse, seen["sparse"]), (encoded.lexical, seen["lexical"]), (bag, seen["bags"])):
        dense = np.zeros(tensor.shape, np.float32)
        for row in range(len(dense)):
            part = slice(sparse.indptr[row], sparse.indptr[row + 1])
            dense[row, sparse.terms[part]] = sparse.weights[part]
        np.testing.assert_allclose(dense, tensor.detach(), atol=1e-4, rtol=1e-4)


def test_training_mode_is_restored(model: SentenceTransformer) -> None:
    model.train()
    frozen = tiny.heads_of(model).multi
    frozen.eval()
    encoder = TorchEncoder(model, heads=["dense"])
    first, second = encoder.encode_queries(["red fox"]), encoder.encode_queries(["red fox"])
    assert first.dense and second.dense and first.multi is None
    np.testing.assert_array_equal(first.dense.vectors, second.dense.vectors)  # no dropout
    assert model.training and stacks_of(model)["query"].backbone.training and not frozen.training


def test_fingerprint_changes_with_the_weights(model: SentenceTransformer) -> None:
    encoder = TorchEncoder(model)
    before = encoder.fingerprint
    assert before.startswith("tiny-torch-") and before == TorchEncoder(model).fingerprint
    with torch.no_grad():
        tiny.heads_of(model).lexical.linear.bias += 1e-3
    assert encoder.fingerprint != before


def test_separate_towers(tmp_path: Path) -> None:
    model = build_model(tiny.bert(tmp_path), ["dense"], "separate")
    with torch.no_grad():
        stacks_of(model)["query"].backbone.model.get_input_embeddings().weight.mul_(-1)
    encoder = TorchEncoder(model)
    queries, docs = encoder.encode_queries(["red fox"]).dense, encoder.encode_docs(["red fox"]).dense
    assert queries and docs and np.abs(queries.vectors - docs.vectors).max() > 0.01
    shared = TorchEncoder(build_model(tmp_path)).encode_docs(["red fox"]).dense
    assert shared
    np.testing.assert_allclose(docs.vectors, shared.vectors, atol=1e-6)


def test_words_and_tokens(model: SentenceTransformer) -> None:
    encoder = TorchEncoder(model)
    encoded = encoder.encode_docs(["red fox"])
    assert encoded.bag and encoded.multi
    assert encoder.term_texts(encoded.bag.terms.tolist()) == ["red", "fox"]
    offsets, tokens = encoder.doc_tokens(["red fox"])
    np.testing.assert_array_equal(offsets, encoded.multi.offsets)
    np.testing.assert_array_equal(tokens, encoded.multi.tokens)
    assert encoder.token_texts(tokens.tolist()) == ["[unused1]", "red", "fox"]
    assert encoder.dim == tiny.HIDDEN


def test_heads_and_texts_are_checked(model: SentenceTransformer) -> None:
    encoder = TorchEncoder(model, heads=["dense"])
    with pytest.raises(BadModel, match="not \\['multi'\\]"):
        encoder.encode_docs(["red"], heads=["multi"])
    with pytest.raises(BadInput, match="a single string"):
        encoder.encode_docs("red")
    none = encoder.encode_docs([]).dense
    assert none is not None and none.vectors.shape == (0, tiny.HIDDEN)
