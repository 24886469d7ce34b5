"""Whole runs with a tiny model: every kind of training, interruptions, several processes, and errors."""

import json
import os
import signal
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")


from tests.train import tiny
from tests.train.runs import KINDS, STEPS, assert_close, command, recipe_file, wait_for, weights
from trilens.errors import BadInput, TrainingFailed
from trilens.train.recipe import read_recipe
from trilens.train.run import train
from trilens.train.trainer import read_log


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_run(kind: str, tmp_path: Path, backbone: Path, data: Path) -> None:
    recipe = read_recipe(recipe_file(tmp_path, backbone, data, kind))
    result = train(recipe, tmp_path / "run")
    assert result.steps == STEPS
    assert result.before.keys() == result.after.keys()
    assert {name.split(":")[0] for name in result.after} >= set(recipe.model.heads)
    assert all(0 <= value <= 1 for value in result.after.values())
    for name in ("model/modules.json", "log.jsonl", "curves.png", "recipe.yaml", "README.md", "result.json"):
        assert (tmp_path / "run" / name).stat().st_size
    steps = [row["step"] for row in read_log(tmp_path / "run" / "log.jsonl") if "loss" in row]
    assert steps == list(range(1, STEPS + 1))
    if recipe.model.towers == "shared":
        layers = json.loads((tmp_path / "run" / "model" / "config.json").read_text())["num_hidden_layers"]
        assert layers == (recipe.model.layers or tiny.LAYERS)


@pytest.mark.parametrize("kind", ["m3", "refresh", "bag", "cross"])
def test_resumed_run_equals_an_uninterrupted_one(kind: str, tmp_path: Path, backbone: Path, data: Path) -> None:
    file = recipe_file(tmp_path, backbone, data, kind, log_every=3)
    calm, killed = tmp_path / "calm", tmp_path / "killed"
    train(read_recipe(file), calm)
    process = command(file, killed)
    wait_for(killed / "checkpoint-2" / "complete.json", process)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (killed / "result.json").exists()
    before = max(row["seconds"] for row in read_log(killed / "log.jsonl") if row["step"] <= 2)
    result = train(read_recipe(file), killed)
    assert result.steps == STEPS
    one, other = weights(calm), weights(killed)
    assert one.keys() == other.keys()
    for name in one:
        assert torch.equal(one[name], other[name]), name
    rows = [read_log(run / "log.jsonl") for run in (calm, killed)]
    losses = [[row["loss"] for row in log if "loss" in row] for log in rows]
    assert losses[0] == losses[1]
    assert result.seconds > before > 0


@pytest.mark.parametrize(
    ("kind", "changes"), [("m3", []), ("ensemble", []), ("cross", []), ("weighted", ["--set", "batch.sub_batch=2"])]
)
def test_two_processes_equal_one(tmp_path: Path, no_dropout: Path, data: Path, kind: str, changes: list[str]) -> None:
    file = recipe_file(tmp_path, no_dropout, data, kind)
    train(read_recipe(file), tmp_path / "one")
    process = command(file, tmp_path / "two", ["--set", "batch.size=2", *changes], processes=2)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert_close(weights(tmp_path / "one"), weights(tmp_path / "two"))


def test_finished_run_is_not_repeated(tmp_path: Path, backbone: Path, data: Path) -> None:
    file = recipe_file(tmp_path, backbone, data)
    first = train(read_recipe(file), tmp_path / "run")
    before = weights(tmp_path / "run")
    again = train(read_recipe(file), tmp_path / "run")
    assert again.after == first.after
    for name, tensor in weights(tmp_path / "run").items():
        assert torch.equal(tensor, before[name])


def test_folder_of_another_recipe(tmp_path: Path, backbone: Path, data: Path) -> None:
    file = recipe_file(tmp_path, backbone, data)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "recipe.yaml").write_text("name: other")
    with pytest.raises(BadInput, match="another recipe"):
        train(read_recipe(file), tmp_path / "run")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("precious")
    with pytest.raises(BadInput, match="not empty"):
        train(read_recipe(file), tmp_path / "full")


def test_damaged_checkpoint(tmp_path: Path, backbone: Path, data: Path) -> None:
    file = recipe_file(tmp_path, backbone, data)
    train(read_recipe(file), tmp_path / "run")
    damaged = tmp_path / "run" / f"checkpoint-{STEPS}" / "optimizer.pt"
    damaged.write_bytes(damaged.read_bytes()[:-10])
    with pytest.raises(BadInput, match=r"optimizer.pt is damaged"):
        train(read_recipe(file), tmp_path / "run")


def test_non_finite_loss_stops_the_run(tmp_path: Path, backbone: Path, data: Path) -> None:
    file = recipe_file(tmp_path, backbone, data, learning_rate=1e30, head_learning_rate=1e30, clip=1e30)
    with pytest.raises(TrainingFailed, match=r"expected a finite number|not finite"):
        train(read_recipe(file), tmp_path / "run")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("data.sources.0.path=nothing.jsonl", "nothing.jsonl"),
        ("model.backbone=/nowhere", "/nowhere is not a folder"),
        ("model.max_doc_tokens=4000", "4000"),
        ("dev.measure=beauty", "beauty"),
        ("dev.hold_out=1000", "1000"),
        ("run.precision=float16", "needs a GPU"),
    ],
)
def test_invalid_settings_are_reported_in_one_line(
    change: str, message: str, tmp_path: Path, backbone: Path, data: Path
) -> None:
    from trilens.errors import TrilensError

    with pytest.raises(TrilensError, match=message) as error:
        train(read_recipe(recipe_file(tmp_path, backbone, data), [change]), tmp_path / "run")
    assert "\n" not in str(error.value)


def test_sub_batches_train_the_same_model(tmp_path: Path, no_dropout: Path, data: Path) -> None:
    actual = []
    for name, changes in (("whole", list[str]()), ("cached", ["batch.sub_batch=3"])):
        train(read_recipe(recipe_file(tmp_path, no_dropout, data, "m3"), changes), tmp_path / name)
        actual.append(weights(tmp_path / name))
    assert_close(*actual)


def test_adding_heads_to_a_trained_model(tmp_path: Path, no_dropout: Path, data: Path) -> None:
    train(read_recipe(recipe_file(tmp_path, no_dropout, data, "dense")), tmp_path / "first")
    changes = ["model.backbone=null", f"model.checkpoint={tmp_path / 'first' / 'model'}", "model.freeze=true"]
    train(read_recipe(recipe_file(tmp_path, no_dropout, data, "colbert"), changes), tmp_path / "second")
    first, second = weights(tmp_path / "first"), weights(tmp_path / "second")
    assert second.keys() - first.keys() == {"model/1_Heads/model.safetensors:multi.linear.weight"}
    for name, tensor in first.items():
        assert torch.equal(second[name], tensor)
