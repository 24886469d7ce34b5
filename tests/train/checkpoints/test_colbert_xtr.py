"""ColBERT, XTR and ColXTR against plain transformers."""

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")
pytest.importorskip("sentence_transformers", reason="training needs sentence-transformers: pip install trilens[train]")

from torch.nn.functional import normalize
from transformers import AutoModel, T5EncoderModel

from tests.train import tiny
from trilens.errors import BadModel
from trilens.train.checkpoints import load_checkpoint
from trilens.train.model import stacks_of

from .published import ID, attended, colbert, colxtr, edit_json, outputs, same, states_of, xtr


@pytest.mark.parametrize("binary", [False, True])
def test_colbert(tmp_path: Path, binary: bool) -> None:
    plain, linear = AutoModel.from_pretrained(tiny.bert(tmp_path / "base")), colbert(tmp_path, binary)
    model = load_checkpoint(tmp_path)
    actual = outputs(model, "query", ["red fox."])
    ids = [ID[word] for word in ["[CLS]", "[unused0]", "red", "fox", ".", "[SEP]"] + ["[MASK]"] * 6]
    assert actual["input_ids"].tolist() == [ids]
    mask = torch.tensor([[1] * 6 + [0] * 6])
    with torch.no_grad():
        states = plain.eval()(input_ids=torch.tensor([ids]), attention_mask=mask).last_hidden_state
    same(actual["multi"], normalize(states @ linear.T, dim=-1))
    actual = outputs(model)
    for index in range(3):
        ids_of = attended(actual, index)
        assert ids_of[:2].tolist() == [ID["[CLS]"], ID["[unused1]"]]
        kept = ~torch.isin(ids_of, torch.tensor([ID[","], ID["."]]))
        same(actual["multi"][index][actual["multi_mask"][index]], normalize(states_of(plain, ids_of) @ linear.T, dim=1)[kept])
    edit_json(tmp_path / "artifact.metadata", dim=4)
    with pytest.raises(BadModel, match=r"linear.weight for 8 dimensions; expected 4, as in artifact.metadata"):
        load_checkpoint(tmp_path)


@pytest.mark.parametrize("layout", ["inside", "beside", "beside and pooled"])
def test_xtr(tmp_path: Path, layout: str) -> None:
    """In google/xtr-base-en the linear layer is in 2_Dense; PyLate and others store it with the encoder's tensors."""
    folder = tmp_path / "xtr-tiny-en"
    linear = xtr(folder, layout)
    plain = T5EncoderModel.from_pretrained(folder)
    model = load_checkpoint(folder)
    actual = outputs(model, texts=["The QUICK Fox."])
    tokens = stacks_of(model)["query"].backbone.tokens
    assert tokens.texts(actual["input_ids"][0].tolist()) == ["the", "quick", "fox", ".", "</s>"]  # not Fox, which it has too
    same(actual["multi"][0], normalize(states_of(plain, actual["input_ids"][0]) @ linear.T, dim=1))
    model.save_pretrained(str(tmp_path / "saved"), create_model_card=False)
    assert torch.equal(outputs(load_checkpoint(tmp_path / "saved"), texts=["The QUICK Fox."])["multi"], actual["multi"])


def test_colxtr(tmp_path: Path) -> None:
    plain, linear = T5EncoderModel.from_pretrained(tiny.t5(tmp_path / "base")), colxtr(tmp_path)
    actual = outputs(load_checkpoint(tmp_path), texts=["red Fox", "a stone under the tree"])
    for index, first in ((0, "▁Document"), (1, "▁Document")):
        ids = attended(actual, index)
        vectors = states_of(plain, ids) @ linear.T
        expected = torch.cat([vectors[:-1], vectors.mean(0, keepdim=True)])
        same(actual["multi"][index][actual["multi_mask"][index]], expected)
        assert first == json.loads((tmp_path / "tokenizer.json").read_text())["model"]["vocab"][int(ids[0])][0]
