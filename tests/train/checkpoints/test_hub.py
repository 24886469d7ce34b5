"""Published checkpoints by their hub ids: export, indexing and training."""

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")
pytest.importorskip("sentence_transformers", reason="training needs sentence-transformers: pip install trilens[train]")

from tests.cli.conftest import Trilens
from tests.hub_server import COMMIT, serve_hub, use_hub
from tests.train import tiny
from trilens.encode.folder import ModelFolder
from trilens.encode.hub import exports, hub_model
from trilens.encode.onnx import OnnxEncoder
from trilens.errors import BadModel
from trilens.train.build import build_model
from trilens.train.checkpoints import load_checkpoint
from trilens.train.encoder import TorchEncoder
from trilens.train.model import description_of

from .published import bge_m3


def test_checkpoints_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trilens: Trilens) -> None:
    bge_m3(tmp_path / "m3")
    tiny.bert(tmp_path / "bert")
    with serve_hub(**{"bge-m3": tmp_path / "m3", "bge-small-en": tmp_path / "bert"}) as hub:
        use_hub(hub, tmp_path, monkeypatch)
        made = hub_model("acme/bge-m3", "float32")
        assert made == exports() / "acme--bge-m3" / f"{COMMIT}-float32" / "bge-m3"
        assert ModelFolder.open(made).config.name == "bge-m3"
        published = load_checkpoint("acme/bge-m3")
        expected, actual = TorchEncoder(published).encode_docs(tiny.TEXTS), OnnxEncoder(made).encode_docs(tiny.TEXTS)
        assert expected.multi and actual.multi and actual.dense and actual.lexical
        torch.testing.assert_close(torch.tensor(actual.multi.vectors), torch.tensor(expected.multi.vectors), atol=1e-5, rtol=0)
        # A family is recognised by the id, not by the folder of the download.
        assert description_of(build_model("acme/bge-small-en", ["dense"])).pooling == "cls"
        done = trilens("export", "acme/bge-small-en", tmp_path / "made", "--precision", "float32", "--no-check", "--json")
        assert (done.json["config"]["pooling"], done.json["config"]["source"]) == ("cls", "acme/bge-small-en"), done.err

        documents = tmp_path / "docs.jsonl"
        documents.write_text("".join(json.dumps({"id": str(row), "text": text}) + "\n" for row, text in enumerate(tiny.TEXTS)))
        indexed = trilens("index", documents, "--to", tmp_path / "c", "--lens", "dense,lexical", "--model", "acme/bge-m3")
        assert indexed.code == 0, indexed.err
        asked = len(hub.requests)
        assert trilens("index", documents, "--to", tmp_path / "c", "--model", "acme/bge-m3").code == 0
        assert trilens("search", tmp_path / "c", "a stone", "--json").json["hits"][0]["doc_id"] == "1"
        assert len(hub.requests) == asked  # it is exported once
        refused = trilens("index", documents, "--to", tmp_path / "c", "--model", "acme/bge-small-en")
        assert refused.code == 1 and "was created with model" in refused.err


def test_checkpoints_that_cannot_be_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trilens: Trilens) -> None:
    """The one line of the export is that of the command, and nothing is left behind."""
    bge_m3(tmp_path / "m3")
    (tmp_path / "m3" / "colbert_linear.pt").unlink()
    tokenizer = tiny.bert(tmp_path / "bert") / "tokenizer.json"
    content = json.loads(tokenizer.read_text())
    content["model"]["vocab"] |= {f"more{index}": len(content["model"]["vocab"]) + index for index in range(3)}
    tokenizer.write_text(json.dumps(content))
    (tmp_path / "docs.jsonl").write_text('{"id": "a", "text": "fox"}\n')
    with serve_hub(m3=tmp_path / "m3", bert=tmp_path / "bert") as hub:
        use_hub(hub, tmp_path, monkeypatch)
        for name, says in (("m3", "has no colbert_linear.pt; expected both"), ("bert", "do not belong together")):
            refused = trilens("index", tmp_path / "docs.jsonl", "--to", tmp_path / "c", "--model", f"acme/{name}")
            lines = [line for line in refused.err.splitlines() if not line.startswith("preparing")]
            assert refused.code == 1 and len(lines) == 1 and says in lines[0]
            assert not (tmp_path / "c").exists() and not list(exports().rglob("*.onnx"))
        for load in (build_model, load_checkpoint, hub_model):
            with pytest.raises(BadModel, match="the hub has no public model of that name"):
                load("acme/nothing")
