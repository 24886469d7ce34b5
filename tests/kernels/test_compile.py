"""Where numba finds no folder for its cache, kernels are cached in a private temporary folder."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import trilens
from trilens.kernels.compile import private_folder

SOURCE = Path(trilens.__file__).parent
PROGRAM = """
import numba, numpy
from trilens.kernels.topk import sort_heaps
scores = numpy.array([[1, 3]], numpy.float32)
sort_heaps(scores, numpy.array([[0, 1]]))
print(numba.config.CACHE_DIR or "none")
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    private_folder.cache_clear()
    yield tmp_path / f"trilens-numba-{os.getuid()}"
    private_folder.cache_clear()


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the kernels that numba cannot write a cache beside; permissions would not stop root."""
    folder = tmp_path_factory.mktemp("package") / "trilens"
    folder.mkdir()
    (folder / "__init__.py").touch()
    shutil.copytree(SOURCE / "kernels", folder / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "kernels" / "__pycache__").write_text("not a folder")
    return folder.parent


def run(package: Path, temporary: Path) -> str:
    hidden = {"NUMBA_CACHE_DIR", "XDG_CACHE_HOME"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment |= {"HOME": "/dev/null/home", "PYTHONPATH": str(package), "TMPDIR": str(temporary)}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_the_folder_belongs_to_the_user_alone(temporary: Path) -> None:
    assert private_folder() == temporary
    assert temporary.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_can_change_is_not_used(temporary: Path) -> None:
    temporary.mkdir()
    temporary.chmod(0o770)
    assert private_folder() is None


def test_a_link_is_not_followed(temporary: Path) -> None:
    (temporary.parent / "other").mkdir(mode=0o700)
    temporary.symlink_to(temporary.parent / "other")
    assert private_folder() is None


def test_a_folder_that_others_can_replace_is_not_used(temporary: Path) -> None:
    temporary.parent.chmod(0o777)
    assert private_folder() is None
    temporary.parent.chmod(0o1777)
    private_folder.cache_clear()
    assert private_folder() == temporary


def test_a_user_without_a_writable_home_or_package_can_run_kernels(package: Path, tmp_path: Path) -> None:
    folder = tmp_path / f"trilens-numba-{os.getuid()}"
    assert run(package, tmp_path) == str(folder)
    assert list(folder.rglob("topk.sort_heaps-*.nbc"))


def test_without_a_safe_folder_nothing_is_cached(package: Path, tmp_path: Path) -> None:
    folder = tmp_path / f"trilens-numba-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    assert run(package, tmp_path) == "none"
    assert list(folder.iterdir()) == []
