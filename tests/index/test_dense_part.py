"""Vectors of one segment and their faiss index on disk."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from trilens.errors import CollectionDamaged
from trilens.index.dense_part import ANN_FILE, DensePart
from trilens.represent import Dense


def vectors(rows: int) -> NDArray[np.float32]:
    return np.random.default_rng(rows).normal(size=(rows, 32)).astype(np.float32)


@pytest.mark.parametrize(("rows", "indexed"), [(255, False), (256, True)])
def test_large_parts_have_an_index(tmp_path: Path, rows: int, indexed: bool) -> None:
    DensePart.build(Dense(vectors(rows)), 256, tmp_path)
    part = DensePart.open(tmp_path)
    assert (len(part), part.ann is not None) == (rows, indexed)
    assert part.dense.vectors.tolist() == vectors(rows).tolist()


def test_a_merge_copies_the_kept_rows_in_order(tmp_path: Path) -> None:
    sizes = (40, 300)
    for rows in sizes:
        DensePart.build(Dense(vectors(rows)), 256, tmp_path / str(rows))
    keep = [np.random.default_rng(rows).random(rows) < 0.5 for rows in sizes]
    DensePart.merge([DensePart.open(tmp_path / str(rows)) for rows in sizes], keep, 256, tmp_path / "merged")
    merged = DensePart.open(tmp_path / "merged")
    assert (
        merged.dense.vectors.tolist()
        == np.concatenate([vectors(rows)[mask] for rows, mask in zip(sizes, keep, strict=True)]).tolist()
    )
    assert merged.ann is None


@pytest.mark.parametrize("damage", ["empty", "truncated", "other"])
def test_a_damaged_index_file_is_named(tmp_path: Path, damage: str) -> None:
    DensePart.build(Dense(vectors(300)), 256, tmp_path)
    whole = (tmp_path / ANN_FILE).read_bytes()
    contents = {"empty": b"", "truncated": whole[: len(whole) // 2], "other": b"no faiss index " * 100}
    (tmp_path / ANN_FILE).unlink()
    (tmp_path / ANN_FILE).write_bytes(contents[damage])
    with pytest.raises(CollectionDamaged, match=r"ivf\.faiss is not the whole faiss index of 300 vectors"):
        DensePart.open(tmp_path)


def test_building_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    DensePart.build(Dense(vectors(1000)), 256, tmp_path)
    assert tuple(capfd.readouterr()) == ("", "")
