"""Calibration texts: their sources, and their tokenisation."""

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the originals run in torch: pip install trilens[train]")
pytest.importorskip("onnx", reason="part of trilens[export]")

from trilens.encode.folder import ModelConfig
from trilens.encode.tokens import Tokens
from trilens.errors import BadInput
from trilens.export.calibration_texts import CalibrationTexts, read_docs, read_queries, read_texts, thin

from .tiny import DESCRIPTION, MULTI, WORDS, write_texts, write_tokenizer


def test_file_is_sampled_evenly(tmp_path: Path) -> None:
    assert len(read_texts(write_texts(tmp_path / "texts.jsonl", 30))) == 30
    assert len(read_texts(write_texts(tmp_path / "texts.jsonl", 1234))) == 500
    assert thin(["a", "b", "c", "d", "e"], 2) == ["a", "c"]


def test_default_texts_are_docstrings() -> None:
    texts = read_texts(None)
    assert len(texts) == 240
    assert texts == read_texts(None)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"title": "x"}\n', "texts.jsonl:1: no text"),
        ("{", "texts.jsonl:1"),
        ('{"text": 3}\n', "expected an object with a string"),
    ],
)
def test_invalid_sources(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "texts.jsonl").write_text(content)
    with pytest.raises(BadInput, match=message):
        read_texts(tmp_path / "texts.jsonl")
    with pytest.raises(BadInput, match="does not exist"):
        CalibrationTexts(tmp_path / "none.jsonl")


def test_texts_are_tokenised_as_documents_and_queries(tmp_path: Path) -> None:
    write_tokenizer(tmp_path)
    tokens = Tokens(tmp_path / "tokenizer.json")
    filled = MULTI | {"query_tokens": 16, "mask_token": "[MASK]", "query_marker": "[Q]", "doc_marker": "[D]"}
    config = ModelConfig.model_validate(DESCRIPTION | {"precision": "int8", "multi": filled, "max_doc_tokens": 8})
    ids = {word: index for index, word in enumerate(WORDS)}
    text = " ".join(f"w{index}" for index in range(20))
    [doc] = read_docs(tokens, config, [text])
    assert [WORDS[id_] for id_ in doc.ids] == ["[CLS]", "[D]", "w0", "w1", "w2", "w3", "w4", "[SEP]"]
    [query] = read_queries(tokens, config, ["w5 w6"])
    assert [WORDS[id_] for id_ in query.ids[:6]] == ["[CLS]", "[Q]", "w1", "w5", "w6", "[SEP]"]
    assert (query.attended, query.ids[6:]) == (6, [ids["[MASK]"]] * 10)
    alike = ModelConfig.model_validate(DESCRIPTION | {"precision": "int8", "query_prefix": ""})
    assert read_queries(tokens, alike, ["w5 w6"]) == []
