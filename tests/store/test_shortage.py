"""A process without descriptors or memory is told so; its collection is not called damaged."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from trilens.collection import Collection
from trilens.represent.arrays import save_arrays
from trilens.store import merge
from trilens.text.document import Document

from .tiny import LENSES, TinyEncoder

resource = pytest.importorskip("resource")
SEGMENTS = 16
OPENING = """
import resource, sys
from pathlib import Path
from tests.store.tiny import LENSES, TinyEncoder
from trilens.collection import Collection
from trilens.errors import OutOfResources
from trilens.represent.arrays import open_array
"""
SEARCHING = """
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
with Collection.open(sys.argv[1], encoder=TinyEncoder()) as collection:
    print(len(collection.snapshot.segments), [len(collection.search(["fox"], 100, lenses=[lens])[0]) for lens in LENSES])
"""
NO_DESCRIPTOR = """
with Collection.open(sys.argv[1], encoder=TinyEncoder()) as collection:
    len(collection)  # imports what is imported late
used = len(list(Path("/proc/self/fd").iterdir())) - 1
for limit in range(used, used + 8):
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, 64))
    try:
        with Collection.open(sys.argv[1], encoder=TinyEncoder()) as collection:
            collection.snapshot
        print("opened")
    except OutOfResources as error:
        print(error)
"""
NO_MEMORY = """
pages = int(Path("/proc/self/statm").read_text().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (16 << 20), resource.RLIM_INFINITY))
try:
    open_array(Path(sys.argv[1]), "large")
except OutOfResources as error:
    print(error)
"""
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def run(program: str, path: Path) -> list[str]:
    command = [sys.executable, "-c", OPENING + program, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.fixture
def root(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Many segments with all lenses."""
    monkeypatch.setattr(merge, "FANOUT", 100)
    with Collection.create(folder / "c", lenses=LENSES, encoder=TinyEncoder()) as collection:
        for number in range(SEGMENTS):
            collection.add([Document(str(number), f"a fox and number {number}")])
            collection.commit()
    return folder / "c"


def test_few_descriptors_suffice_for_many_segments(root: Path) -> None:
    assert run(SEARCHING, root) == [f"{SEGMENTS} {[SEGMENTS] * len(LENSES)}"]


@linux
def test_a_lack_of_descriptors_is_named(root: Path) -> None:
    said = run(NO_DESCRIPTOR, root)
    assert said[-1] == "opened"
    refused = [line for line in said if line != "opened"]
    assert refused
    assert all("too many open files; raise the limit with `ulimit -n`" in line for line in refused)


@linux
def test_a_lack_of_address_space_is_named(tmp_path: Path) -> None:
    save_arrays(tmp_path, large=np.zeros(64 << 20, np.uint8))
    [said] = run(NO_MEMORY, tmp_path)
    assert said.startswith(f"{tmp_path / 'large.npy'} cannot be opened: not enough memory or address space")
