"""The Python blocks of docs/integrations.md."""

import shutil
from pathlib import Path

import pytest

for framework in ("langchain_core", "llama_index.core", "haystack", "pyterrier", "mteb"):
    pytest.importorskip(framework, reason="run by scripts/test-doors")

from tests.docs.pages import ROOT, Block, python

BLOCKS = python(ROOT / "docs" / "integrations.md")


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: str(block.line))
def test_block_runs(block: Block, written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(written, tmp_path / "my.trilens")
    monkeypatch.chdir(tmp_path)
    exec(compile("\n" * (block.line - 1) + block.code, str(block.page), "exec"), {})


def test_every_framework_with_a_module_has_a_block() -> None:
    modules = {path.stem for path in (ROOT / "src" / "trilens" / "integrations").glob("*.py")}
    shown = {module for module in modules if any(f"trilens.integrations.{module} import" in block.code for block in BLOCKS)}
    assert shown == {"langchain", "llamaindex", "haystack", "pyterrier", "mteb"}
