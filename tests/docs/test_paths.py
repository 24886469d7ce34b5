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


@pytest.mark.parametrize("page", [*PAGES, ARCHITECTURE], ids=lambda page: page.name)
def test_links_and_pictures_of_a_page_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


def test_every_picture_is_shown_and_small() -> None:
    pictures = {picture.name: picture.stat().st_size for picture in (ROOT / "docs" / "images").glob("*.png")}
    shown = {name for page in PAGES for name in re.findall(r"images/([\w-]+\.png)\)", page.read_text(encoding="utf-8"))}
    assert set(pictures) == shown
    assert max(pictures.values()) < 150_000


def test_the_table_of_packages_is_the_import_contract() -> None:
    text = ARCHITECTURE.read_text(encoding="utf-8")
    table = text.partition("## Packages")[2].partition("\n## ")[0]
    packages = [name.removesuffix("/").removesuffix(".py") for name in re.findall(r"^\| `([\w./]+)` \|", table, re.MULTILINE)]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert packages == contracts[0]["layers"]


def test_readme_is_a_front_door() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150
