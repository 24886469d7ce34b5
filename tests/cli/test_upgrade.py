"""`trilens upgrade` on a collection of version 1, whose documents are encoded again."""

from pathlib import Path
from zipfile import ZipFile

import pytest

from .conftest import Trilens

DATA = Path(__file__).parents[1] / "store" / "data"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    with ZipFile(DATA / "format-1" / "texts.zip") as archive:
        archive.extractall(tmp_path)
    return tmp_path / "texts"


def test_an_old_collection_names_the_command_that_upgrades_it(old: Path, trilens: Trilens) -> None:
    refused = trilens("search", old, "fox")
    assert refused.code == 1
    assert f"run `trilens upgrade {old}`" in refused.err
    assert trilens("upgrade", old).out == "upgraded from format version 1 to 5: 5 documents, indexes encoded again\n"
    assert "fox" in trilens("search", old, "fox").out
    assert trilens("upgrade", old, "--json").json == {"version": 5, "documents": 5, "encoded": False}
    assert "nothing to do" in trilens("upgrade", old).out


def test_there_is_nothing_to_upgrade(tmp_path: Path, trilens: Trilens) -> None:
    refused = trilens("upgrade", tmp_path / "none")
    assert refused.code == 1
    assert refused.err.startswith("trilens: there is no collection at")
    assert refused.err.count("\n") == 1
