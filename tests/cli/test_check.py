"""`trilens check` finds damage, and `--repair` repairs it and lists what is gone."""

from pathlib import Path

import pytest

from .conftest import Trilens


@pytest.fixture
def collection(tmp_path: Path, corpus: Path, trilens: Trilens) -> Path:
    path = tmp_path / "c.trilens"
    assert trilens("index", corpus, "--to", path, "--lens", "bm25").code == 0
    return path


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def test_a_damaged_index_is_repaired(collection: Path, trilens: Trilens) -> None:
    flip(next(collection.rglob("letters.npy")), -1)
    found = trilens("check", collection)
    assert found.code == 1
    assert (
        f"letters.npy has changed: its checksum is not the one in the catalog; run `trilens check {collection} --repair`"
        in found.err
    )
    repaired = trilens("check", collection, "--repair")
    assert (repaired.code, repaired.out) == (0, "3 documents, 3 of them encoded again, 0 gone\n")
    assert trilens("check", collection).out.startswith("ok: 3 documents")


def test_a_damaged_text_is_gone_and_named(collection: Path, trilens: Trilens) -> None:
    content = next(collection.rglob("content.npy"))
    flip(content, content.read_bytes().index(b"square root"))
    repaired = trilens("check", collection, "--repair")
    assert repaired.code == 1
    assert repaired.out == "gone: sqrt\n2 documents, 2 of them encoded again, 1 gone\n"
    assert "index them again from their sources" in repaired.err
    assert trilens("check", collection, "--json").json["documents"] == 2


def test_a_catalog_that_is_gone_is_written_again(collection: Path, trilens: Trilens) -> None:
    (collection / "catalog.sqlite").unlink()
    repaired = trilens("check", collection, "--repair", "--json")
    assert (repaired.json["documents"], repaired.json["lost"]) == (3, [])
    assert trilens("search", collection, "square root").code == 0
