"""Cached states of frozen layers train the same model as computed ones."""

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")

from safetensors.torch import load_file

from tests.train import tiny
from tests.train.runs import recipe_file, weights
from trilens.train.build import build_model
from trilens.train.recipe import read_recipe
from trilens.train.run import train
from trilens.train.state_cache import StateCache


def test_frozen_backbone(tmp_path: Path, no_dropout: Path, data: Path) -> None:
    """Cached and computed states give equal weights, up to float16."""
    file = recipe_file(tmp_path, no_dropout, data, "colbert")
    train(read_recipe(file, ["model.freeze=true"]), tmp_path / "read")
    train(read_recipe(file, ["model.freeze_embeddings=true", f"model.freeze_layers={tiny.LAYERS}"]), tmp_path / "computed")
    read, computed = weights(tmp_path / "read"), weights(tmp_path / "computed")
    for name in read:
        torch.testing.assert_close(read[name], computed[name], atol=2e-3, rtol=1e-2, msg=name)
        if "1_Heads" not in name:
            assert torch.equal(read[name], computed[name])
    assert not list((tmp_path / "read").glob("states-*"))


def test_states_are_reused_only_for_the_same_texts_and_model(tmp_path: Path, no_dropout: Path) -> None:
    def kept(texts: list[str], model: Any, layers: int | None = None) -> list[int]:
        """The numbers of texts computed; all states must equal those of a fresh cache."""
        computed: list[int] = []
        cache = StateCache(model, tmp_path, layers)
        cache.add("document", texts, computed.append)
        fresh = StateCache(model, tmp_path / "fresh", layers)
        fresh.add("document", texts)
        for name, states in cache.known("document", texts).items():
            assert torch.equal(torch.as_tensor(states), torch.as_tensor(fresh.known("document", texts)[name]))
        return computed

    model = build_model(no_dropout, ["dense"])
    assert sum(kept(tiny.TEXTS, model)) == len(tiny.TEXTS)
    assert not kept(tiny.TEXTS, model)
    assert kept(tiny.TEXTS[:2], model) and kept(tiny.TEXTS[:2], model, layers=1)
    assert kept(tiny.TEXTS[:2], build_model(tiny.bert(tmp_path / "other", seed=3), ["dense"]), layers=1)
    (tmp_path / "document.whole").unlink()  # as a run leaves it that was stopped while it computed them
    assert kept(tiny.TEXTS[:2], model)


@pytest.mark.parametrize("towers", ["shared", "separate"])
def test_frozen_layers(tmp_path: Path, no_dropout: Path, data: Path, towers: str) -> None:
    """Cached and computed states of the first layer give equal weights, up to float16."""
    file = recipe_file(tmp_path, no_dropout, data, "m3", head_learning_rate=None)
    frozen = ["model.freeze_embeddings=true", "model.freeze_layers=1", f"model.towers={towers}", "batch.sub_batch=3"]
    train(read_recipe(file, [*frozen, "model.cache_states=true"]), tmp_path / "read")
    train(read_recipe(file, frozen), tmp_path / "computed")
    read, computed = weights(tmp_path / "read"), weights(tmp_path / "computed")
    start = load_file(no_dropout / "model.safetensors")
    for name in read:
        if not name.endswith("key.bias"):
            torch.testing.assert_close(read[name], computed[name], atol=2e-3, rtol=1e-2, msg=name)
        if "embeddings" in name or "layer.0." in name:
            assert torch.equal(read[name], start[name.rsplit(":", 1)[-1]])
        elif "layer.1." in name and name.endswith("weight"):
            assert not torch.equal(read[name], start[name.rsplit(":", 1)[-1]])
    assert not list((tmp_path / "read").glob("states-*"))
