"""The models command: bundled models, those in the cache, and what is wrong with one of them."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from trilens.encode.folder import CONFIG_FILE
from trilens.encode.models import bundled_models, cached_models, model_cache, resolve_model
from trilens.errors import BadModel
from trilens.store.config import DEFAULT_MODEL

from ..encode.counting_cross import counting_cross

BUNDLED = bundled_models()[DEFAULT_MODEL]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    model_cache().mkdir(parents=True)
    return model_cache()


def models(*options: str) -> tuple[Any, str]:
    command = [sys.executable, "-m", "trilens", "models", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout, done.stderr


def test_models_of_the_cache_have_names(cache: Path) -> None:
    shutil.copytree(BUNDLED, cache / "mine")
    shutil.copytree(BUNDLED, cache / DEFAULT_MODEL)
    assert resolve_model("mine") == cache / "mine"
    assert resolve_model(DEFAULT_MODEL) == BUNDLED
    assert list(cached_models()) == sorted([DEFAULT_MODEL, "mine"])
    output, _ = models("--json")
    told = {(model["name"], model["where"]): model for model in json.loads(output)["models"]}
    assert set(told) == {(DEFAULT_MODEL, "bundled"), (DEFAULT_MODEL, "hidden by the bundled one"), ("mine", "cached")}
    assert [name for name, model in told.items() if model["default"]] == [(DEFAULT_MODEL, "bundled")]
    assert told["mine", "cached"]["heads"]["dense"] == 384
    assert told["mine", "cached"]["bytes"] == sum(file.stat().st_size for file in BUNDLED.iterdir())


def test_a_table_for_people_and_the_folder_for_scripts(cache: Path) -> None:
    output, _ = models()
    assert "bundled, default" in output and "lexical" in output
    assert models("--path") == (f"{cache}\n", "")


def test_cross_encoders_are_listed_as_such(cache: Path) -> None:
    counting_cross(cache / "judge", ["red fox"])
    told = next(model for model in json.loads(models("--json")[0])["models"] if model["name"] == "judge")
    assert (told["kind"], told["heads"], told["longest_text"]) == ("cross-encoder", {}, 64)
    assert "cross-encoder" in models()[0]


def test_a_damaged_model_is_told_and_the_others_are_listed(cache: Path) -> None:
    (cache / "broken").mkdir()
    (cache / "broken" / CONFIG_FILE).write_text("{}")
    output, told = models()
    assert "bundled" in output and "broken" not in output
    assert told.startswith("left out: ") and "broken" in told and told.count("\n") == 1


def test_unknown_names_are_told_what_there_is(cache: Path) -> None:
    shutil.copytree(BUNDLED, cache / "mine")
    with pytest.raises(BadModel, match=r"no model 'nine'.*`trilens models`.*mine"):
        resolve_model("nine")
