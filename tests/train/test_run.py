"""Whole runs with a tiny model: every kind of training, kills, several processes, and what can go wrong."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")

from safetensors.torch import load_file

from tests.train import tiny
from trilens.errors import BadInput, TrainingFailed
from trilens.train.build import build_model
from trilens.train.fitting import fit_heads, fit_matches
from trilens.train.model import stacks_of
from trilens.train.recipe import read_recipe
from trilens.train.run import train
from trilens.train.states import StateCache
from trilens.train.trainer import read_log

QUESTIONS, STEPS = 60, 4
MULTI = {"dim": 16, "normalised": True, "skip_punctuation": True, "skip_special": False}

KINDS: dict[str, dict[str, Any]] = {
    "dense": {"heads": ["dense"], "objectives": [{"kind": "info_nce", "symmetric": True}]},
    "vdr": {"heads": ["sparse"], "objectives": [{"kind": "vdr", "top": 5, "semi_parametric": True, "mask_weight": 0.1}]},
    "colbert": {"heads": ["multi"], "objectives": [{"kind": "late"}]},
    "xtr": {
        "heads": ["multi"],
        "objectives": [{"kind": "late", "top": 8, "temperature": 0.1}],
        "dev": {"hold_out": 8, "passages": 40, "every": 2, "head": "retrieved", "retrieved": 3},
    },
    "m3": {"heads": ["dense", "lexical", "multi"], "objectives": [{"kind": "m3", "distil_after": 2}]},
    "ensemble": {
        "heads": ["dense", "lexical", "multi", "sparse"],
        "objectives": [
            {"kind": "info_nce"},
            {"kind": "ensemble", "teachers": {"dense": 1.0, "multi": 1.0}, "students": ["sparse", "lexical"], "after": 2},
        ],
        "multi": {"weighted": True},
        "sparse": {"transform": True},
    },
    "weighted": {
        "heads": ["multi", "sparse"],
        "objectives": [{"kind": "late"}, {"kind": "vdr"}],
        "multi": {"weighted": True},
        "sparse": {"transform": True},
    },
    "several": {"heads": ["dense", "sparse"], "objectives": [{"kind": "info_nce"}, {"kind": "vdr", "weight": 0.5}]},
    "bag": {"heads": ["sparse"], "objectives": [{"kind": "vdr"}], "negatives": {"source": "bag", "count": 2, "depth": 5}},
    "refresh": {
        "heads": ["dense"],
        "objectives": [{"kind": "info_nce"}],
        "negatives": {"source": "refresh", "count": 2, "depth": 6, "every": 2},
    },
    "fitted": {
        "heads": ["dense", "multi", "sparse", "lexical"],
        "objectives": [{"kind": "late"}, {"kind": "vdr", "temperature": 2.0}, {"kind": "info_nce", "head": "lexical"}],
        "multi": {"weighted": True},
        "sparse": {"transform": True, "biased": True},
        "model": {"freeze": True, "fit_to": 20},
        "negatives": {"source": "refresh", "count": 2, "depth": 6, "every": 2},
    },
    "few": {"heads": ["dense"], "objectives": [{"kind": "info_nce"}], "data": {"limit": 12}},
    "shallow": {
        "heads": ["multi"],
        "objectives": [{"kind": "late", "top": 8, "imputed": True, "temperature": 0.1}],
        "model": {"layers": 1},
    },
    "separate": {"heads": ["dense"], "towers": "separate", "objectives": [{"kind": "info_nce"}]},
    "retromae": {"heads": ["dense"], "objectives": [], "retromae": {}},
}


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory, backbone: Path) -> Path:
    """The same without dropout, so that runs which draw it differently can be compared."""
    folder = tmp_path_factory.mktemp("calm")
    for file in backbone.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(
        json.dumps(settings | {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0})
    )
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Questions of two words; the passage has both of them, the negatives one."""
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
                    {"passage_id": f"n{number}-{at}", "title": "", "text": " ".join([first, *others[at : at + 4]])}
                    for at in range(3)
                ],
            }
            lines.write(json.dumps(line) + "\n")
    return file


def recipe_file(folder: Path, backbone: Path, data: Path, kind: str = "dense", **run: Any) -> Path:
    settings = dict(KINDS[kind])
    heads, towers = settings.pop("heads"), settings.pop("towers", "shared")
    multi, sparse, model = (settings.pop(name, {}) for name in ("multi", "sparse", "model"))
    lengths = {"max_doc_tokens": 16, "max_query_tokens": 8}
    content = {
        "name": "tiny",
        "model": {"backbone": str(backbone), "heads": heads, "towers": towers, **lengths, **model},
        "dev": {"hold_out": 8, "passages": 40, "every": 2},
        "batch": {"size": 4},
        "run": {"steps": STEPS, "save_every": 2, "log_every": 1, "learning_rate": 1e-3, "head_learning_rate": 1e-3} | run,
        **settings,
    }
    content["data"] = {"sources": [{"format": "dpr", "path": str(data)}]} | settings.get("data", {})
    if "multi" in heads:
        content["model"]["multi"] = MULTI | multi
    if "sparse" in heads:
        content["model"]["sparse"] = {
            "dim": len(tiny.BERT_VOCABULARY) - tiny.BERT_SHIFT,
            "shift": tiny.BERT_SHIFT,
            "normalised": False,
            **sparse,
        }
    if "lexical" in heads:
        content["model"]["lexical"] = {"dim": len(tiny.BERT_VOCABULARY)}
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "recipe.yaml"
    file.write_text(yaml.safe_dump(content))
    return file


def weights(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for file in sorted((run / "model").rglob("*.safetensors")):
        found |= {f"{file.relative_to(run)}:{name}": tensor for name, tensor in load_file(file).items()}
    assert found
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_training_changes_the_model_and_says_how_good_it_is(
    kind: str, tmp_path: Path, backbone: Path, data: Path
) -> None:
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


@pytest.mark.parametrize("kind", ["m3", "refresh", "bag"])
def test_a_killed_run_ends_with_the_weights_of_one_that_was_not(kind: str, tmp_path: Path, backbone: Path, data: Path) -> None:
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


@pytest.mark.parametrize(("kind", "changes"), [("m3", []), ("ensemble", []), ("weighted", ["--set", "batch.sub_batch=2"])])
def test_two_processes_are_one(tmp_path: Path, calm: Path, data: Path, kind: str, changes: list[str]) -> None:
    file = recipe_file(tmp_path, calm, data, kind)
    train(read_recipe(file), tmp_path / "one")
    process = command(file, tmp_path / "two", ["--set", "batch.size=2", *changes], processes=2)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert_alike(weights(tmp_path / "one"), weights(tmp_path / "two"))


def assert_alike(one: dict[str, Any], other: dict[str, Any]) -> None:
    """But for biases of keys: they change no attention, so their gradient is rounding, which the optimiser blows up."""
    assert one.keys() == other.keys()
    for name in one:
        if not name.endswith("key.bias"):
            torch.testing.assert_close(one[name], other[name], atol=2e-4, rtol=1e-3, msg=name)


def command(file: Path, run: Path, more: list[str] | None = None, processes: int = 1) -> "subprocess.Popen[str]":
    start = [sys.executable, "-m"]
    if processes > 1:
        start += ["torch.distributed.run", "--standalone", "--nproc-per-node", str(processes), "-m"]
    arguments = [*start, "trilens", "train", str(file), "--to", str(run), *(more or [])]
    # Sums of floats depend on how many threads share them, so what is compared must have as many.
    environment = {**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads() if processes == 1 else 1)}
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)


def wait_for(file: Path, process: "subprocess.Popen[str]") -> None:
    end = time.monotonic() + 240
    while not file.exists():
        assert process.poll() is None, process.stdout.read() if process.stdout else ""
        assert time.monotonic() < end, "no checkpoint came"
        time.sleep(0.01)


def test_a_finished_run_is_not_trained_again(tmp_path: Path, backbone: Path, data: Path) -> None:
    file = recipe_file(tmp_path, backbone, data)
    first = train(read_recipe(file), tmp_path / "run")
    before = weights(tmp_path / "run")
    again = train(read_recipe(file), tmp_path / "run")
    assert again.after == first.after
    for name, tensor in weights(tmp_path / "run").items():
        assert torch.equal(tensor, before[name])


def test_a_folder_of_another_recipe_is_refused(tmp_path: Path, backbone: Path, data: Path) -> None:
    file = recipe_file(tmp_path, backbone, data)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "recipe.yaml").write_text("name: other")
    with pytest.raises(BadInput, match="another recipe"):
        train(read_recipe(file), tmp_path / "run")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("precious")
    with pytest.raises(BadInput, match="not empty"):
        train(read_recipe(file), tmp_path / "full")


def test_a_damaged_checkpoint_is_refused_by_name(tmp_path: Path, backbone: Path, data: Path) -> None:
    file = recipe_file(tmp_path, backbone, data)
    train(read_recipe(file), tmp_path / "run")
    damaged = tmp_path / "run" / f"checkpoint-{STEPS}" / "optimizer.pt"
    damaged.write_bytes(damaged.read_bytes()[:-10])
    with pytest.raises(BadInput, match=r"optimizer.pt is damaged"):
        train(read_recipe(file), tmp_path / "run")


def test_a_loss_that_is_no_number_stops_the_run_and_nothing_is_saved(tmp_path: Path, backbone: Path, data: Path) -> None:
    file = recipe_file(tmp_path, backbone, data, learning_rate=1e30, head_learning_rate=1e30, clip=1e30)
    with pytest.raises(TrainingFailed, match=r"expected a finite number|not finite"):
        train(read_recipe(file), tmp_path / "run")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("data.sources.0.path=nothing.jsonl", "nothing.jsonl"),
        ("model.backbone=/nowhere", "/nowhere is no folder"),
        ("model.max_doc_tokens=4000", "4000"),
        ("dev.measure=beauty", "beauty"),
        ("dev.hold_out=1000", "1000"),
        ("run.precision=float16", "no GPU"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(change: str, message: str, tmp_path: Path, backbone: Path, data: Path) -> None:
    from trilens.errors import TrilensError

    with pytest.raises(TrilensError, match=message) as error:
        train(read_recipe(recipe_file(tmp_path, backbone, data), [change]), tmp_path / "run")
    assert "\n" not in str(error.value)


def test_small_batches_train_the_same_model(tmp_path: Path, calm: Path, data: Path) -> None:
    found = []
    for name, changes in (("whole", list[str]()), ("cached", ["batch.sub_batch=3"])):
        train(read_recipe(recipe_file(tmp_path, calm, data, "m3"), changes), tmp_path / name)
        found.append(weights(tmp_path / name))
    assert_alike(*found)


def test_a_trained_model_gets_further_heads(tmp_path: Path, calm: Path, data: Path) -> None:
    train(read_recipe(recipe_file(tmp_path, calm, data, "dense")), tmp_path / "first")
    changes = ["model.backbone=null", f"model.checkpoint={tmp_path / 'first' / 'model'}", "model.freeze=true"]
    train(read_recipe(recipe_file(tmp_path, calm, data, "colbert"), changes), tmp_path / "second")
    first, second = weights(tmp_path / "first"), weights(tmp_path / "second")
    assert second.keys() - first.keys() == {"model/1_Heads/model.safetensors:multi.linear.weight"}
    for name, tensor in first.items():
        assert torch.equal(second[name], tensor)


def test_heads_on_a_frozen_backbone(tmp_path: Path, calm: Path, data: Path) -> None:
    """States that are read give what states that are computed give, but for the bits that they are kept in."""
    file = recipe_file(tmp_path, calm, data, "colbert")
    train(read_recipe(file, ["model.freeze=true"]), tmp_path / "read")
    train(read_recipe(file, ["model.freeze_embeddings=true", f"model.freeze_layers={tiny.LAYERS}"]), tmp_path / "computed")
    read, computed = weights(tmp_path / "read"), weights(tmp_path / "computed")
    for name in read:
        torch.testing.assert_close(read[name], computed[name], atol=2e-3, rtol=1e-2, msg=name)
        if "1_Heads" not in name:
            assert torch.equal(read[name], computed[name])
    assert not list((tmp_path / "read").glob("states-*"))


def test_heads_begin_fitted_to_the_texts(calm: Path) -> None:
    """A text's own words have the highest weights, rare words count more than frequent ones, and all towers begin alike."""
    texts = [f"the {first} {second}" for first in tiny.WORDS[:8] for second in tiny.WORDS[8:16]]
    changes = {"multi": MULTI, "sparse": {"transform": True, "biased": True}, "max_doc_tokens": 16}
    model = build_model(calm, ["multi", "sparse", "lexical"], "separate", changes)
    fit_heads(model, texts)
    one, other = (stack.heads.state_dict() for stack in stacks_of(model).values())
    assert all(torch.equal(one[name], other[name]) for name in one)
    weight = one["multi.linear.weight"].clone()
    torch.testing.assert_close(weight @ weight.T, torch.eye(len(weight)), atol=1e-5, rtol=0)
    with torch.no_grad():
        found = model.eval()(model.preprocess(texts, task="document"))
    the, first = (tiny.BERT_VOCABULARY.index(word) for word in ("the", tiny.WORDS[0]))
    own, above = found["bags"].bool(), found["sparse"] > found["sparse"].mean(1, keepdim=True)
    own[:, the - tiny.BERT_SHIFT] = False  # it stands in all texts, so it says nothing of any
    assert above[own].float().mean() > 0.8 and above[~own].float().mean() < 0.3
    assert found["lexical"][0, first] > found["lexical"][0, the]


def test_token_vectors_are_fitted_to_the_tokens_that_match(calm: Path) -> None:
    """The towers stay alike, the projection keeps its size, and rare tokens of queries count more than frequent ones."""
    texts = [f"the {first} {second}" for first in tiny.WORDS[:8] for second in tiny.WORDS[8:16]]
    model = build_model(calm, ["multi"], "separate", {"multi": MULTI | {"weighted": True}, "max_doc_tokens": 16})
    fit_heads(model, texts)
    before = stacks_of(model)["query"].heads.state_dict()["multi.linear.weight"].clone()
    fit_matches(model, [(text, text) for text in texts], texts)
    one, other = (stack.heads.state_dict()["multi.linear.weight"] for stack in stacks_of(model).values())
    assert torch.equal(one, other) and not torch.equal(one, before)
    assert one.square().sum().item() == pytest.approx(len(before))
    with torch.no_grad():
        found = model.eval()(model.preprocess(texts[:1], task="query"))["multi"][0].norm(dim=-1)
    assert found[2] > found[1] > 0  # after the token that begins all texts comes "the"


def test_states_are_found_again_but_none_of_other_texts_or_models(tmp_path: Path, calm: Path) -> None:
    def kept(texts: list[str], model: Any, layers: int | None = None) -> list[int]:
        """How many texts were computed, with the states of all of them at the end."""
        computed: list[int] = []
        cache = StateCache(model, tmp_path, layers)
        cache.add("document", texts, computed.append)
        fresh = StateCache(model, tmp_path / "fresh", layers)
        fresh.add("document", texts)
        for name, states in cache.known("document", texts).items():
            assert torch.equal(torch.as_tensor(states), torch.as_tensor(fresh.known("document", texts)[name]))
        return computed

    model = build_model(calm, ["dense"])
    assert sum(kept(tiny.TEXTS, model)) == len(tiny.TEXTS)
    assert not kept(tiny.TEXTS, model)
    assert kept(tiny.TEXTS[:2], model) and kept(tiny.TEXTS[:2], model, layers=1)
    assert kept(tiny.TEXTS[:2], build_model(tiny.bert(tmp_path / "other", seed=3), ["dense"]), layers=1)
    (tmp_path / "document.whole").unlink()  # as a run leaves it that was stopped while it computed them
    assert kept(tiny.TEXTS[:2], model)


@pytest.mark.parametrize("towers", ["shared", "separate"])
def test_layers_above_frozen_ones(tmp_path: Path, calm: Path, data: Path, towers: str) -> None:
    """States that are read after the first layer train what states that are computed train, but for their bits."""
    file = recipe_file(tmp_path, calm, data, "m3", head_learning_rate=None)
    frozen = ["model.freeze_embeddings=true", "model.freeze_layers=1", f"model.towers={towers}", "batch.sub_batch=3"]
    train(read_recipe(file, [*frozen, "model.cache_states=true"]), tmp_path / "read")
    train(read_recipe(file, frozen), tmp_path / "computed")
    read, computed = weights(tmp_path / "read"), weights(tmp_path / "computed")
    start = load_file(calm / "model.safetensors")
    for name in read:
        if not name.endswith("key.bias"):
            torch.testing.assert_close(read[name], computed[name], atol=2e-3, rtol=1e-2, msg=name)
        if "embeddings" in name or "layer.0." in name:
            assert torch.equal(read[name], start[name.rsplit(":", 1)[-1]])
        elif "layer.1." in name and name.endswith("weight"):
            assert not torch.equal(read[name], start[name.rsplit(":", 1)[-1]])
    assert not list((tmp_path / "read").glob("states-*"))
