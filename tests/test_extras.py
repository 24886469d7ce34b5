"""Without its packages, a module says which extra to install."""

import importlib
import re
import sys
import tomllib
from pathlib import Path

import pytest

from trilens.datasets.layouts import open_dataset
from trilens.errors import BadInput
from trilens.extras import needs_extra

from .cli.conftest import Trilens
from .cli.conftest import trilens as trilens

PACKAGES = {
    "integrations.haystack": "haystack",
    "integrations.langchain": "langchain_core",
    "integrations.llamaindex": "llama_index",
    "integrations.mcp": "mcp",
    "integrations.mteb": "mteb",
    "integrations.pyterrier": "pandas",
    "client": "httpx",
    "send.lancedb": "lancedb",
    "send.milvus": "pymilvus",
    "send.pgvector": "psycopg",
    "send.qdrant": "qdrant_client",
}
EXTRAS = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]["optional-dependencies"]


@pytest.mark.parametrize(("module", "package"), PACKAGES.items())
def test_a_missing_package_is_one_line(module: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(f"trilens.{module}") or name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    extra = module.rpartition(".")[2]
    with pytest.raises(BadInput, match=rf"^{package} is not installed; install it with `pip install 'trilens\[{extra}\]'`$"):
        importlib.import_module(f"trilens.{module}")
    assert extra in EXTRAS


def test_a_package_that_cannot_be_used_is_not_called_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it were another version, or one whose library cannot be loaded."""
    (tmp_path / "trilens_broken.py").write_text("import os\n")
    monkeypatch.syspath_prepend(tmp_path)
    said = "trilens_broken cannot be used (cannot import name 'Server' from 'trilens_broken'"
    with pytest.raises(BadInput, match=re.escape(said)), needs_extra("mcp"):
        exec("from trilens_broken import Server")


def test_a_dataset_of_ir_datasets_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(BadInput, match=r"^ir_datasets is not installed; .* `pip install 'trilens\[irds\]'`$"):
        open_dataset("irds/vaswani")
    assert "irds" in EXTRAS


@pytest.mark.parametrize(("command", "package"), [("serve", "fastapi"), ("mcp", "mcp")])
def test_commands_of_extras(command: str, package: str, monkeypatch: pytest.MonkeyPatch, trilens: Trilens) -> None:
    for name in [name for name in sys.modules if name.startswith(("trilens.http", "trilens.integrations"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    said = f"trilens: {package} is not installed; install it with `pip install 'trilens[{command}]'`\n"
    outcome = trilens(command, "c.trilens")
    assert (outcome.code, outcome.err) == (1, said)
