"""From weights to a model folder that runs, checked against torch, written whole or not at all."""

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
from trilens.export.check import Agreement, require_agreement
from trilens.export.describe import Options
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
    options = Options(precision=precision, **more.pop("options", {}))
    return export(folder / "source", folder / target, options, write_texts(folder / "texts.jsonl"), **more)


@pytest.mark.parametrize("kind", KINDS)
def test_trained_heads_of_every_kind_agree_with_torch(tmp_path: Path, kind: str) -> None:
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
def test_ways_to_read(tmp_path: Path, multi: dict[str, Any]) -> None:
    write_trained(tmp_path / "source", "t5" if multi.get("closing_mean") else "xlm-roberta", multi=multi)
    done = run(tmp_path)
    assert done.agreements and max(one.difference for one in done.agreements) < 1e-4


def write_further(folder: Path, kind: str = "bert", dim: int = 12) -> None:
    """A model with weighted queries, and a transform and biases in its sparse head."""
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
    assert "those of queries by a weight for each token" in (tmp_path / "made" / "README.md").read_text()
    encoder = OnnxEncoder(tmp_path / "made")
    docs, queries = encoder.encode_docs(texts(5)).multi, encoder.encode_queries(texts(5)).multi
    assert docs and queries
    np.testing.assert_allclose(np.linalg.norm(docs.vectors, axis=1), 1, atol=1e-5)
    lengths = np.linalg.norm(queries.vectors, axis=1)
    assert lengths.max() > 2 * lengths.min()


def test_tensors_of_further_layers_must_be_there(tmp_path: Path) -> None:
    for name in further_tensors():
        write_further(tmp_path / name / "source")
        file = tmp_path / name / "source" / "1_Heads" / "model.safetensors"
        tensors = safetensors.load_file(file)
        del tensors[name]
        safetensors.save_file(tensors, file)
        with pytest.raises(BadModel, match=f"has no tensor '{name}'"):
            run(tmp_path / name)


def test_scores_of_weighted_queries_are_found_and_explained(tmp_path: Path) -> None:
    """By every way to search: MaxSim of the vectors as they are held, and a part for each token that add up to the score."""
    write_further(tmp_path / "source", dim=32)
    run(tmp_path)
    written = {f"d{at}": text for at, text in enumerate(texts(60))}
    query = "w7 w30 w31 w9 w100"
    asked = OnnxEncoder(tmp_path / "made", threads=1).encode_queries([query]).multi
    assert asked is not None
    with Collection.create(tmp_path / "c", lenses=["multi"], model=str(tmp_path / "made"), threads=1) as made:
        made.add(Document(doc_id, text) for doc_id, text in written.items())
        made.commit()
        every = (MultiParams(), MultiParams("exact"), MultiParams("xtr", candidates=0, probes=2, reach=2))
        for params in every:
            for hit in made.search([query], 5, lenses=["multi"], params={"multi": params})[0]:
                found = made.align(query, hit.doc_id, params)
                assert found is not None and found.score == pytest.approx(hit.score, abs=1e-4)
                explained = made.explain(query, hit.doc_id, "multi", params={"multi": params})
                assert sum(part.score for part in explained.parts) == pytest.approx(hit.score, abs=1e-4)
                if params.method != "xtr":
                    vectors = OnnxEncoder(tmp_path / "made", threads=1).encode_docs([written[hit.doc_id]]).multi
                    assert vectors is not None
                    exact = (asked.vectors @ vectors.vectors.T).max(axis=1).sum()
                    assert hit.score == pytest.approx(exact, rel=0.02)  # but for the bits that tokens are held in


@pytest.mark.parametrize("dense", [{"normalised": False}, {"projection": "tanh", "normalised": True}])
def test_dense_heads_that_do_more_than_pool(tmp_path: Path, dense: dict[str, Any]) -> None:
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


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    write_plain(tmp_path / "source")
    for target in ("a/m", "b/m"):
        run(tmp_path, "int8", target, options=HEADS, check=False)
    prints = {ModelFolder.open(tmp_path / target).fingerprint for target in ("a/m", "b/m")}
    assert len(prints) == 1


def test_a_folder_that_computes_something_else_is_not_written(tmp_path: Path) -> None:
    """The weights change between writing and checking."""
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


def test_towers_that_do_not_belong_together(tmp_path: Path) -> None:
    write_towers(tmp_path / "source")
    tokenizer = tmp_path / "source" / "query_0_Backbone" / "tokenizer.json"
    before = tokenizer.read_text()
    tokenizer.write_text(before.replace('"w5"', '"other"'))
    with pytest.raises(BadModel, match="differ; expected one tokenizer for both towers"):
        run(tmp_path)
    tokenizer.write_text(before)
    config = tmp_path / "source" / "query_1_Heads" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"pooling": "cls"}))
    with pytest.raises(BadModel, match=r"differ in \['pooling'\]; expected the same"):
        run(tmp_path)


def test_what_8_bits_may_lose() -> None:
    config = type("Config", (), {"precision": "int8"})
    require_agreement([Agreement("dense", 0.985, 0.7, 0.3), Agreement("sparse", 0.5, 0.1, 3.0)], config)  # type: ignore[arg-type]
    for mean in (0.975, float("nan")):
        with pytest.raises(BadModel, match=r"have a cosine of .* expected 0\.98"):
            require_agreement([Agreement("dense", mean, 0.7, 0.3)], config)  # type: ignore[arg-type]


def test_a_target_that_holds_something(tmp_path: Path) -> None:
    write_plain(tmp_path / "source")
    (tmp_path / "made").mkdir()
    run(tmp_path, check=False)  # an empty folder is as good as none
    before = (tmp_path / "made" / "trilens.json").read_text()
    with pytest.raises(BadInput, match="is not empty; choose another folder, or --force to replace it"):
        run(tmp_path, check=False)
    run(tmp_path, check=False, force=True, options={"licence": "MIT"})
    after = json.loads((tmp_path / "made" / "trilens.json").read_text())
    assert after == json.loads(before) | {"licence": "MIT"}
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "one.txt").write_text("dear")
    refused = {"letters": "is not a model folder", "source": "which would be replaced", "texts.jsonl": "is a file"}
    for target, says in refused.items():
        with pytest.raises(BadInput, match=says):
            run(tmp_path, target=target, check=False, force=True)
    assert (tmp_path / "letters" / "one.txt").read_text() == "dear"
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_tokenizer_that_does_not_fit(tmp_path: Path) -> None:
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
