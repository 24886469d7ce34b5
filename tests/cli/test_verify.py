"""`--verify`: damage that a search would not notice is found before the search."""

from pathlib import Path

import pytest

from trilens.errors import CollectionDamaged
from trilens.http.start import ServeOptions, start

from .conftest import Trilens


@pytest.fixture
def changed(trilens: Trilens, corpus: Path, tmp_path: Path) -> Path:
    """A collection with a letter of a text changed."""
    path = tmp_path / "c.trilens"
    assert trilens("index", corpus, "--to", path, "--lens", "bm25").code == 0
    [content] = path.rglob("content.npy")
    content.write_bytes(content.read_bytes().replace(b"Recursively", b"Recursivelo"))
    return path


@pytest.mark.parametrize("command", [("search", "directory"), ("explain", "directory", "mkdir")])
def test_searches_verify_on_request(trilens: Trilens, changed: Path, command: tuple[str, ...]) -> None:
    name, *arguments = command
    assert trilens(name, changed, *arguments).code == 0
    refused = trilens(name, changed, *arguments, "--verify")
    assert (refused.code, refused.out) == (1, "")
    assert "content.npy has changed" in refused.err


def test_a_whole_collection_passes(trilens: Trilens, corpus: Path, tmp_path: Path) -> None:
    trilens("index", corpus, "--to", tmp_path / "c", "--lens", "bm25")
    assert "mkdir" in trilens("search", tmp_path / "c", "directory", "--verify").out


def test_a_service_verifies_on_request(changed: Path) -> None:
    with pytest.raises(CollectionDamaged, match=r"content\.npy has changed"):
        start({"c": changed}, ServeOptions(verify=True), lambda _: None)
