from collections.abc import Iterator
from pathlib import Path

import pytest

from trilens.collection import Collection

from .small import DOCUMENTS


@pytest.fixture
def collection(tmp_path: Path) -> Iterator[Collection]:
    """Three documents in one segment."""
    with Collection.create(tmp_path / "c", lenses=["bm25"]) as collection:
        collection.add(DOCUMENTS)
        collection.commit()
        yield collection
