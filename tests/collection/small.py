"""Three documents, and what the tests of a collection ask of it."""

from collections.abc import Callable
from typing import Any

import pytest

from trilens.collection import Collection
from trilens.encode.models import bundled_models
from trilens.errors import (
    TrilensError,
)
from trilens.store.config import DEFAULT_MODEL
from trilens.text.document import Document

DOCUMENTS = [
    Document("fox", "A red fox crosses the frozen river at night.", "Foxes", {"year": 1999}),
    Document("train", "The night train waits for the river ferry.", "Trains", {"year": 2005}),
    Document("snow", "Snow fell on the station.", metadata={"year": 2005, "tags": ["cold"]}),
]
with_model = pytest.mark.skipif(DEFAULT_MODEL not in bundled_models(), reason="the bundled model is not there")


def ids(collection: Collection, query: str, k: int = 10, **options: Any) -> list[str]:
    return [hit.doc_id for hit in collection.search([query], k, **options)[0]]


def segment_names(collection: Collection) -> set[str]:
    return {path.name for path in (collection.path / "segments").iterdir()}


def refused(kind: type[TrilensError], act: Callable[[], object]) -> str:
    """The one line that says why not."""
    with pytest.raises(kind) as caught:
        act()
    message = str(caught.value)
    assert message
    assert "\n" not in message
    return message
