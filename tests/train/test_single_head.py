"""Heads as plain models of sentence-transformers, read by a process that has no trilens."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")

from sentence_transformers import MultiVectorEncoder, SentenceTransformer

from tests.train import tiny
from trilens.errors import BadInput
from trilens.train.build import build_model
from trilens.train.encoder import TorchEncoder
from trilens.train.single_head import save_head

COLBERT = {
    "dim": 16,
    "normalised": True,
    "query_tokens": 12,
    "mask_token": "[MASK]",
    "query_marker": "[unused0]",
    "doc_marker": "[unused1]",
    "skip_punctuation": True,
    "skip_special": False,
}
OWN_WORDS = {"dim": 16, "normalised": False, "skip_punctuation": True, "skip_special": True}
WITHOUT_TRILENS = """
import sys
sys.modules["trilens"] = None  # an import fails
import numpy as np
from sentence_transformers import MultiVectorEncoder, SentenceTransformer
dense, multi, queries, target = sys.argv[1:]
texts = queries.split("|")
vectors = SentenceTransformer(dense, device="cpu").encode_query(texts)
tokens = np.concatenate(MultiVectorEncoder(multi, device="cpu").encode_query(texts, convert_to_numpy=True))
np.savez(target, vectors=vectors, tokens=tokens)
"""


def built(folder: Path, *heads: Any, multi: dict[str, Any] | None = None, **changes: Any) -> Any:
    lengths = {"max_query_tokens": 14, "max_doc_tokens": 30}
    return build_model(tiny.bert(folder / "bert"), heads, changes={**lengths, **changes} | ({"multi": multi} if multi else {}))


def test_a_process_without_trilens_reads_both_heads(tmp_path: Path) -> None:
    model = built(tmp_path, "dense", "multi", multi=COLBERT, query_prefix="the slow ", pooling="mean")
    save_head(model, "dense", tmp_path / "dense")
    save_head(model, "multi", tmp_path / "multi")
    arguments = [str(tmp_path / name) for name in ("dense", "multi")] + ["|".join(tiny.TEXTS), str(tmp_path / "read.npz")]
    subprocess.run([sys.executable, "-c", WITHOUT_TRILENS, *arguments], check=True, timeout=300, cwd=tmp_path)
    expected, actual = TorchEncoder(model).encode_queries(tiny.TEXTS), np.load(tmp_path / "read.npz")
    assert expected.dense is not None and expected.multi is not None
    np.testing.assert_allclose(actual["vectors"], expected.dense.vectors, atol=1e-5)
    np.testing.assert_allclose(actual["tokens"], expected.multi.vectors, atol=1e-5)


@pytest.mark.parametrize(
    "multi", [OWN_WORDS, COLBERT | {"attend_to_mask": True}, OWN_WORDS | {"skip_first": True, "skip_special": False}]
)
def test_token_vectors_are_those_of_the_original(tmp_path: Path, multi: dict[str, Any]) -> None:
    model = built(tmp_path, "multi", multi=multi, doc_prefix="red ")
    assert save_head(model, None, tmp_path / "plain") == "multi"
    plain = MultiVectorEncoder(str(tmp_path / "plain"), device="cpu")
    texts = [*tiny.TEXTS, "the owl sleeps, over a stone. " * 8]
    for encode, original in ((plain.encode_query, "encode_queries"), (plain.encode_document, "encode_docs")):
        expected = getattr(TorchEncoder(model), original)(texts).multi
        actual = encode(texts, convert_to_numpy=True)
        assert [len(rows) for rows in actual] == np.diff(expected.offsets).tolist()
        np.testing.assert_allclose(np.concatenate(actual), expected.vectors, atol=1e-5)


@pytest.mark.parametrize("dense", [{"normalised": False}, {"projection": "tanh", "normalised": True}])
def test_projected_and_unnormalised_vectors(tmp_path: Path, dense: dict[str, Any]) -> None:
    model = built(tmp_path, "dense", dense=dense, dim=8 if "projection" in dense else tiny.HIDDEN, pooling="cls")
    save_head(model, "dense", tmp_path / "plain")
    expected = TorchEncoder(model).encode_docs(tiny.TEXTS).dense
    assert expected is not None
    plain = SentenceTransformer(str(tmp_path / "plain"), device="cpu")
    np.testing.assert_allclose(plain.encode(tiny.TEXTS), expected.vectors, atol=1e-5)


def test_separate_towers(tmp_path: Path) -> None:
    model = build_model(tiny.bert(tmp_path / "bert"), ["dense"], "separate", {"max_query_tokens": 14, "max_doc_tokens": 30})
    with torch.no_grad():
        for parameter in model[0].sub_modules["query"][0].model.encoder.parameters():
            parameter.mul_(0.5)
    save_head(model, "dense", tmp_path / "plain")
    plain, encoder = SentenceTransformer(str(tmp_path / "plain"), device="cpu"), TorchEncoder(model)
    queries, docs = encoder.encode_queries(tiny.TEXTS).dense, encoder.encode_docs(tiny.TEXTS).dense
    assert queries is not None and docs is not None
    np.testing.assert_allclose(plain.encode_query(tiny.TEXTS), queries.vectors, atol=1e-5)
    np.testing.assert_allclose(plain.encode(tiny.TEXTS), docs.vectors, atol=1e-5)
    assert np.abs(queries.vectors - docs.vectors).max() > 0.1


@pytest.mark.parametrize(
    ("heads", "multi", "head", "message"),
    [
        (["sparse"], None, None, r"cannot express the head 'sparse': its weights are elu\(x\) \+ 1"),
        (["lexical"], None, "lexical", "cannot express the head 'lexical': it weights the tokens"),
        (["multi"], OWN_WORDS | {"weighted": True}, None, "'multi': it weights the tokens of queries"),
        (["multi"], OWN_WORDS | {"closing_mean": True}, None, "'multi': its last vector is a mean"),
        (["dense", "multi"], COLBERT | {"attend_to_mask": True}, "dense", "it attends to the mask tokens"),
        (["dense", "multi"], OWN_WORDS, None, "the model has the heads dense, multi; expected --head with one of them"),
        (["dense"], None, "multi", "the model has no head 'multi'; expected one of dense"),
    ],
)
def test_what_cannot_be_expressed(
    tmp_path: Path, heads: list[str], multi: dict[str, Any] | None, head: Any, message: str
) -> None:
    sparse = {"sparse": {"dim": len(tiny.BERT_VOCABULARY) - tiny.BERT_SHIFT, "shift": tiny.BERT_SHIFT, "normalised": False}}
    model = built(tmp_path, *heads, multi=multi, **sparse if "sparse" in heads else {})
    with pytest.raises(BadInput, match=message) as error:
        save_head(model, head, tmp_path / "plain")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "plain").exists()
