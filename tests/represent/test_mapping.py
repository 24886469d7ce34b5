import gc
import sys
from pathlib import Path

import pytest

from trilens.represent.mapping import map_file

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def mapped(path: Path) -> int:
    return Path("/proc/self/maps").read_text().count(str(path))


def test_the_bytes_of_a_file_are_mapped_read_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"some bytes")
    content = map_file(tmp_path / "file")
    assert content.tobytes() == b"some bytes"
    with pytest.raises(ValueError, match="read-only"):
        content[0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        content.setflags(write=True)


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert len(map_file(tmp_path / "file")) == 0


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@linux
def test_a_map_holds_no_descriptor_and_ends_with_its_last_array(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 10_000)
    before = descriptors()
    content = map_file(path)
    part = content[5000:]
    assert descriptors() == before
    path.unlink()
    del content
    gc.collect()
    assert part.tobytes() == b"x" * 5000
    assert mapped(path) == 1
    del part
    gc.collect()
    assert mapped(path) == 0
