"""Whole runs with a tiny model: every kind of training, interruptions, several processes, and errors."""

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

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
    rows = [row for row in read_log(tmp_path / "run" / "log.jsonl") if "loss" in row]
    assert [row["step"] for row in rows] == list(range(1, STEPS + 1))
    trained = {"cross"} if recipe.cross else set[str]().union(*(objective.trained for objective in recipe.objectives))
    for row in rows:
        assert {name for name in row if name.endswith("_accuracy")} == {f"{head}_accuracy" for head in trained}
        assert all(0 <= row[f"{head}_accuracy"] <= 1 for head in trained)
    if recipe.model.towers == "shared":
        layers = json.loads((tmp_path / "run" / "model" / "config.json").read_text())["num_hidden_layers"]
        assert layers == (recipe.model.layers or tiny.LAYERS)


@pytest.mark.parametrize(
    ("kind", "changes"), [("m3", {}), ("bag", {}), ("mixed", {"precision": "bfloat16", "accumulate": 2}), ("cross", {})]
)
def test_resumed_run_equals_an_uninterrupted_one(
    kind: str, changes: dict[str, Any], tmp_path: Path, backbone: Path, data: Path
) -> None:
    file = recipe_file(tmp_path, backbone, data, kind, log_every=3, **changes)
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
    (tmp_path / "run" / "log.jsonl").write_text("")
    with pytest.raises(BadInput, match="another recipe"):
        train(read_recipe(file), tmp_path / "run")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("precious")
    with pytest.raises(BadInput, match="not empty"):
        train(read_recipe(file), tmp_path / "full")


def test_a_recipe_that_failed_at_once_can_be_corrected(tmp_path: Path, backbone: Path, data: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "recipe.yaml").write_text("name: other")
    recipe = read_recipe(recipe_file(tmp_path, backbone, data))
    train(recipe, tmp_path / "run")
    assert read_recipe(tmp_path / "run" / "recipe.yaml") == recipe


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


@pytest.mark.parametrize(("accumulate", "steps"), [(1, 6), (4, 2)])
def test_epochs(tmp_path: Path, backbone: Path, data: Path, accumulate: int, steps: int) -> None:
    """Twelve examples are three batches per epoch; with four batches per step, the last step reads two of a third epoch."""
    file = recipe_file(tmp_path, backbone, data, "few", steps=None, epochs=2, accumulate=accumulate)
    result = train(read_recipe(file, ["dev.every=4", "run.save_every=4"]), tmp_path / "run")
    assert result.steps == steps
    evaluated = [row["step"] for row in read_log(tmp_path / "run" / "log.jsonl") if "eval_dense:nDCG@10" in row]
    assert evaluated == [0, *range(4, steps, 4), steps]  # the last step, too


def test_accumulated_batches_count_as_their_mean(tmp_path: Path, no_dropout: Path, data: Path) -> None:
    """Every epoch is one batch of the same four examples, so three batches per step have the gradient of one."""
    runs = []
    for accumulate in (1, 3):
        changes = ["data.limit=4", "negatives.count=0", "run.clip=1000", f"run.accumulate={accumulate}"]
        train(read_recipe(recipe_file(tmp_path, no_dropout, data), changes), tmp_path / str(accumulate))
        runs.append(tmp_path / str(accumulate))
    logs = [[row for row in read_log(run / "log.jsonl") if "loss" in row] for run in runs]
    for name in ("loss", "grad_norm", "info_nce"):
        assert [row[name] for row in logs[0]] == pytest.approx([row[name] for row in logs[1]], rel=1e-3)
    assert_close(*map(weights, runs))


def test_bfloat16_is_close_to_float32(tmp_path: Path, no_dropout: Path, data: Path) -> None:
    losses = []
    for precision in ("float32", "bfloat16"):
        file = recipe_file(tmp_path, no_dropout, data, "m3", precision=precision)
        train(read_recipe(file), tmp_path / precision)
        losses.append([row["loss"] for row in read_log(tmp_path / precision / "log.jsonl") if "loss" in row])
    assert losses[0] != losses[1]
    assert losses[0] == pytest.approx(losses[1], rel=0.05)
    assert {tensor.dtype for tensor in weights(tmp_path / "bfloat16").values()} == {torch.float32}


def test_early_stopping_survives_an_interruption(tmp_path: Path, no_dropout: Path, data: Path) -> None:
    """The model stays as it is, so Hit@3 never improves: two evaluations later the run ends."""
    file = recipe_file(tmp_path, no_dropout, data, learning_rate=1e-12, save_every=1, steps=9)
    recipe = read_recipe(file, ["dev.every=1", "dev.measure=Hit@3", "dev.patience=2"])
    result = train(recipe, tmp_path / "run")
    assert result.steps < 9
    assert result.after["dense:Hit@3"] == result.before["dense:Hit@3"]
    shutil.rmtree(tmp_path / "run" / f"checkpoint-{result.steps}")
    assert train(recipe, tmp_path / "run").steps == result.steps
