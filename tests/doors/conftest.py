"""A small collection for the tests of all frameworks."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from trilens import Collection, Document
from trilens.encode.models import resolve_model
from trilens.encode.onnx import OnnxEncoder
from trilens.store.config import DEFAULT_MODEL

TEXTS = {
    "pumps": "Centrifugal pumps move water through pipes.",
    "fins": "Fins increase the surface of a radiator.",
    "git": "To undo a commit, use git revert.",
    "bearings": "Bearings carry rotating shafts. Grease them once a month.",
}
YEARS = {"pumps": 2019, "fins": 2020, "git": 2021, "bearings": None}


@pytest.fixture(scope="session")
def encoder() -> OnnxEncoder:
    """The bundled model, loaded once."""
    return OnnxEncoder(resolve_model(DEFAULT_MODEL), threads=1, heads=["dense", "multi"])


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four documents with titles, one of them without a year, through the default lenses."""
    path = tmp_path_factory.mktemp("written") / "small.trilens"
    with Collection.create(path, threads=1) as made:
        made.add(
            Document(name, text, title=name.title(), metadata={"year": YEARS[name]} if YEARS[name] else {})
            for name, text in TEXTS.items()
        )
    return path


@pytest.fixture
def collection(written: Path, encoder: OnnxEncoder, tmp_path: Path) -> Iterator[Collection]:
    """A copy of the documents."""
    with Collection.open(shutil.copytree(written, tmp_path / "small.trilens"), encoder=encoder) as copied:
        yield copied


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Collection]:
    """A collection without documents and without a model."""
    with Collection.create(tmp_path / "empty.trilens", lenses=["bm25"]) as made:
        yield made
