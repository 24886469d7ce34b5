"""Token vectors put together from batches and windows."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from trilens.encode import onnx
from trilens.encode.encoder import Encoded
from trilens.encode.models import bundled_models
from trilens.encode.onnx import OnnxEncoder
from trilens.represent import Multi

from ..bundled import with_multi
from .echo_model import ID, WORDS, echo_model

BUNDLED = next(iter(bundled_models().values()))
TEXTS = [
    "The cat sat on the mat.",
    "",
    "Boundary layers on a flat plate at supersonic speed, " * 3,
    "naïve café — Ωmega 数据 🙂",
    "?!",
    "How do I copy a file in Python?",
    "aspirin lowers the risk of a heart attack " * 6,
]
COLBERT = {
    "dim": 128,
    "normalised": True,
    "query_tokens": 32,
    "mask_token": "[MASK]",
    "query_marker": "[unused0]",
    "doc_marker": "[unused1]",
    "skip_punctuation": True,
    "skip_special": False,
    "weighted": False,
}
ECHO_COLBERT = {"query_tokens": 6, "mask_token": "[MASK]", "query_marker": "[Q]", "doc_marker": "[D]"}


def token_vectors(encoded: Encoded) -> Multi:
    assert encoded.multi is not None
    return encoded.multi


def dense_vectors(encoded: Encoded) -> NDArray[np.float32]:
    assert encoded.dense is not None
    return encoded.dense.vectors


def as_colbert(target: Path, **changes: object) -> Path:
    """The bundled graph, with markers and filled queries."""
    return with_multi(target, **COLBERT | changes)


def assert_same(found: Multi, expected: Multi, atol: float = 1e-5) -> None:
    assert found.offsets.tolist() == expected.offsets.tolist()
    assert found.tokens.tolist() == expected.tokens.tolist()
    np.testing.assert_allclose(found.vectors, expected.vectors, atol=atol)


@pytest.fixture(scope="module")
def encoder() -> OnnxEncoder:
    return OnnxEncoder(BUNDLED, threads=2, heads=["dense", "multi"])


@pytest.fixture(scope="module")
def colbert(tmp_path_factory: pytest.TempPathFactory) -> OnnxEncoder:
    folder = as_colbert(tmp_path_factory.mktemp("models") / "colbert")
    return OnnxEncoder(folder, threads=2, heads=["dense", "multi"])


def test_queries_by_hand(tmp_path: Path) -> None:
    """The echo model tells what it was given: ids, and which of them are attended to."""
    encoder = OnnxEncoder(echo_model(tmp_path / "echo", multi=ECHO_COLBERT))
    found = encoder.encode_queries(["red", "red fox, runs home"])
    multi = token_vectors(found)
    assert multi.offsets.tolist() == [0, 6, 14]
    assert encoder.token_texts(multi.tokens[:6].tolist()) == ["[CLS]", "[Q]", "red", "[SEP]", "[MASK]", "[MASK]"]
    assert multi.vectors[:, 0].tolist() == multi.tokens.tolist()
    assert multi.vectors[:, 1].tolist() == [1, 1, 1, 1, 0, 0] + [1] * 8
    own = [ID[word] for word in ("[CLS]", "[Q]", "red", "[SEP]")]
    assert dense_vectors(found)[0].tolist() == [sum(own), 4]
    assert [str(array.dtype) for array in (multi.vectors, multi.tokens, multi.offsets)] == ["float32", "int32", "int64"]


def test_documents_by_hand(tmp_path: Path) -> None:
    skips = {"skip_punctuation": True, "skip_special": True}
    encoder = OnnxEncoder(echo_model(tmp_path / "echo", multi=skips))
    found = encoder.encode_docs(["fox.", ",", "red — fox, red", "", "runs " * 20])
    multi = token_vectors(found)
    red, fox, runs = (ID[word] for word in ("red", "fox", "runs"))
    assert multi.tokens.tolist() == [fox, red, fox, red, *[runs] * 8]
    assert multi.offsets.tolist() == [0, 1, 1, 4, 4, 12]
    assert multi.vectors.tolist() == [[token, 1] for token in multi.tokens]
    assert found.truncated == 1


def test_a_tokenizer_without_special_tokens(tmp_path: Path) -> None:
    encoder = OnnxEncoder(echo_model(tmp_path / "echo", special=False))
    multi = token_vectors(encoder.encode_docs(["", "red fox"]))
    assert multi.vectors.tolist() == [[ID["red"], 1], [ID["fox"], 1]]
    assert token_vectors(encoder.encode_docs([""])).offsets.tolist() == [0, 0]


def test_nothing_to_read_is_no_tokens(tmp_path: Path) -> None:
    """Without special tokens an empty text has none at all."""
    folder = as_colbert(tmp_path / "bare", query_marker=None, doc_marker=None)
    tokenizer = json.loads((folder / "tokenizer.json").read_text()) | {"post_processor": None}
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    found = OnnxEncoder(folder, threads=1).encode_docs(["", ""])
    assert token_vectors(found).offsets.tolist() == [0, 0, 0]
    assert dense_vectors(found).tolist() == [[0.0] * 384] * 2


def test_many_windows_and_batches_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx, "WINDOW_TEXTS", 7)
    monkeypatch.setattr(onnx, "BATCH_TOKENS", 12)
    encoder = OnnxEncoder(echo_model(tmp_path / "echo", multi={"skip_punctuation": True, "skip_special": True}))
    rng = np.random.default_rng(4)
    rows = [[int(word) for word in rng.integers(ID["red"], ID["##ing"], length)] for length in rng.integers(0, 9, 40)]
    finished: list[int] = []
    multi = token_vectors(encoder.encode_docs([" , ".join(WORDS[id_] for id_ in row[:4]) for row in rows], finished.append))
    expected = [row[:4] for row in rows]
    assert [multi.tokens[multi.offsets[i] : multi.offsets[i + 1]].tolist() for i in range(40)] == expected
    assert multi.vectors[:, 0].tolist() == [id_ for row in expected for id_ in row]
    assert (sum(finished), len(multi)) == (40, 40)


def test_bundled_token_vectors_have_length_one_and_their_tokens(encoder: OnnxEncoder) -> None:
    multi = token_vectors(encoder.encode_docs(TEXTS))
    assert multi.dim == 128
    np.testing.assert_allclose(np.linalg.norm(multi.vectors, axis=1), 1, atol=1e-5)
    texts = encoder.token_texts(multi.tokens.tolist())
    assert texts[: multi.offsets[1]] == ["[CLS]", "the", "cat", "sat", "on", "the", "mat", "[SEP]"]
    assert np.diff(multi.offsets)[[1, 4]].tolist() == [2, 2]  # nothing, and nothing but punctuation
    queries = token_vectors(encoder.encode_queries(TEXTS))
    read = ["[CLS]", "the", "cat", "sat", "on", "the", "mat", ".", "[SEP]"]
    assert encoder.token_texts(queries.tokens[: queries.offsets[1]].tolist()) == read
    _, the, cat, *_ = np.linalg.norm(queries.vectors, axis=1)
    assert cat > 2 * the > 0  # by the weights of the tokens


def test_near_tokens_find_each_other(encoder: OnnxEncoder) -> None:
    query = token_vectors(encoder.encode_queries(["duplicate a file with Python"])).vectors
    docs = token_vectors(encoder.encode_docs(TEXTS))
    spans = [docs.vectors[docs.offsets[i] : docs.offsets[i + 1]] for i in range(len(TEXTS))]
    scores = [(query @ span.T).max(axis=1).sum() if len(span) else -np.inf for span in spans]
    assert int(np.argmax(scores)) == 5


@pytest.mark.parametrize("name", ["encoder", "colbert"])
@pytest.mark.parametrize("side", ["docs", "queries"])
def test_a_batch_equals_texts_one_by_one(name: str, side: str, request: pytest.FixtureRequest) -> None:
    model: OnnxEncoder = request.getfixturevalue(name)
    encode = model.encode_docs if side == "docs" else model.encode_queries
    together = encode(TEXTS)
    alone = [encode([text]) for text in TEXTS]
    assert_same(token_vectors(together), Multi.concat([token_vectors(one) for one in alone]))
    np.testing.assert_allclose(dense_vectors(together), np.concatenate([dense_vectors(one) for one in alone]), atol=1e-5)
    order = np.arange(len(TEXTS))[::-1]
    assert_same(token_vectors(encode([TEXTS[at] for at in order])).take(order), token_vectors(together))


def test_padding_changes_nothing(encoder: OnnxEncoder, colbert: OnnxEncoder) -> None:
    short = "How do I copy a file in Python?"
    for encode in (encoder.encode_docs, colbert.encode_docs, colbert.encode_queries):
        alone = token_vectors(encode([short]))
        for count in (9, 17, 40, 63, 100):
            padded = token_vectors(encode([short, "word " * count])).take(np.array([0]))
            assert_same(padded, alone)


def test_filling_is_not_seen_by_the_rest(colbert: OnnxEncoder, tmp_path: Path) -> None:
    """Without filling the other tokens get the same vectors, unless they may attend to it."""
    text = ["How do I copy a file in Python?"]
    plain = OnnxEncoder(as_colbert(tmp_path / "plain", query_tokens=None), threads=1, heads=["multi"])
    without, filled = token_vectors(plain.encode_queries(text)), token_vectors(colbert.encode_queries(text))
    assert (len(filled.tokens), len(without.tokens)) == (32, 12)
    np.testing.assert_allclose(filled.vectors[:12], without.vectors, atol=1e-5)
    np.testing.assert_array_equal(filled.tokens[12:], 103)
    assert np.linalg.norm(filled.vectors[12] - filled.vectors[31]) > 0.01  # they differ by place
    attending = OnnxEncoder(as_colbert(tmp_path / "attending", attend_to_mask=True), threads=1, heads=["multi"])
    seen = token_vectors(attending.encode_queries(text))
    assert np.abs(seen.vectors[:12] - without.vectors).max() > 0.01


@pytest.mark.parametrize("attend", [False, True])
def test_some_heads_give_what_all_heads_give(tmp_path: Path, attend: bool) -> None:
    folder = as_colbert(tmp_path / "colbert", attend_to_mask=attend)
    both = OnnxEncoder(folder, threads=1, heads=["dense", "multi"])
    dense, multi = OnnxEncoder(folder, threads=1, heads=["dense"]), OnnxEncoder(folder, threads=1, heads=["multi"])
    for one, other in ((both.encode_docs, "encode_docs"), (both.encode_queries, "encode_queries")):
        whole, only_dense, only_multi = one(TEXTS), getattr(dense, other)(TEXTS), getattr(multi, other)(TEXTS)
        assert only_dense.multi is None
        assert only_multi.dense is None
        np.testing.assert_allclose(dense_vectors(only_dense), dense_vectors(whole), atol=1e-5)
        assert_same(token_vectors(only_multi), token_vectors(whole))


def test_an_empty_list_gives_no_rows(encoder: OnnxEncoder) -> None:
    for multi in (token_vectors(encoder.encode_docs([])), token_vectors(encoder.encode_queries([]))):
        assert (len(multi), multi.vectors.shape, multi.offsets.tolist()) == (0, (0, 128), [0])
