from collections.abc import Iterator
from pathlib import Path

import pytest

from trilens.collection import Collection
from trilens.store import merge, writer
from trilens.text.document import Document

from ...collection.test_unwritable import fill, small_disk

__all__ = ["fill", "small_disk"]


def numbered(first: int, end: int) -> list[Document]:
    return [Document(f"d{number}", f"word{number} of the river", metadata={"n": number}) for number in range(first, end)]


@pytest.fixture
def collection(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Collection]:
    """Twelve documents in three segments; the fourth commit merges them."""
    monkeypatch.setattr(writer, "BUFFER_PASSAGES", 100)
    monkeypatch.setattr(merge, "FANOUT", 4)
    with Collection.create(folder / "c", lenses=["bm25"]) as collection:
        for first in (0, 4, 8):
            collection.add(numbered(first, first + 4))
            collection.commit()
        yield collection
