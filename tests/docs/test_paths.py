"""Paths, packages and links that the documentation names exist."""

import re
import tomllib
from pathlib import Path

import pytest

from .pages import FENCE, PAGES, ROOT

SOURCES = ROOT / "src" / "trilens"
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
# A path in backticks: it has a slash, or ends like a source file.
PATH = re.compile(r"`((?:\./)?[\w.-]+(?:/[\w.*-]+)*/?)`")
SUFFIXES = (".py", ".js", ".md", ".yaml", ".toml")


def named_paths(text: str) -> list[str]:
    """The paths in backticks outside of code blocks."""
    prose = FENCE.sub("", text)
    return [path for path in PATH.findall(prose) if "/" in path or path.endswith(SUFFIXES)]


def exists(path: str) -> bool:
    """Whether a path is one of the repository, or of the package."""
    return any(next(iter(base.glob(path.removeprefix("./").rstrip("/"))), None) is not None for base in (ROOT, SOURCES))


def test_every_path_of_the_architecture_exists() -> None:
    paths = named_paths(ARCHITECTURE.read_text(encoding="utf-8"))
    assert len(paths) > 60
    assert [path for path in paths if not exists(path) and path not in ("cli/NAME.py", "sparse.onnx")] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_repository_paths_of_a_page_exist(page: Path) -> None:
    known = ("src/", "docs/", "tests/", "benchmarks/", "recipes/", "scripts/", "./scripts/")
    paths = [path for path in named_paths(page.read_text(encoding="utf-8")) if path.startswith(known)]
    assert [path for path in paths if not exists(path)] == []


def test_links_of_readme_and_contributing_lead_to_files() -> None:
    for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"):
        links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", (ROOT / name).read_text(encoding="utf-8"))
        assert [link for link in links if not link.startswith("http") and not (ROOT / link).exists()] == []


def test_the_table_of_packages_is_the_import_contract() -> None:
    text = ARCHITECTURE.read_text(encoding="utf-8")
    table = text.partition("## Packages")[2].partition("\n## ")[0]
    packages = [name.removesuffix("/").removesuffix(".py") for name in re.findall(r"^\| `([\w./]+)` \|", table, re.MULTILINE)]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert packages == contracts[0]["layers"]


def test_readme_is_a_front_door_with_a_small_picture() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150
    assert (ROOT / "docs" / "images" / "page.png").stat().st_size < 300_000
    assert sum(picture.stat().st_size for picture in (ROOT / "docs" / "images").glob("*.png")) < 1_500_000
