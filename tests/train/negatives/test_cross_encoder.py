"""A minimal cross-encoder with random weights, whose scores must be passed on."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")

import torch
from sentence_transformers import CrossEncoder
from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

from trilens.errors import BadModel
from trilens.train.negatives.cross_encoder import CrossEncoderScorer

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "dog", "mat", "hat"]


def model(folder: Path, labels: int = 1) -> Path:
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(WORDS))
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = BertConfig(vocab_size=len(WORDS), max_position_embeddings=32, num_labels=labels, initializer_range=1.0, **sizes)
    BertForSequenceClassification(config).save_pretrained(folder)
    return folder


def test_scores_equal_those_of_the_model(tmp_path: Path) -> None:
    path = model(tmp_path / "model")
    scorer = CrossEncoderScorer(str(path))
    actual = scorer.score(["cat", "dog", "mat"], [["mat", "hat dog"], [], ["cat"]])
    expected = CrossEncoder(str(path)).predict([("cat", "mat"), ("cat", "hat dog"), ("mat", "cat")])
    assert [len(scores) for scores in actual] == [2, 0, 1]
    np.testing.assert_allclose(np.concatenate(actual), expected, rtol=1e-4)
    assert len(set(np.concatenate(actual).tolist())) == 3
    assert scorer.name == str(path)
    assert [scores.tolist() for scores in scorer.score(["cat"], [[]])] == [[]]


def test_unusable_models(tmp_path: Path) -> None:
    with pytest.raises(BadModel, match="gives 2 scores per pair; expected one"):
        CrossEncoderScorer(str(model(tmp_path / "two", labels=2))).score(["cat"], [["mat"]])
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadModel, match=r"empty cannot be loaded \(.*expected a folder"):
        CrossEncoderScorer(str(tmp_path / "empty"))
