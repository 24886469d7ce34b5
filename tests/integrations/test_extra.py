"""Without its framework, a module of the integrations says which extra to install."""

import importlib
import sys
import tomllib
from pathlib import Path

import pytest

from trilens.datasets.layouts import open_dataset
from trilens.errors import BadInput

FRAMEWORKS = {
    "haystack": "haystack",
    "langchain": "langchain_core",
    "llamaindex": "llama_index",
    "mteb": "mteb",
    "pyterrier": "pandas",
}
EXTRAS = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["optional-dependencies"]


@pytest.mark.parametrize(("module", "framework"), FRAMEWORKS.items())
def test_a_missing_framework_is_one_line(module: str, framework: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("trilens.integrations.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, framework, None)  # as if it were not installed
    with pytest.raises(BadInput, match=rf"is not installed; install it with `pip install 'trilens\[{module}\]'`$"):
        importlib.import_module(f"trilens.integrations.{module}")
    assert module in EXTRAS


def test_a_dataset_of_ir_datasets_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(BadInput, match=r"irds/vaswani needs ir_datasets, .* `pip install 'trilens\[irds\]'`$"):
        open_dataset("irds/vaswani")
    assert "irds" in EXTRAS
