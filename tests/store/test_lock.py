"""The write lock where the file system has none, in a process whose `flock` fails."""

import subprocess
import sys
from pathlib import Path

import pytest

from trilens import Collection, Document

SCRIPT = """
import errno, fcntl, os, sys
def flock(descriptor, operation):
    raise OSError(getattr(errno, sys.argv[2]), os.strerror(getattr(errno, sys.argv[2])))
fcntl.flock = flock
from trilens import Collection, Document
from trilens.errors import TrilensError
try:
    if sys.argv[3] == "create":
        Collection.create(sys.argv[1], lenses=["bm25"])
    with Collection.open(sys.argv[1]) as collection:
        print(len(collection))
        collection.add([Document("b", "text")])
except TrilensError as error:
    print(type(error).__name__, error)
"""


def attempt(path: Path, error: str, act: str) -> list[str]:
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT, str(path), error, act], capture_output=True, text=True, check=False
    )
    assert run.stderr == ""
    return run.stdout.splitlines()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Collection.create(tmp_path / "c", lenses=["bm25"]) as collection:
        collection.add([Document("a", "text")])
    return tmp_path / "c"


def test_a_file_system_without_locks_is_named_and_can_be_read(path: Path, tmp_path: Path) -> None:
    for error, cause in (("ENOSYS", "Function not implemented"), ("ENOLCK", "No locks available")):
        says = f"CollectionError the file system of {{}} does not support locks ({cause}); use a folder on another one"
        assert attempt(path, error, "write") == ["1", says.format(path)]
        assert attempt(tmp_path / "new", error, "create") == [says.format(tmp_path / "new")]
    with Collection.open(path) as collection:
        collection.add([Document("b", "text")])  # nothing was left behind


def test_other_causes_stay_what_they_are(path: Path) -> None:
    assert "is being written by another process" in attempt(path, "EAGAIN", "write")[1]
    assert attempt(path, "EIO", "write")[1].startswith(f"CollectionError {path} cannot be read or written (Input/output error)")
