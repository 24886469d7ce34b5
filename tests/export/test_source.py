"""Detection of plain encoders, sentence-transformers stacks, trained models and separate towers."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="the originals run in torch: pip install trilens[train]")
pytest.importorskip("onnx", reason="part of trilens[export]")

from trilens.errors import BadModel
from trilens.export.source import Source, Sources, find_sources

from .tiny import write_modules

KNOWN = "sentence_transformers.models."


def write_json(file: Path, content: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))


def test_a_plain_encoder(tmp_path: Path) -> None:
    assert find_sources(tmp_path) == Sources(Source(tmp_path))


@pytest.mark.parametrize(
    ("config", "pooling"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
        ({"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}, "mean"),
        ({"pooling_mode": "cls"}, "cls"),
    ],
)
def test_pooling_and_length_of_a_stack(tmp_path: Path, config: dict[str, Any], pooling: str) -> None:
    write_modules(
        tmp_path, [("", KNOWN + "Transformer"), ("1_Pooling", KNOWN + "Pooling"), ("2_Normalize", KNOWN + "Normalize")]
    )
    write_json(tmp_path / "1_Pooling" / "config.json", config)
    write_json(tmp_path / "sentence_bert_config.json", {"max_seq_length": 99})
    source = find_sources(tmp_path).doc
    assert (source.backbone, source.heads, source.pooling, source.longest) == (tmp_path / "", None, pooling, 99)


def test_trained_heads(tmp_path: Path) -> None:
    write_modules(tmp_path, [("", "trilens.train.model.Backbone"), ("1_Heads", "trilens.train.model.Heads")])
    assert find_sources(tmp_path) == Sources(Source(tmp_path, tmp_path / "1_Heads"))


def write_router(folder: Path, structure: dict[str, list[str]]) -> None:
    write_modules(folder, [("", "sentence_transformers.base.modules.router.Router")])
    types = {name: f"trilens.train.model.{name.rsplit('_', 1)[-1]}" for names in structure.values() for name in names}
    write_json(folder / "router_config.json", {"types": types, "structure": structure, "parameters": {}})


def test_two_towers(tmp_path: Path) -> None:
    write_router(
        tmp_path, {"query": ["query_0_Backbone", "query_1_Heads"], "document": ["document_0_Backbone", "document_1_Heads"]}
    )
    doc = Source(tmp_path / "document_0_Backbone", tmp_path / "document_1_Heads")
    query = Source(tmp_path / "query_0_Backbone", tmp_path / "query_1_Heads")
    assert find_sources(tmp_path) == Sources(doc, query)


def test_two_routes_through_one_tower(tmp_path: Path) -> None:
    write_router(tmp_path, {"query": ["query_0_Backbone", "query_1_Heads"], "document": ["query_0_Backbone", "query_1_Heads"]})
    assert find_sources(tmp_path).query is None


def test_invalid_sources(tmp_path: Path) -> None:
    with pytest.raises(BadModel, match="there is no folder"):
        find_sources(tmp_path / "none")
    write_modules(tmp_path, [("", KNOWN + "Transformer"), ("1_Dense", KNOWN + "Dense")])
    with pytest.raises(BadModel, match="has a module Dense, which cannot be exported"):
        find_sources(tmp_path)
    write_modules(tmp_path, [("", KNOWN + "Transformer"), ("1_Pooling", KNOWN + "Pooling")])
    write_json(tmp_path / "1_Pooling" / "config.json", {"pooling_mode_max_tokens": True})
    with pytest.raises(BadModel, match="a pooling mode that cannot be exported; expected either cls or mean"):
        find_sources(tmp_path)
    write_modules(tmp_path, [("", KNOWN + "Normalize")])
    with pytest.raises(BadModel, match="expected a Transformer among them"):
        find_sources(tmp_path)
    write_router(tmp_path, {"query": ["query_0_Backbone"]})
    with pytest.raises(BadModel, match=r"has the routes \['query'\]; expected query and document"):
        find_sources(tmp_path)
    (tmp_path / "modules.json").write_text("{")
    with pytest.raises(BadModel, match=r"modules\.json cannot be read"):
        find_sources(tmp_path)
    with pytest.raises(BadModel, match=r"tokenizer\.json is missing; expected a fast tokenizer"):
        _ = Source(tmp_path).tokenizer
