import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from trilens.encode import bag
from trilens.encode.bag import BagEncoder
from trilens.encode.encoder import Encoded, Encoder
from trilens.encode.models import bundled_models
from trilens.encode.onnx import OnnxEncoder
from trilens.errors import BadInput

from .echo_model import SHIFT, WORDS, echo_model

BUNDLED = next(iter(bundled_models().values()))
TEXTS = [
    "The cat sat on the mat.",
    "",
    "Boundary layers on a flat plate at supersonic speed, " * 3,
    "naïve café — Ωmega 数据 🙂",
    "[CLS] [SEP] [unused5] [MASK] typed by someone",
    "aspirin lowers the risk of a heart attack " * 60,
]


def words(encoded: Encoded, shift: int = SHIFT) -> list[list[str]]:
    found = encoded.bag
    assert found is not None
    shown = [WORDS[term + shift] for term in found.terms]
    return [shown[found.indptr[i] : found.indptr[i + 1]] for i in range(len(found))]


def test_bags_by_hand(tmp_path: Path) -> None:
    encoder = BagEncoder(echo_model(tmp_path / "echo", heads=["dense", "sparse"]))
    found = encoder.encode_docs(["runs red, red fox zebra", "", ",,,", "fox " * 20])
    assert words(found) == [[",", "red", "fox", "runs"], [], [","], ["fox"]]
    assert found.truncated == 1
    assert found.bag is not None
    assert found.bag.weights.tolist() == [1, 2, 1, 1, 3, 8]  # 20 foxes, of which the model reads 8
    assert (found.bag.dim, encoder.dim) == (9, 9)
    assert [str(array.dtype) for array in (found.bag.indptr, found.bag.terms, found.bag.weights)] == [
        "int64",
        "int32",
        "float32",
    ]
    assert encoder.term_texts(found.bag.terms[:4].tolist()) == [",", "red", "fox", "runs"]


def test_a_model_without_sparse_head_has_bags_over_all_tokens(tmp_path: Path) -> None:
    encoder = BagEncoder(echo_model(tmp_path / "echo", heads=["dense", "lexical"]))
    assert words(encoder.encode_docs(["runs red [MASK]"]), shift=0) == [["red", "runs"]]
    assert encoder.dim == len(WORDS)


def test_what_a_model_adds_is_not_the_text(tmp_path: Path) -> None:
    changes = {"query_tokens": 9, "mask_token": "$", "query_marker": "home", "doc_marker": "."}
    folder = echo_model(
        tmp_path / "echo", heads=["dense", "multi", "sparse"], multi=changes, query_prefix="runs , ", doc_prefix="home: "
    )
    for encoder in (BagEncoder(folder), OnnxEncoder(folder)):
        assert words(encoder.encode_queries(["red fox", "runs", ""])) == [["red", "fox"], ["runs"], []]
        assert words(encoder.encode_docs(["red fox.", "home"])) == [[".", "red", "fox"], ["home"]]


def test_bags_are_those_of_the_model() -> None:
    model, encoder = OnnxEncoder(BUNDLED, threads=1, heads=["sparse"]), BagEncoder(BUNDLED)
    as_protocol: Encoder = encoder
    assert as_protocol.fingerprint == model.fingerprint
    for expected, found in (
        (model.encode_docs(TEXTS), encoder.encode_docs(TEXTS)),
        (model.encode_queries(TEXTS), encoder.encode_queries(TEXTS)),
    ):
        assert expected.bag is not None and found.bag is not None
        for name in ("indptr", "terms", "weights", "dim"):
            np.testing.assert_array_equal(getattr(found.bag, name), getattr(expected.bag, name))
        assert found.truncated == expected.truncated == 1
    assert found.bag is not None
    assert encoder.term_texts(found.bag.terms[: found.bag.indptr[1]].tolist()) == [".", "the", "on", "sat", "cat", "mat"]
    written = set(encoder.term_texts(found.bag.terms[found.bag.indptr[4] : found.bag.indptr[5]].tolist()))
    assert written >= {"typed", "by", "someone"}
    assert not written & {"[CLS]", "[SEP]", "[MASK]"}


def test_many_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bag, "WINDOW_TEXTS", 3)
    encoder = BagEncoder(echo_model(tmp_path / "echo", heads=["dense", "sparse"]))
    finished: list[int] = []
    texts = ["red", "fox", "", "runs home", "red fox", "home", "fox"]
    assert words(encoder.encode_docs(texts, finished.append)) == [text.split() for text in texts]
    assert finished == [3, 3, 1]
    assert words(encoder.encode_docs([])) == []


def test_a_bare_string_is_refused() -> None:
    with pytest.raises(BadInput, match="list of texts"):
        BagEncoder(BUNDLED).encode_docs("a single text")


def test_no_model_is_run() -> None:
    code = (
        "import sys; from pathlib import Path; from trilens.encode.bag import BagEncoder\n"
        f"found = BagEncoder(Path({str(BUNDLED)!r})).encode_docs(['a text'])\n"
        "assert len(found.bag.terms) == 2 and 'onnxruntime' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
