"""Export of weights to a model folder: agreement with torch, and atomic writes."""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="the originals run in torch: pip install trilens[train]")
pytest.importorskip("onnx", reason="part of trilens[export]")

from trilens import Collection, Document, MultiParams
from trilens.encode.folder import ModelFolder
from trilens.encode.onnx import OnnxEncoder
from trilens.errors import BadInput, BadModel, TrilensError
from trilens.export.describe import ExportOptions
from trilens.export.folder import Exported, export

from .tiny import (
    DESCRIPTION,
    DIM,
    KINDS,
    MULTI,
    SHIFT,
    further_tensors,
    head_tensors,
    safetensors,
    texts,
    write_plain,
    write_texts,
    write_towers,
    write_trained,
)

HEADS = {"multi": {"dim": 8}, "vdr": True, "vocabulary_shift": SHIFT, "lexical": True}


def run(folder: Path, precision: Any = "float32", target: str = "made", **more: Any) -> Exported:
    options = ExportOptions(precision=precision, **more.pop("options", {}))
    return export(folder / "source", folder / target, options, write_texts(folder / "texts.jsonl"), **more)


@pytest.mark.parametrize("kind", KINDS)
def test_trained_heads_equal_torch(tmp_path: Path, kind: str) -> None:
    write_trained(tmp_path / "source", kind)
    done = run(tmp_path)
    assert done.agreements and [one.head for one in done.agreements] == ["dense", "multi", "sparse", "lexical"]
    assert max(one.difference for one in done.agreements) < 1e-4
    encoded = OnnxEncoder(tmp_path / "made").encode_docs(texts(5))
    assert encoded.dense and encoded.multi and encoded.sparse and encoded.lexical
    assert encoded.truncated == 0  # the tokenizer's own truncation is gone


@pytest.mark.parametrize("precision", ["int8-weights", "int8"])
@pytest.mark.parametrize("kind", ["bert", "xlm-roberta", "t5"])
def test_8_bits(tmp_path: Path, kind: str, precision: str) -> None:
    write_trained(tmp_path / "source", kind)
    done = run(tmp_path, precision)
    assert done.agreements and done.agreements[0].mean > 0.98
    assert done.config.precision == precision
    assert (tmp_path / "made" / "model.int8.onnx").is_file() and not (tmp_path / "made" / "model.onnx").exists()


@pytest.mark.parametrize(
    "multi",
    [
        MULTI | {"closing_mean": True, "normalised": False},
        MULTI | {"query_tokens": 16, "mask_token": "[MASK]", "query_marker": "[Q]", "doc_marker": "[D]"},
        MULTI | {"query_tokens": 16, "mask_token": "[MASK]", "attend_to_mask": True, "skip_first": True},
    ],
)
def test_tokenisation_options(tmp_path: Path, multi: dict[str, Any]) -> None:
    write_trained(tmp_path / "source", "t5" if multi.get("closing_mean") else "xlm-roberta", multi=multi)
    done = run(tmp_path)
    assert done.agreements and max(one.difference for one in done.agreements) < 1e-4


def write_further(folder: Path, kind: str = "bert", dim: int = 12) -> None:
    """Write a model with weighted queries, and a transform and biases in its sparse head."""
    linear = np.random.default_rng(8).normal(0, 0.4, (dim, DIM)).astype(np.float32)
    tensors = head_tensors(multi_bias=False) | further_tensors() | {"multi.linear.weight": linear}
    multi, sparse = MULTI | {"dim": dim, "weighted": True}, DESCRIPTION["sparse"] | {"transform": True, "biased": True}
    write_trained(folder, kind, tensors, multi=multi, sparse=sparse)


@pytest.mark.parametrize("precision", ["float32", "int8-weights", "int8"])
@pytest.mark.parametrize("kind", ["bert", "t5"])
def test_weighted_queries_a_transform_and_biases(tmp_path: Path, kind: str, precision: str) -> None:
    write_further(tmp_path / "source", kind)
    done = run(tmp_path, precision)
    assert done.agreements and all(one.mean > 0.97 for one in done.agreements if one.head in ("multi", "sparse"))
    if precision == "float32":
        assert max(one.difference for one in done.agreements) < 1e-4
    assert "query tokens weighted" in (tmp_path / "made" / "README.md").read_text()
    encoder = OnnxEncoder(tmp_path / "made")
    docs, queries = encoder.encode_docs(texts(5)).multi, encoder.encode_queries(texts(5)).multi
    assert docs and queries
    np.testing.assert_allclose(np.linalg.norm(docs.vectors, axis=1), 1, atol=1e-5)
    lengths = np.linalg.norm(queries.vectors, axis=1)
    assert lengths.max() > 2 * lengths.min()


def test_missing_tensors_of_optional_layers(tmp_path: Path) -> None:
    for name in further_tensors():
        write_further(tmp_path / name / "source")
        file = tmp_path / name / "source" / "1_Heads" / "model.safetensors"
        tensors = safetensors.load_file(file)
        del tensors[name]
        safetensors.save_file(tensors, file)
        with pytest.raises(BadModel, match=f"has no tensor '{name}'"):
            run(tmp_path / name)


def test_weighted_queries_in_search_and_explanations(tmp_path: Path) -> None:
    """All searches give MaxSim of the stored vectors, and explanations have a part per token that add up to the score."""
    write_further(tmp_path / "source", dim=32)
    run(tmp_path)
    written = {f"d{index}": text for index, text in enumerate(texts(60))}
    query = "w7 w30 w31 w9 w100"
    asked = OnnxEncoder(tmp_path / "made", threads=1).encode_queries([query]).multi
    assert asked is not None
    with Collection.create(tmp_path / "c", lenses=["multi"], model=str(tmp_path / "made"), threads=1) as made:
        made.add(Document(doc_id, text) for doc_id, text in written.items())
        made.commit()
        every = (MultiParams(), MultiParams(method="exact"), MultiParams(method="xtr", candidates=0, probes=2, reach=2))
        for params in every:
            for hit in made.search([query], 5, lenses=["multi"], params={"multi": params})[0]:
                explained = made.explain(query, hit.doc_id, lenses=["multi"], params={"multi": params})
                assert explained.score == pytest.approx(hit.score, abs=1e-4) and explained.matrix is not None
                assert sum(part.score for part in explained.parts) == pytest.approx(hit.score, abs=1e-4)
                if params.method != "xtr":
                    vectors = OnnxEncoder(tmp_path / "made", threads=1).encode_docs([written[hit.doc_id]]).multi
                    assert vectors is not None
                    exact = (asked.vectors @ vectors.vectors.T).max(axis=1).sum()
                    assert hit.score == pytest.approx(exact, rel=0.02)  # but for the bits that tokens are held in


@pytest.mark.parametrize("dense", [{"normalised": False}, {"projection": "tanh", "normalised": True}])
def test_dense_projections(tmp_path: Path, dense: dict[str, Any]) -> None:
    dim = 10 if "projection" in dense else DIM
    rng = np.random.default_rng(3)
    layer = {"dense.linear.weight": rng.normal(0, 0.1, (10, DIM)), "dense.linear.bias": rng.normal(0, 1, 10)}
    tensors = head_tensors() | {name: tensor.astype(np.float32) for name, tensor in layer.items()}
    write_trained(tmp_path / "source", "bert", tensors, dense=dense, dim=dim)
    done = run(tmp_path)
    assert done.agreements and max(one.difference for one in done.agreements) < 1e-4
    assert OnnxEncoder(tmp_path / "made").dim == dim


def test_a_model_without_dense(tmp_path: Path) -> None:
    write_trained(tmp_path / "source", heads=["multi"], sparse=None, lexical=None)
    done = run(tmp_path)
    assert [one.head for one in done.agreements or []] == ["multi"]
    assert OnnxEncoder(tmp_path / "made").encode_queries(texts(2)).dense is None


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_untrained_heads_of_a_plain_encoder(tmp_path: Path, precision: str) -> None:
    write_plain(tmp_path / "source")
    done = run(tmp_path, precision, options=HEADS | {"licence": "MIT", "source": "here"})
    assert done.config.heads == ["dense", "multi", "sparse", "lexical"]
    card = (tmp_path / "made" / "README.md").read_text()
    for said in ("# made", "Licence: MIT", "Source: here", "**Untrained**", "| dense | ", "| tokenizer.json | "):
        assert said in card


def test_export_is_deterministic(tmp_path: Path) -> None:
    write_plain(tmp_path / "source")
    for target in ("a/m", "b/m"):
        run(tmp_path, "int8", target, options=HEADS, check=False)
    prints = {ModelFolder.open(tmp_path / target).fingerprint for target in ("a/m", "b/m")}
    assert len(prints) == 1


def test_disagreement_with_the_original_is_an_error(tmp_path: Path) -> None:
    """The weights are changed between writing and checking."""
    write_plain(tmp_path / "source")
    file = tmp_path / "source" / "model.safetensors"

    def change(what: str, total: int) -> Any:
        if what.startswith("checking"):
            tensors = safetensors.load_file(file)
            name = "encoder.layer.0.output.dense.weight"
            tensors[name] = tensors[name] * np.float32(1.2)
            safetensors.save_file(tensors, file, {"format": "pt"})
        return nullcontext(lambda _amount: None)

    with pytest.raises(BadModel, match=r"the dense head differs from the original by .*; expected at most 0.001"):
        run(tmp_path, steps=change)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source", "texts.jsonl"]


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_two_towers(tmp_path: Path, precision: str) -> None:
    write_towers(tmp_path / "source")
    done = run(tmp_path, precision)
    assert done.config.query_tower and done.agreements
    if precision == "float32":
        assert max(one.difference for one in done.agreements) < 1e-4
    encoder, same = OnnxEncoder(tmp_path / "made", heads=["dense"]), [f"w1 {text}" for text in texts(3, 10)]
    docs, queries = encoder.encode_docs(same).dense, encoder.encode_queries([text[3:] for text in same]).dense
    assert docs and queries and np.abs(docs.vectors - queries.vectors).max() > 0.1  # the same tokens, other weights
    before = ModelFolder.open(tmp_path / "made").fingerprint
    file = tmp_path / "made" / "query" / f"model{'.int8' if precision == 'int8' else ''}.onnx"
    file.write_bytes(file.read_bytes() + b" ")
    assert ModelFolder.open(tmp_path / "made").fingerprint != before
    file.unlink()
    with pytest.raises(BadModel, match="is missing from the model folder"):
        OnnxEncoder(tmp_path / "made")


def test_mismatched_towers(tmp_path: Path) -> None:
    write_towers(tmp_path / "source")
    tokenizer = tmp_path / "source" / "query_0_Backbone" / "tokenizer.json"
    before = tokenizer.read_text()
    tokenizer.write_text(before.replace('"w5"', '"other"'))
    with pytest.raises(BadModel, match="differ; expected one tokenizer for both towers"):
        run(tmp_path)
    tokenizer.write_text(before)
    config = tmp_path / "source" / "query_1_Heads" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"pooling": "cls"}))
    with pytest.raises(BadModel, match=r"differ in \['pooling'\]; expected equal settings"):
        run(tmp_path)


def test_existing_targets(tmp_path: Path) -> None:
    write_plain(tmp_path / "source")
    (tmp_path / "made").mkdir()
    run(tmp_path, check=False)  # an empty folder is as good as none
    before = (tmp_path / "made" / "trilens.json").read_text()
    with pytest.raises(BadInput, match="is not empty; choose another folder, or replace it with --force"):
        run(tmp_path, check=False)
    run(tmp_path, check=False, force=True, options={"licence": "MIT"})
    after = json.loads((tmp_path / "made" / "trilens.json").read_text())
    assert after == json.loads(before) | {"licence": "MIT"}
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "one.txt").write_text("dear")
    refused = {"letters": "is not a model folder", "source": "which would be replaced", "texts.jsonl": "is a file"}
    for target, message in refused.items():
        with pytest.raises(BadInput, match=message):
            run(tmp_path, target=target, check=False, force=True)
    assert (tmp_path / "letters" / "one.txt").read_text() == "dear"
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_tokenizer_with_too_many_tokens(tmp_path: Path) -> None:
    write_plain(tmp_path / "source", words=100)
    with pytest.raises(BadModel, match="has 209 tokens, the encoder 100 word embeddings"):
        run(tmp_path)
    (tmp_path / "source" / "tokenizer.json").write_text("{}")
    with pytest.raises(TrilensError, match="cannot be read"):
        run(tmp_path)
    assert not (tmp_path / "made").exists()


def test_more_embeddings_than_tokens(tmp_path: Path) -> None:
    write_plain(tmp_path / "source", "t5", words=256)
    done = run(tmp_path, options=HEADS)
    assert done.agreements and max(one.difference for one in done.agreements) < 1e-4
