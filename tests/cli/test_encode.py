"""The encode command: every head, in every format, equals what the encoder computes."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trilens.encode.onnx import OnnxEncoder

from ..encode.echo_model import ID, SHIFT, echo_model
from .conftest import Trilens

TEXTS = {"a": "red fox runs", "b": "home", "c": "fox fox home."}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return echo_model(tmp_path / "echo", heads=["dense", "multi", "sparse", "lexical"])


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "texts.jsonl"
    file.write_text("".join(json.dumps({"id": name, "text": text}) + "\n" for name, text in TEXTS.items()))
    return file


@pytest.mark.parametrize("side", ["docs", "queries"])
def test_lines_of_json(tmp_path: Path, model: Path, source: Path, trilens: Trilens, side: str) -> None:
    flags = ["--query"] if side == "queries" else []
    done = trilens("encode", source, "--out", tmp_path / "v.jsonl.gz", "--model", model, "--json", *flags)
    assert done.json["texts"] == 3 and done.json["heads"] == ["dense", "multi", "sparse", "lexical"], done.err
    lines = [json.loads(line) for line in gzip.decompress((tmp_path / "v.jsonl.gz").read_bytes()).splitlines()]
    encoder, texts = OnnxEncoder(model), [*TEXTS.values()]
    expected = encoder.encode_queries(texts) if side == "queries" else encoder.encode_docs(texts)
    assert expected.dense and expected.multi and expected.lexical and expected.sparse
    assert [line["id"] for line in lines] == [*TEXTS]
    for row, line in enumerate(lines):
        np.testing.assert_allclose(line["dense_vecs"], expected.dense.vectors[row])
        vectors = expected.multi.vectors[expected.multi.offsets[row] : expected.multi.offsets[row + 1]]
        np.testing.assert_allclose(line["colbert_vecs"], vectors)
        for head, decode in (("lexical", encoder.token_texts), ("sparse", encoder.term_texts)):
            found: Any = getattr(expected, head).take(np.array([row]))
            words = dict(zip(decode(found.terms.tolist()), found.weights.tolist(), strict=True))
            assert line[f"{head}_weights"] == pytest.approx(words)
    assert lines[0]["lexical_weights"].keys() <= {"red", "fox", "runs"} and lines[0]["lexical_weights"]


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_arrays(tmp_path: Path, model: Path, source: Path, trilens: Trilens, suffix: str) -> None:
    file = tmp_path / f"vectors{suffix}"
    if suffix == ".safetensors":
        safetensors = pytest.importorskip("safetensors")
    done = trilens("encode", source, "--out", file, "--model", model)
    assert done.code == 0 and f"3 texts in {file}: dense, multi, sparse, lexical" in done.out, done.err
    if suffix == ".npz":
        arrays: dict[str, Any] = dict(np.load(file))
        assert arrays["ids"].tolist() == [*TEXTS]
    else:
        with safetensors.safe_open(file, "np") as opened:
            arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
            assert json.loads(opened.metadata()["ids"]) == [*TEXTS]
    expected = OnnxEncoder(model).encode_docs([*TEXTS.values()])
    assert expected.dense and expected.multi and expected.lexical and expected.sparse
    for name, array in (
        ("dense_vecs", expected.dense.vectors),
        ("colbert_vecs", expected.multi.vectors),
        ("colbert_offsets", expected.multi.offsets),
        ("colbert_ids", expected.multi.tokens),
        ("lexical_indptr", expected.lexical.indptr),
        ("lexical_ids", expected.lexical.terms),
        ("lexical_weights", expected.lexical.weights),
        ("sparse_indptr", expected.sparse.indptr),
        ("sparse_ids", expected.sparse.terms + SHIFT),
        ("sparse_weights", expected.sparse.weights),
    ):
        np.testing.assert_array_equal(arrays[name], array)
    assert {ID["fox"], ID["home"]} <= set(arrays["lexical_ids"].tolist())


def test_some_heads(tmp_path: Path, model: Path, source: Path, trilens: Trilens) -> None:
    assert trilens("encode", source, "--out", tmp_path / "v.jsonl", "--model", model, "--heads", "lexical,dense").code == 0
    for line in (tmp_path / "v.jsonl").read_text().splitlines():
        assert json.loads(line).keys() == {"id", "dense_vecs", "lexical_weights"}
    (tmp_path / "long.jsonl").write_text(json.dumps({"id": "a", "text": "fox " * 50}))
    done = trilens("encode", tmp_path / "long.jsonl", "--out", tmp_path / "v.npz", "--model", model, "--heads", "dense")
    assert done.code == 0 and "1 texts are longer than the model reads" in done.err


def test_what_is_refused(tmp_path: Path, model: Path, source: Path, trilens: Trilens) -> None:
    """Nothing is written, and a file that is there stays as it is."""
    (tmp_path / "v.jsonl").write_text("before")
    (tmp_path / "empty.jsonl").write_text("")
    for arguments, says in (
        ([source, "--out", tmp_path / "v.csv"], "has the ending .csv; expected .jsonl, .npz, .safetensors"),
        ([source, "--out", tmp_path / "v.npz.gz"], "has the ending .gz; expected"),
        ([source, "--out", tmp_path / "v.jsonl", "--heads", "colbert"], "--heads names colbert; expected some of dense"),
        ([tmp_path / "empty.jsonl", "--out", tmp_path / "v.jsonl"], "holds no record; expected one or more"),
        ([tmp_path / "none.jsonl", "--out", tmp_path / "v.jsonl"], "none.jsonl"),
        ([source, "--out", tmp_path / "none" / "v.jsonl"], "cannot be written"),
    ):
        refused = trilens("encode", *arguments, "--model", model)
        assert refused.code == 1 and says in refused.err and refused.err.count("\n") == 1, refused.err
    assert (tmp_path / "v.jsonl").read_text() == "before"
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
