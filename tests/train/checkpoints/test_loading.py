"""Detection of checkpoint kinds, models of earlier runs, and plain encoders."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")
pytest.importorskip("sentence_transformers", reason="training needs sentence-transformers: pip install trilens[train]")

from torch.nn.functional import normalize
from transformers import AutoModel

from tests.train import tiny
from trilens.errors import BadInput, BadModel
from trilens.train.build import build_model
from trilens.train.checkpoints import load_checkpoint

from .published import DIM, attended, drawn, outputs, same, states_of


def test_model_of_an_earlier_run(tmp_path: Path) -> None:
    made = build_model(tiny.bert(tmp_path / "bert"), ["dense", "multi"], changes={"multi": {"dim": DIM}})
    made.save_pretrained(str(tmp_path / "saved"), create_model_card=False)
    again = load_checkpoint(tmp_path / "saved")
    assert torch.equal(outputs(made)["multi"], outputs(again)["multi"])
    shorter = load_checkpoint(tmp_path / "saved", changes={"max_doc_tokens": 5})
    assert outputs(shorter)["multi"].shape[1] == 5
    with pytest.raises(BadInput, match="changes has \\['dim'\\]"):
        load_checkpoint(tmp_path / "saved", changes={"dim": 5})


def test_a_plain_encoder(tmp_path: Path) -> None:
    actual = outputs(load_checkpoint(tiny.bert(tmp_path)))
    plain = AutoModel.from_pretrained(tmp_path)
    for index in range(3):
        same(actual["sentence_embedding"][index], normalize(states_of(plain, attended(actual, index)).mean(0), dim=0))


def test_invalid_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadModel, match=r"has no config.json with a model_type"):
        load_checkpoint(tmp_path)
    torch.save({"state": drawn(3)}, tmp_path / "x.pt")
    with pytest.raises(BadModel, match=r"holds \['state'\]; expected model_dict"):
        load_checkpoint(tmp_path / "x.pt")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(BadModel, match=r"there is no folder .*nowhere/at/all"):
        load_checkpoint(tmp_path / "nowhere/at/all")
