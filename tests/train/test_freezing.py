"""Frozen parameters and gradient checkpointing."""

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")
pytest.importorskip("sentence_transformers", reason="training needs sentence-transformers: pip install trilens[train]")

from tests.train import tiny
from trilens.errors import BadInput
from trilens.train.build import build_model
from trilens.train.freezing import freeze, recompute_layers
from trilens.train.model import stacks_of


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.bert(tmp_path_factory.mktemp("models") / "bge-tiny-en")


def test_freezing(bert: Path) -> None:
    model = build_model(bert, ["dense", "multi"], changes={"multi": {"dim": 8}})
    freeze(model, embeddings=True, layers=1)
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert not any("embeddings." in name or "layer.0." in name for name in trained)
    assert any("layer.1." in name for name in trained) and any("multi" in name for name in trained)
    freeze(model, embeddings=False)
    assert all(parameter.requires_grad for parameter in model.parameters())
    with pytest.raises(BadInput, match="layers is 3; expected 0 to 2"):
        freeze(model, layers=3)


def test_gradient_checkpointing_keeps_the_gradient(bert: Path) -> None:
    model = build_model(bert).train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0

    def gradient() -> Any:
        model.zero_grad()
        model(model.preprocess(tiny.TEXTS, task="document"))["sentence_embedding"].sum().backward()
        return stacks_of(model)["query"].backbone.model.get_input_embeddings().weight.grad.clone()

    usual = gradient()
    recompute_layers(model)
    assert stacks_of(model)["query"].backbone.model.is_activation_checkpointing
    torch.testing.assert_close(gradient(), usual)
    recompute_layers(model, on=False)
    assert not stacks_of(model)["query"].backbone.model.is_activation_checkpointing
