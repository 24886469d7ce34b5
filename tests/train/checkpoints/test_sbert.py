"""Sentence-transformers models against sentence-transformers."""

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")
pytest.importorskip("sentence_transformers", reason="training needs sentence-transformers: pip install trilens[train]")

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer

from tests.train import tiny
from trilens.errors import BadModel
from trilens.train.checkpoints import load_checkpoint
from trilens.train.model import description_of

from .published import outputs, same


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("projected", [False, True])
@pytest.mark.parametrize("normalised", [False, True])
def test_sentence_transformers(tmp_path: Path, pooling: Any, projected: bool, normalised: bool) -> None:
    modules: list[Any] = [Transformer(str(tiny.bert(tmp_path / "bert")), max_seq_length=20), Pooling(tiny.HIDDEN, pooling)]
    modules += [Dense(tiny.HIDDEN, 6, bias=pooling == "cls")] if projected else []
    modules += [Normalize()] if normalised else []
    prompts = {"query": "the quick ", "document": ""}
    published = SentenceTransformer(modules=modules, prompts=prompts, similarity_fn_name=None if normalised else "dot")
    published.save_pretrained(str(tmp_path / "published"), create_model_card=False)
    model = load_checkpoint(tmp_path / "published")
    description = description_of(model)
    assert (description.pooling, description.max_doc_tokens, description.query_prefix) == (pooling, 20, "the quick ")
    for task, encode in (("document", published.encode_document), ("query", published.encode_query)):
        same(outputs(model, task)["sentence_embedding"], encode(tiny.TEXTS, convert_to_tensor=True).cpu())
    model.save_pretrained(str(tmp_path / "saved"), create_model_card=False)
    same(outputs(load_checkpoint(tmp_path / "saved"))["sentence_embedding"], outputs(model)["sentence_embedding"])


def test_unsupported_modules(tmp_path: Path) -> None:
    published = SentenceTransformer(modules=[Transformer(str(tiny.bert(tmp_path / "bert"))), Pooling(tiny.HIDDEN, "max")])
    published.save_pretrained(str(tmp_path / "max"), create_model_card=False)
    with pytest.raises(BadModel, match="pools by max"):
        load_checkpoint(tmp_path / "max")
    modules = json.loads((tmp_path / "max" / "modules.json").read_text())
    modules[1]["type"] = "sentence_transformers.models.CNN"
    (tmp_path / "max" / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(BadModel, match="names the module CNN"):
        load_checkpoint(tmp_path / "max")
