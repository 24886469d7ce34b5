"""Export of published checkpoints: every head, equal to torch."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")
pytest.importorskip("sentence_transformers", reason="training needs sentence-transformers: pip install trilens[train]")

from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer, SparseEncoder
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer
from sentence_transformers.sparse_encoder.modules import MLMTransformer, SpladePooling

from tests.cli.conftest import Trilens
from tests.train import tiny
from trilens.encode.onnx import OnnxEncoder
from trilens.encode.terms import SparseMode
from trilens.errors import BadModel
from trilens.export.describe import ExportOptions
from trilens.export.folder import export
from trilens.train.checkpoints import load_checkpoint
from trilens.train.encoder import TorchEncoder

from .published import bge_m3, colbert, colxtr, dpr_halves, splade, vsearch, xtr

ARRAYS = {
    "dense": ["vectors"],
    "multi": ["vectors", "offsets", "tokens"],
    "sparse": ["weights", "terms", "indptr"],
    "lexical": ["weights", "terms", "indptr"],
}
TEXTS = [text.rstrip(".") for text in tiny.TEXTS]


def write_vdr(folder: Path) -> Path:
    return vsearch(folder, "vdr", False)[0]


def write_dpr(folder: Path) -> Path:
    dpr_halves(folder)
    return folder / "dpr-question_encoder-tiny"


def write_stack(folder: Path, *more: Any, pooling: Any = "mean", **settings: Any) -> Path:
    modules = [Transformer(str(tiny.bert(folder / "bert")), max_seq_length=20), Pooling(tiny.HIDDEN, pooling), *more]
    stack = SentenceTransformer(modules=modules, **settings)
    stack.save_pretrained(str(folder / "stack"), create_model_card=False)
    return folder / "stack"


def write(builder: Callable[[Path], Any]) -> Callable[[Path], Path]:
    def written(folder: Path) -> Path:
        builder(folder / "xtr-tiny")
        return folder / "xtr-tiny"

    return written


LAYOUTS: dict[str, tuple[Callable[[Path], Path], list[str]]] = {
    "BGE-M3": (write(bge_m3), ["dense", "multi", "lexical"]),
    "ColBERTv2": (write(colbert), ["multi"]),
    "ColBERT in torch's format": (write(lambda folder: colbert(folder, binary=True)), ["multi"]),
    "XTR": (write(xtr), ["multi"]),
    "XTR with a pooling": (write(lambda folder: xtr(folder, "beside and pooled")), ["multi"]),
    "ColXTR": (write(colxtr), ["multi"]),
    "VDR": (write_vdr, ["sparse"]),
    "DPR of vsearch": (lambda folder: vsearch(folder, "dpr", True)[0], ["dense"]),
    "DPR": (write_dpr, ["dense"]),
    "projected": (lambda folder: write_stack(folder, Dense(tiny.HIDDEN, 6)), ["dense"]),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_head_equals_torch(tmp_path: Path, layout: str, trilens: Trilens) -> None:
    """The loaders are tested against plain transformers; here the model folder is compared with what they load."""
    builder, heads = LAYOUTS[layout]
    source = builder(tmp_path)
    done = trilens("export", source, tmp_path / "made", "--precision", "float32", "--json")
    assert done.code == 0, done.err
    assert done.json["config"]["heads"] == heads and str(tmp_path) not in (tmp_path / "made" / "trilens.json").read_text()
    every = SparseMode(top=None)
    published, made = TorchEncoder(load_checkpoint(source), mode=every), OnnxEncoder(tmp_path / "made", mode=every)
    assert list(made.heads) == list(published.heads) == heads
    for expected, actual in (
        (published.encode_docs(TEXTS), made.encode_docs(TEXTS)),
        (published.encode_queries(TEXTS), made.encode_queries(TEXTS)),
    ):
        for head in heads:
            rows, others = getattr(expected, head), getattr(actual, head)
            for name in ARRAYS[head]:
                np.testing.assert_allclose(getattr(others, name), getattr(rows, name), atol=1e-5, rtol=1e-5)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


@pytest.mark.parametrize("kind", ["bert", "distilbert"])
@pytest.mark.parametrize("modules", [False, True])
def test_splade_equals_sentence_transformers(tmp_path: Path, kind: str, modules: bool, trilens: Trilens) -> None:
    """Naver's folders hold a masked language model; since version 5, sentence-transformers adds its modules."""
    folder = tmp_path / "splade-tiny"
    splade(folder, kind)
    published = SparseEncoder(modules=[MLMTransformer(str(folder)), SpladePooling("max")])
    if modules:
        folder = tmp_path / "other"
        published.save_pretrained(str(folder), create_model_card=False)
    done = trilens("export", folder, tmp_path / "made", "--precision", "float32", "--json")
    assert done.code == 0 and done.json["config"]["heads"] == ["sparse"], done.err
    expected = published.encode(TEXTS, convert_to_sparse_tensor=False).cpu().numpy()
    encoder = OnnxEncoder(tmp_path / "made", mode=SparseMode(top=None))
    for encoded in (encoder.encode_docs(TEXTS).sparse, encoder.encode_queries(TEXTS).sparse):
        assert encoded is not None
        actual = np.zeros(expected.shape, np.float32)
        actual[np.repeat(np.arange(3), np.diff(encoded.indptr)), encoded.terms] = encoded.weights
        np.testing.assert_allclose(actual, expected, atol=1e-5)
        assert 0 < len(encoded.terms) < expected.size  # ReLU leaves most words out


@pytest.mark.parametrize(("length", "similarity"), [(True, None), (False, None), (False, "dot")])
def test_sentence_transformers(tmp_path: Path, length: bool, similarity: Any, trilens: Trilens) -> None:
    """Vectors that are compared by the cosine have unit length; prefixes are those of the model."""
    more = [Normalize()] if length else []
    folder = write_stack(tmp_path, *more, pooling="cls", prompts={"query": "the quick "}, similarity_fn_name=similarity)
    done = trilens("export", folder, tmp_path / "made", "--precision", "float32")
    assert done.code == 0, done.err
    encoder, published = OnnxEncoder(tmp_path / "made"), SentenceTransformer(str(folder))
    unit = similarity is None
    for actual, expected in (
        (encoder.encode_docs(TEXTS).dense, published.encode_document(TEXTS, normalize_embeddings=unit)),
        (encoder.encode_queries(TEXTS).dense, published.encode_query(TEXTS, normalize_embeddings=unit)),
    ):
        assert actual is not None
        np.testing.assert_allclose(actual.vectors, expected, atol=1e-5)


def test_heads_are_left_out_on_purpose_only(tmp_path: Path, trilens: Trilens) -> None:
    bge_m3(tmp_path / "m3")
    done = trilens("export", tmp_path / "m3", tmp_path / "made", "--heads", "dense", "--json")
    assert done.json["config"]["heads"] == ["dense"]
    refused = trilens("export", tmp_path / "m3", tmp_path / "more", "--heads", "sparse")
    assert refused.code == 1 and "names sparse; expected some of those of the model, dense, multi, lexical" in refused.err
    refused = trilens("export", tmp_path / "m3", tmp_path / "more", "--pooling", "mean")
    assert refused.code == 1 and "is a BGE-M3 checkpoint with heads and settings of its own; remove --pooling" in refused.err
    with pytest.raises(BadModel, match="is a BGE-M3 checkpoint, whose heads would be dropped"):
        export(tmp_path / "m3", tmp_path / "more", ExportOptions())
    folder = tiny.bert(tmp_path / "bert")
    tensors = load_file(folder / "model.safetensors") | {"score.weight": torch.ones(3, tiny.HIDDEN)}
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    refused = trilens("export", folder, tmp_path / "more")
    assert refused.code == 1 and "has score.weight (3 × 32), which no known head uses" in refused.err
    assert "give --heads dense" in refused.err and refused.err.count("\n") == 1
    assert not (tmp_path / "more").exists()
    assert trilens("export", folder, tmp_path / "more", "--heads", "dense").code == 0


@pytest.mark.parametrize(
    ("settings", "says"),
    [({"pooling_strategy": "sum"}, "pools by sum of relu"), ({"activation_function": "log1p_relu"}, "max of log1p_relu")],
)
def test_unsupported_splade(tmp_path: Path, settings: Any, says: str, trilens: Trilens) -> None:
    splade(tmp_path / "splade")
    published = SparseEncoder(modules=[MLMTransformer(str(tmp_path / "splade")), SpladePooling(**settings)])
    published.save_pretrained(str(tmp_path / "other"), create_model_card=False)
    refused = trilens("export", tmp_path / "other", tmp_path / "made")
    assert refused.code == 1 and says in refused.err


def test_without_torch(tmp_path: Path) -> None:
    """A checkpoint with heads names the extra that reads it; a plain encoder is exported."""
    bge_m3(tmp_path / "m3")
    tiny.bert(tmp_path / "bert")
    program = "import sys; sys.modules['torch'] = None; from trilens.cli.main import main; main()"

    def run(source: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-c", program, "export", source, "made", "--precision", "float32", "--no-check"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)

    refused = run("m3")
    assert refused.returncode == 1 and "pip install 'trilens[train]'" in refused.stderr.splitlines()[-1]
    assert not (tmp_path / "made").exists()
    done = run("bert")
    assert done.returncode == 0 and "made: dense; float32" in done.stdout, done.stderr


def test_a_missing_head(tmp_path: Path, trilens: Trilens) -> None:
    bge_m3(tmp_path / "m3")
    (tmp_path / "m3" / "sparse_linear.pt").unlink()
    refused = trilens("export", tmp_path / "m3", tmp_path / "made")
    assert refused.code == 1 and "has no sparse_linear.pt; expected both" in refused.err
    colbert(tmp_path / "colbert")
    tensors = load_file(tmp_path / "colbert" / "model.safetensors")
    del tensors["linear.weight"]
    save_file(tensors, tmp_path / "colbert" / "model.safetensors", {"format": "pt"})
    refused = trilens("export", tmp_path / "colbert", tmp_path / "made")
    assert refused.code == 1 and "has no linear.weight" in refused.err and refused.err.count("\n") == 1
    assert json.loads((tmp_path / "colbert" / "config.json").read_text())["architectures"] == ["HF_ColBERT"]
