"""A collection with all lenses over a model as small as the tests."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import trilens as trilens
from tests.store.tiny import LENSES, TinyEncoder
from trilens import Collection, Document

LONG = "Pumps move water uphill. Owls hunt at night in silence. Rivers carry sand to the sea. Pipes carry water and oil."
DOCUMENTS = [
    Document("fox", "A red fox crosses the frozen river at night.", "Foxes", {"year": 1999}),
    Document("gone", "The night train waits."),
    Document("a b/ü\u2028", 'line\u2028one\x85two\0three\r\n"four" 𝄞', "Title\t", {"tags": ["x", None, True], "n": 1e300}),
    Document("blank", " "),
]


@pytest.fixture
def collection(tmp_path: Path) -> Iterator[Collection]:
    """Documents in two segments: one of several passages, one deleted, one without a word."""
    options: dict[str, Any] = {"lenses": LENSES, "passages": {"words": 10, "overlap": 2}}
    with Collection.create(tmp_path / "docs.trilens", encoder=TinyEncoder(), **options) as made:
        made.add(DOCUMENTS)
        made.commit()
        made.add([Document("long", LONG)])
        made.delete(["gone"])
        made.commit()
        yield made
