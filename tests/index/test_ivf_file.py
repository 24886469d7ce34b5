import sys
from pathlib import Path

import numpy as np
import pytest

from trilens.errors import CollectionDamaged
from trilens.index.dense_part import ANN_FILE, DensePart
from trilens.index.ivf_file import open_ivf
from trilens.represent import Dense

ROWS, DIM = 300, 32


@pytest.fixture(params=["all lists", "few lists"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """An index; where few lists have rows, faiss stores their sizes in another form."""
    vectors = np.random.default_rng(1).normal(size=(ROWS, DIM)).astype(np.float32)
    if request.param == "few lists":
        vectors = np.ascontiguousarray(vectors[np.arange(ROWS) % 3])
    DensePart.build(Dense(vectors), 256, tmp_path)
    return tmp_path / ANN_FILE


def test_what_faiss_writes_is_read(path: Path) -> None:
    index = open_ivf(path, DIM, ROWS)
    assert (index.ntotal, index.d) == (ROWS, DIM)
    index.nprobe = index.nlist
    found = index.search(np.ones((1, DIM), np.float32), 5)[1]
    assert ((found >= 0) & (found < ROWS)).all()


def test_another_size_is_refused(path: Path) -> None:
    for dim, rows in ((DIM + 16, ROWS), (DIM, ROWS + 1)):
        with pytest.raises(CollectionDamaged, match=r"ivf\.faiss is not the whole faiss index"):
            open_ivf(path, dim, rows)


def test_without_faiss_a_file_is_still_checked(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)  # importing it fails
    assert open_ivf(path, DIM, ROWS) is None
    with pytest.raises(CollectionDamaged, match=r"ivf\.faiss is not the whole faiss index"):
        open_ivf(path, DIM, ROWS + 1)


def test_every_size_in_the_file_is_checked(path: Path) -> None:
    """All bytes but those of centroids, ranges, codes and rows are known or counted."""
    content = path.read_bytes()
    lists = open_ivf(path, DIM, ROWS).nlist
    head = 37 + 16 + 37 + 8
    ranges = head + 4 * lists * DIM
    tail = ranges + 45 + 8 * DIM
    places = [*range(head), *range(ranges, ranges + 45), *range(tail, tail + 29 + 12), len(content)]
    path.unlink()
    for place in places:
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x41 if place < len(content) else 0]) + content[place + 1 :])
        with pytest.raises(CollectionDamaged, match=r"ivf\.faiss is not the whole faiss index"):
            open_ivf(path, DIM, ROWS)
