"""Fixtures of whole runs: a tiny backbone, the same without dropout, and training data.

Torch is imported in the fixtures only, because the tests of data and negatives run without it.
"""

import json
from pathlib import Path

import numpy as np
import pytest

QUESTIONS = 60


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT with random weights."""
    from tests.train import tiny

    return tiny.bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="module")
def no_dropout(tmp_path_factory: pytest.TempPathFactory, backbone: Path) -> Path:
    """The same backbone without dropout, to compare runs that would draw it differently."""
    folder = tmp_path_factory.mktemp("no-dropout")
    for file in backbone.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(
        json.dumps(settings | {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0})
    )
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Questions of two words; the positive contains both, each negative one of them."""
    from tests.train import tiny

    random = np.random.default_rng(0)
    file = tmp_path_factory.mktemp("data") / "train.jsonl"
    with file.open("w") as lines:
        for number in range(QUESTIONS):
            first, second, *others = random.permutation(tiny.WORDS).tolist()
            line = {
                "question": f"{first} {second}",
                "answers": [second],
                "positive_ctxs": [{"passage_id": f"p{number}", "title": "", "text": " ".join([second, first, *others[:4]])}],
                "hard_negative_ctxs": [
                    {"passage_id": f"n{number}-{start}", "title": "", "text": " ".join([first, *others[start : start + 4]])}
                    for start in range(3)
                ],
            }
            lines.write(json.dumps(line) + "\n")
    return file
