"""Export of cross-encoders: agreement with torch, and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="the originals run in torch: pip install trilens[train]")
pytest.importorskip("onnx", reason="part of trilens[export]")

import torch
from tokenizers import Tokenizer, processors

from trilens.encode.cross_encoder import CrossEncoder
from trilens.errors import BadInput, BadModel
from trilens.export.cross import ScoreAgreement, agree, require_agreement
from trilens.export.describe import ExportOptions
from trilens.export.folder import Exported, export

from .tiny import LIKE_BERT, WORDS, texts, transformers, write_texts, write_tokenizer

KINDS = {
    "bert": "BertForSequenceClassification",
    "roberta": "RobertaForSequenceClassification",
    "xlm-roberta": "XLMRobertaForSequenceClassification",
    "camembert": "CamembertForSequenceClassification",
    "distilbert": "DistilBertForSequenceClassification",
    "mpnet": "MPNetForSequenceClassification",
}


def write_cross(folder: Path, kind: str = "bert", labels: int = 1) -> Any:
    """Write a sequence classifier as transformers does; returns the model."""
    made = getattr(transformers, KINDS[kind])
    torch.manual_seed(3)
    settings: dict[str, Any] = LIKE_BERT
    if kind == "distilbert":
        settings = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48, "max_position_embeddings": 330}
    model = made(made.config_class(vocab_size=len(WORDS), pad_token_id=1, num_labels=labels, **settings)).eval()
    with torch.no_grad():
        for called, weights in model.named_parameters():
            norm = "norm" in called.lower() and called.endswith("weight")
            weights.normal_(1 if norm else 0, 0.2 if weights.ndim == 1 else 0.3)
    model.save_pretrained(folder)
    write_tokenizer(folder)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    ends = [(word, WORDS.index(word)) for word in ("[CLS]", "[SEP]")]
    types = ":1" if kind == "bert" else ":0"
    pair = f"[CLS] $A [SEP] $B{types} [SEP]{types}" if kind == "bert" else "[CLS] $A [SEP] [SEP] $B:0 [SEP]:0"
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair=pair, special_tokens=ends)
    tokenizer.save(str(folder / "tokenizer.json"))
    return model


def run(folder: Path, precision: Any = "float32", **more: Any) -> Exported:
    options = ExportOptions(precision=precision, **more)
    return export(folder / "source", folder / "made", options, write_texts(folder / "texts.jsonl"))


@pytest.mark.parametrize("kind", KINDS)
def test_scores_equal_torch(tmp_path: Path, kind: str) -> None:
    model = write_cross(tmp_path / "source", kind)
    done = run(tmp_path)
    assert done.agreements and done.agreements[0].difference < 1e-5
    query, *passages = texts(6)
    actual = CrossEncoder(tmp_path / "made").score([query], [passages])[0]
    tokenizer = Tokenizer.from_file(str(tmp_path / "source" / "tokenizer.json"))
    tokenizer.no_truncation()
    for score, passage in zip(actual, passages, strict=True):
        pair = tokenizer.encode(query, passage)
        given = {"input_ids": torch.tensor([pair.ids]), "attention_mask": torch.ones(1, len(pair.ids))}
        if kind == "bert":
            given["token_type_ids"] = torch.tensor([pair.type_ids])
        with torch.no_grad():
            assert score == pytest.approx(model(**given).logits[0, 0].item(), abs=1e-4)
    assert len({round(float(score), 4) for score in actual}) > 1


@pytest.mark.parametrize("precision", ["int8-weights", "int8"])
def test_8_bits(tmp_path: Path, precision: str) -> None:
    write_cross(tmp_path / "source")
    done = run(tmp_path, precision, licence="MIT", source="made by a test")
    assert done.agreements and isinstance(done.agreements[0], ScoreAgreement) and done.agreements[0].correlation > 0.98
    described = json.loads((tmp_path / "made" / "trilens.json").read_text())
    assert described["precision"] == precision and described["kind"] == "cross-encoder" and described["token_types"]
    assert (described["licence"], described["source"]) == ("MIT", "made by a test")
    assert "correlation with the original" in (tmp_path / "made" / "README.md").read_text()
    pairs = [(query, text) for query in texts(4) for text in texts(9)]
    together = CrossEncoder(tmp_path / "made").score_pairs(pairs)
    alone = [CrossEncoder(tmp_path / "made").score_pairs([pair])[0] for pair in pairs[:3]]
    np.testing.assert_allclose(together[:3], alone, atol=1e-4)


def test_the_length_of_the_tokenizer_counts(tmp_path: Path) -> None:
    write_cross(tmp_path / "source")
    (tmp_path / "source" / "tokenizer_config.json").write_text('{"model_max_length": 48}')
    assert run(tmp_path).config.max_tokens == 48


def test_a_tokenizer_without_types(tmp_path: Path) -> None:
    write_cross(tmp_path / "source")
    (tmp_path / "source" / "tokenizer_config.json").write_text('{"model_input_names": ["input_ids", "attention_mask"]}')
    done = run(tmp_path)
    assert not done.config.token_types and done.agreements[0].difference < 1e-5  # type: ignore[index]
    assert len(CrossEncoder(tmp_path / "made").score_pairs([("w1", "w2")])) == 1


def test_refusals(tmp_path: Path) -> None:
    write_cross(tmp_path / "two" / "source", labels=2)
    with pytest.raises(BadModel, match="classifies texts into 2; expected one output"):
        run(tmp_path / "two")
    write_cross(tmp_path / "one" / "source")
    with pytest.raises(BadInput, match="is a cross-encoder, to which vdr does not apply"):
        run(tmp_path / "one", vdr=True)
    config = tmp_path / "one" / "source" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"model_type": "deberta"}))
    with pytest.raises(BadModel, match="has model_type 'deberta'; expected one of bert"):
        run(tmp_path / "one")
    assert not (tmp_path / "one" / "made").exists()


def test_agreement() -> None:
    scores = np.array([1.0, 2.0, 4.0], np.float32)
    assert agree(scores, scores) == ScoreAgreement(pytest.approx(1.0), 0.0)  # type: ignore[arg-type]
    assert agree(scores + 2, scores).difference == 0.5  # relative to the largest score
    assert agree(scores[:1], scores[:1]).correlation == 1 and agree(scores[:1], scores[1:2]).correlation == 0
    assert agree(-scores, scores).correlation == pytest.approx(-1)


def test_too_little_agreement_is_an_error(tmp_path: Path) -> None:
    write_cross(tmp_path / "source")
    config: Any = run(tmp_path).config
    with pytest.raises(BadModel, match=r"scores differ from the original by 0.5; expected at most 0.001"):
        require_agreement(ScoreAgreement(1.0, 0.5), config)
    with pytest.raises(BadModel, match=r"correlation of 0.9000 with the original; expected at least 0.98"):
        require_agreement(ScoreAgreement(0.9, 0.5), config.model_copy(update={"precision": "int8"}))
