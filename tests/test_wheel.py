"""The wheel: what an installer gets, built as a release is."""

import configparser
import subprocess
import sys
import tomllib
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

from trilens import __version__
from trilens.store.config import DEFAULT_MODEL

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "trilens"
LARGEST_MB = 32
HEAVY = {"scipy", "faiss-cpu", "ir-measures", "torch", "matplotlib", "fastapi", "fsspec"}

pytest.importorskip("hatchling")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture
def metadata(wheel: Path) -> Message:
    with ZipFile(wheel) as archive:
        return HeaderParser().parsestr(archive.read(f"trilens-{__version__}.dist-info/METADATA").decode())


def tracked(folder: Path) -> set[str]:
    """The files of the package in the repository, by their paths in the wheel."""
    return {
        path.relative_to(ROOT / "src").as_posix()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    assert wheel.name == f"trilens-{__version__}-py3-none-any.whl"  # one for all platforms
    assert wheel.stat().st_size < LARGEST_MB * 1e6
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
    packaged = {name for name in names if not name.startswith(f"trilens-{__version__}.dist-info/")}
    assert packaged == tracked(SOURCES)
    assert {f"trilens/models/{DEFAULT_MODEL}/trilens.json", "trilens/http/web/index.html", "trilens/py.typed"} <= packaged


def test_its_command_is_the_one_of_the_repository(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        entry_points = configparser.ConfigParser()
        entry_points.read_string(archive.read(f"trilens-{__version__}.dist-info/entry_points.txt").decode())
    assert dict(entry_points["console_scripts"]) == {"trilens": "trilens.cli.main:main"}


def test_the_default_installation_is_small(metadata: Message) -> None:
    """Heavy packages are extras, and every extra of the project is in the metadata."""
    required = [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]
    default = {wanted.name for wanted in required if wanted.marker is None or wanted.marker.evaluate({"extra": ""})}
    assert len(default) > 5 and not HEAVY & default
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(metadata.get_all("Provides-Extra", [])) == set(extras)
    assert metadata["Requires-Python"] == ">=3.11"
