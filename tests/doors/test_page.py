"""The Python blocks of docs/integrations.md, and those of docs/send.md in one namespace."""

import shutil
from pathlib import Path
from typing import Any

import pytest

for framework in (
    "langchain_core",
    "llama_index.core",
    "haystack",
    "pyterrier",
    "mteb",
    "qdrant_client",
    "pymilvus",
    "lancedb",
):
    pytest.importorskip(framework, reason="run by scripts/test-doors")

from tests.docs.pages import ROOT, Block, python

BLOCKS = python(ROOT / "docs" / "integrations.md")


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: str(block.line))
def test_block_runs(block: Block, written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(written, tmp_path / "my.trilens")
    monkeypatch.chdir(tmp_path)
    exec(compile("\n" * (block.line - 1) + block.code, str(block.page), "exec"), {})


def test_sending(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(written, tmp_path / "my.trilens")
    monkeypatch.chdir(tmp_path)
    page, namespace = ROOT / "docs" / "send.md", dict[str, Any]()
    for block in python(page):
        exec(compile("\n" * (block.line - 1) + block.code, str(page), "exec"), namespace)
    assert len(namespace["scores"]) == 4 and namespace["scores"] == sorted(namespace["scores"], reverse=True)


def test_every_framework_with_a_module_has_a_block() -> None:
    modules = {path.stem for path in (ROOT / "src" / "trilens" / "integrations").glob("*.py")}
    shown = {module for module in modules if any(f"trilens.integrations.{module} import" in block.code for block in BLOCKS)}
    assert shown == {"langchain", "llamaindex", "haystack", "pyterrier", "mteb"}
