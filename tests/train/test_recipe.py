"""Recipes are fully validated before a run."""

from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")

from benchmarks.recipes import VARIANTS
from trilens.errors import BadInput
from trilens.train.recipe import as_yaml, read_recipe

RECIPES = Path(__file__).parents[2] / "recipes"


def written(folder: Path, **changes: Any) -> Path:
    content = {
        "name": "small",
        "model": {"backbone": "some/model", "heads": ["dense"]},
        "data": {"sources": [{"format": "dpr", "path": "train.jsonl"}]},
        "objectives": [{"kind": "info_nce"}],
        "run": {"steps": 10},
    } | changes
    file = folder / "recipe.yaml"
    file.write_text(yaml.safe_dump(content))
    return file


@pytest.mark.parametrize("file", sorted(RECIPES.glob("*.yaml")), ids=lambda file: file.stem)
def test_project_recipes_are_valid(file: Path) -> None:
    assert read_recipe(file).name == file.stem


@pytest.mark.parametrize("variant", VARIANTS)
def test_benchmark_variants_are_valid(variant: str) -> None:
    name, changes = VARIANTS[variant]
    recipe = read_recipe(RECIPES / f"{name}.yaml", changes)
    assert (recipe == read_recipe(RECIPES / f"{name}.yaml")) == (variant == name)


def test_yaml_round_trip(tmp_path: Path) -> None:
    recipe = read_recipe(written(tmp_path))
    again = tmp_path / "again.yaml"
    again.write_text(as_yaml(recipe))
    assert read_recipe(again) == recipe


def test_retromae_excludes_cached_states(tmp_path: Path) -> None:
    model = {"backbone": "b", "heads": ["dense"], "freeze_embeddings": True, "freeze_layers": 1, "cache_states": True}
    with pytest.raises(BadInput, match="retromae masks different words in every epoch"):
        read_recipe(written(tmp_path, model=model, objectives=[], retromae={}))


def test_checkpoints_exclude_fitting_and_layers(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="fit_to would overwrite the heads of a checkpoint"):
        read_recipe(written(tmp_path, model={"checkpoint": "b", "heads": ["multi"], "fit_to": 10}))
    with pytest.raises(BadInput, match="layers would remove trained layers of a checkpoint"):
        read_recipe(written(tmp_path, model={"checkpoint": "b", "heads": ["multi"], "layers": 1}))


def test_learning_rates_per_head(tmp_path: Path) -> None:
    recipe = read_recipe(written(tmp_path), ["run.head_learning_rate={multi: 1.0e-3, sparse: 2.0e-4}"])
    assert recipe.run.head_learning_rate == {"multi": 1e-3, "sparse": 2e-4}
    with pytest.raises(BadInput, match="head_learning_rate"):
        read_recipe(written(tmp_path), ["run.head_learning_rate={multi: 0}"])


def test_one_source_of_negatives_or_several(tmp_path: Path) -> None:
    single = read_recipe(written(tmp_path), ["negatives.count=3"]).negatives
    assert [(negatives.source, negatives.count) for negatives in single] == [("given", 3)]
    several = read_recipe(written(tmp_path, negatives=[{"source": "mined", "count": 2}, {"source": "random"}])).negatives
    assert [(negatives.source, negatives.count) for negatives in several] == [("mined", 2), ("random", 1)]


def test_overrides(tmp_path: Path) -> None:
    changes = ["run.steps=3", "objectives.0.temperature=0.1", "batch.size=8", "data.sources.0.path=other.jsonl"]
    recipe = read_recipe(written(tmp_path), changes)
    assert (recipe.run.steps, recipe.batch.size) == (3, 8)
    assert recipe.objectives[0].temperature == 0.1
    assert str(recipe.data.sources[0].path) == "other.jsonl"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("run.stepz=3", "stepz"),
        ("run.steps=0", "steps"),
        ("run.steps", "expected key=value"),
        ("objectives.4.temperature=1", "'4' is not an index of a list of 1"),
        ("name.inner=3", "which has no keys"),
        ("objectives.0.kind=nonsense", "nonsense"),
        ("objectives.0.head=sparse", "sparse"),
        ("run.epochs=2", "expected either steps or epochs"),
        ("run.steps=null", "expected either steps or epochs"),
        ("dev.every=30", "multiple of dev.every"),
        ("dev.patience=3", "expected every as well"),
        ("dev.measure=beauty", "measure is 'beauty'; expected one such as"),
        ("negatives=[]", "negatives"),
        ("negatives=[{source: mined, every: 3}]", "'negatives.0.mined.every' is not known"),
        ("negatives=[{source: luck}]", "negatives.0.source is 'luck'; expected one of 'given', 'mined'"),
        ("negatives=[{count: 2}]", "negatives.0.source is missing"),
        ("dev.retrieved=5", "expected multi among model.heads"),
        ("dev.head=retrieved", "expected dev.retrieved, the number of tokens"),
        ("model.cache_states=true", "cache_states caches the output of frozen layers; give freeze_embeddings"),
    ],
)
def test_invalid_overrides_are_reported_in_one_line(tmp_path: Path, change: str, message: str) -> None:
    with pytest.raises(BadInput, match=message) as error:
        read_recipe(written(tmp_path), [change])
    assert "\n" not in str(error.value)


def test_invalid_files(tmp_path: Path) -> None:
    file = tmp_path / "recipe.yaml"
    for content, message in ((": :", "cannot be read as a recipe"), ("- a", "holds list")):
        file.write_text(content)
        with pytest.raises(BadInput, match=message):
            read_recipe(file)
    with pytest.raises(BadInput, match="cannot be read"):
        read_recipe(tmp_path / "missing.yaml")
