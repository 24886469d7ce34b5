"""The documents of several segments are those that were written, with their current metadata."""

from pathlib import Path

import pytest

from trilens.errors import CollectionDamaged
from trilens.store.documents import DocumentsPart, StoredDocuments
from trilens.text.document import Document

SEGMENTS = [
    {1: Document("a", "text", "title", {"n": 1}), 4: Document("é", "ω" * 5, "", {"b": [1, "ü"], "a": None})},
    {5: Document("c", ""), 7: Document("d", "x\0y", "𝛼𝛽"), 9: Document("e", "last")},
]
ALL = SEGMENTS[0] | SEGMENTS[1]


@pytest.fixture
def parts(folder: Path) -> list[DocumentsPart]:
    for number, documents in enumerate(SEGMENTS):
        (folder / str(number)).mkdir()
        DocumentsPart.write(documents, folder / str(number))
    return [DocumentsPart.open(folder / str(number)) for number in range(len(SEGMENTS))]


def test_documents_are_found_by_key(parts: list[DocumentsPart]) -> None:
    stored = StoredDocuments(parts, {})
    assert {key: stored.get(key) for key in range(-1, 12)} == {key: ALL.get(key) for key in range(-1, 12)}
    assert list(stored.take([9, 1, 4]).items()) == [(key, ALL[key]) for key in (9, 1, 4)]
    with pytest.raises(CollectionDamaged, match="no segment holds the document with key 6"):
        stored.take([1, 6])
    assert StoredDocuments([], {}).get(1) is None


def test_changed_metadata_replaces_what_is_stored(parts: list[DocumentsPart]) -> None:
    stored = StoredDocuments(parts, {4: '{"a":2}', 9: "{}"})
    assert stored.get(4) == Document("é", "ω" * 5, "", {"a": 2})
    assert stored.get(9) == ALL[9]
    assert stored.get(1) == ALL[1]


def test_a_document_that_is_not_utf8_is_damage(parts: list[DocumentsPart], folder: Path) -> None:
    path = folder / "0" / "content.npy"
    path.write_bytes(path.read_bytes().replace("é".encode(), b"\xc3("))
    with pytest.raises(CollectionDamaged, match="holds a document that cannot be read") as caught:
        StoredDocuments([DocumentsPart.open(folder / "0")], {}).get(4)
    assert "\n" not in str(caught.value)
