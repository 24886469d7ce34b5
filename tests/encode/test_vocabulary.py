"""The `sparse` and `lexical` heads of the bundled model."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from trilens.encode.encoder import Encoded
from trilens.encode.folder import Head
from trilens.encode.models import bundled_models
from trilens.encode.onnx import OnnxEncoder
from trilens.encode.terms import SparseMode
from trilens.errors import BadModel
from trilens.represent import Sparse

BUNDLED = next(iter(bundled_models().values()))
HEADS: list[Head] = ["sparse", "lexical"]
TEXTS = [
    "The cat sat on the mat.",
    "",
    "Boundary layers on a flat plate at supersonic speed, " * 3,
    "naïve café — Ωmega 数据 🙂",
    "?!",
    "How do I copy a file in Python?",
    "aspirin lowers the risk of a heart attack " * 6,
]


@pytest.fixture(scope="module")
def encoder() -> OnnxEncoder:
    return OnnxEncoder(BUNDLED, threads=1, heads=HEADS)


def parts(encoded: Encoded) -> list[Sparse]:
    assert encoded.sparse is not None and encoded.lexical is not None and encoded.bag is not None
    return [encoded.sparse, encoded.lexical, encoded.bag]


def assert_same(found: list[Sparse], expected: list[Sparse]) -> None:
    """To the last bit: the bundled model computes in whole numbers."""
    for one, other in zip(found, expected, strict=True):
        for name in ("indptr", "terms", "weights", "dim"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_own_words_rank_high(encoder: OnnxEncoder) -> None:
    sparse, lexical, bag = parts(encoder.encode_docs(["The capital of France is Paris."]))
    assert 768 <= len(sparse.terms) <= 768 + len(bag.terms)
    words = encoder.term_texts(sparse.terms.tolist())
    ranked = [words[at] for at in np.argsort(-sparse.weights)]
    assert {"capital", "france", "paris"} <= set(ranked[:5])
    assert "french" in ranked[:10]  # not in the text
    assert {"the", "of", "is", "."} <= set(words)  # own words are there however low
    weights = dict(zip(encoder.token_texts(lexical.terms.tolist()), lexical.weights.tolist(), strict=True))
    assert min(weights["paris"], weights["capital"]) > max(weights.get(word, 0) for word in ("the", "of", "is", "."))


def test_words_and_weights_stay_in_step(encoder: OnnxEncoder) -> None:
    """Raw ids 999 to 1997 are the terms 0 to 998: adding the shift only to terms above it would lose these words."""
    tokenizer = Tokenizer.from_file(str(BUNDLED / "tokenizer.json"))
    low = list(range(2000))
    assert encoder.term_texts(low) == [tokenizer.id_to_token(term + 999) for term in low]
    everything = OnnxEncoder(BUNDLED, threads=1, heads=["sparse"], mode=SparseMode(None))
    own = OnnxEncoder(BUNDLED, threads=1, heads=["sparse"], mode=SparseMode(0))
    text = ["The a ! of 7 paris"]
    whole, kept = everything.encode_docs(text).sparse, own.encode_docs(text).sparse
    assert whole is not None and kept is not None
    assert len(whole.terms) == whole.dim == 29_523
    words = own.term_texts(kept.terms.tolist())
    assert sorted(words) == sorted(["the", "a", "!", "of", "7", "paris"])
    for word, weight in zip(words, kept.weights, strict=True):
        assert weight == whole.weights[tokenizer.get_vocab()[word] - 999]


def test_pieces_of_words_stay_marked(encoder: OnnxEncoder) -> None:
    _, _, bag = parts(encoder.encode_docs(["aspirin"]))
    assert set(encoder.term_texts(bag.terms.tolist())) == {"as", "##pi", "##rin"}


def test_the_highest_weights_are_those_that_are_kept(encoder: OnnxEncoder) -> None:
    everything = OnnxEncoder(BUNDLED, threads=1, heads=["sparse"], mode=SparseMode(None)).encode_docs(TEXTS).sparse
    sparse, _, bag = parts(encoder.encode_docs(TEXTS))
    assert everything is not None
    for at in range(len(TEXTS)):
        whole = everything.take(np.array([at]))
        weights = np.zeros(29_523, np.float32)  # far below 0, elu(x) + 1 is 0 in 32 bits, and not kept
        weights[whole.terms] = whole.weights
        best = np.lexsort((np.arange(len(weights)), -weights))[:768]
        own = bag.take(np.array([at])).terms
        expected = np.union1d(best, own[weights[own] > 0])
        np.testing.assert_array_equal(sparse.take(np.array([at])).terms, expected)
        np.testing.assert_array_equal(sparse.take(np.array([at])).weights, weights[expected])
    assert (sparse.weights > 0).all()


@pytest.mark.parametrize("side", ["docs", "queries"])
def test_a_batch_equals_texts_one_by_one(encoder: OnnxEncoder, side: str) -> None:
    encode = encoder.encode_docs if side == "docs" else encoder.encode_queries
    together = parts(encode(TEXTS))
    alone = [parts(encode([text])) for text in TEXTS]
    assert_same(together, [Sparse.concat([one[at] for one in alone]) for at in range(3)])
    order = np.arange(len(TEXTS))[::-1]
    assert_same([part.take(order) for part in parts(encode([TEXTS[at] for at in order]))], together)


def test_padding_changes_nothing(encoder: OnnxEncoder) -> None:
    short = "How do I copy a file in Python?"
    alone = parts(encoder.encode_docs([short]))
    for count in (9, 17, 40, 63, 100, 250):
        assert_same([part.take(np.array([0])) for part in parts(encoder.encode_docs([short, "word " * count]))], alone)


def test_more_heads_and_threads_change_nothing(encoder: OnnxEncoder) -> None:
    every = OnnxEncoder(BUNDLED, threads=2)
    found = every.encode_docs(TEXTS)
    assert_same(parts(found), parts(encoder.encode_docs(TEXTS)))
    dense = OnnxEncoder(BUNDLED, threads=2, heads=["dense"]).encode_docs(TEXTS).dense
    assert found.dense is not None and dense is not None
    np.testing.assert_array_equal(found.dense.vectors, dense.vectors)


def copy(target: Path, **changes: object) -> Path:
    shutil.copytree(BUNDLED, target)
    config = json.loads((target / "trilens.json").read_text()) | changes
    (target / "trilens.json").write_text(json.dumps(config))
    return target


def test_a_damaged_head_is_named_when_it_is_asked_for(tmp_path: Path) -> None:
    folder = copy(tmp_path / "damaged")
    (folder / "sparse.onnx").write_bytes((folder / "sparse.onnx").read_bytes()[:5000])
    encoder = OnnxEncoder(folder, threads=1)
    assert encoder.encode_queries(["text"], ["dense"]).dense is not None
    with pytest.raises(BadModel, match=r"sparse\.onnx cannot be opened"):
        encoder.encode_queries(["text"])


def test_a_folder_may_be_reached_by_a_link(tmp_path: Path, encoder: OnnxEncoder) -> None:
    """The head reads its word embeddings from the file beside it, wherever the folder is."""
    (tmp_path / "link").symlink_to(BUNDLED)
    linked = OnnxEncoder(tmp_path / "link", threads=1, heads=HEADS)
    assert_same(parts(linked.encode_queries(TEXTS[:1])), parts(encoder.encode_queries(TEXTS[:1])))


def test_a_graph_without_states_is_refused(tmp_path: Path) -> None:
    folder = copy(tmp_path / "stateless")
    weights = (folder / "model.int8.onnx").read_bytes()
    (folder / "model.int8.onnx").write_bytes(weights.replace(b"\x06states", b"\x06stated"))
    with pytest.raises(BadModel, match=r"model\.int8\.onnx has the outputs .*; expected \['states'\] as well"):
        OnnxEncoder(folder, threads=1).encode_queries(["text"], ["dense"])
