"""Documents of frameworks, which have a text and metadata but no title, as trilens documents and back without loss.

A title in the metadata is also the title of the trilens document, so that lenses index it with the text. What a framework keeps
beside text and metadata is stored in the metadata, under a key that is reserved for it.
"""

from collections.abc import Mapping
from typing import Any

from trilens.errors import BadInput
from trilens.search.hits import Hit
from trilens.text.document import Document

TITLE = "title"


def to_document(
    doc_id: str, text: str, metadata: Mapping[str, Any], reserved: str = "", extra: Mapping[str, Any] | None = None
) -> Document:
    """The trilens document of a framework's document. `extra` is stored in the metadata under the key `reserved`."""
    if reserved and reserved in metadata:
        raise BadInput(f"metadata of document {doc_id!r} has the key {reserved!r}, which is reserved; expected another name")
    title = metadata.get(TITLE)
    stored = {**metadata, reserved: dict(extra)} if extra else dict(metadata)
    return Document(doc_id, text, title if isinstance(title, str) else "", stored)


def metadata_of(document: Document, reserved: str = "") -> dict[str, Any]:
    """The metadata for a framework, with the title and without what is stored under the key `reserved`."""
    metadata = {name: value for name, value in document.metadata.items() if name != reserved}
    return {TITLE: document.title, **metadata} if document.title else metadata


def text_of(hit: Hit, passages: bool) -> tuple[str, dict[str, int]]:
    """The text of a hit and its place: the best passage with its start and end in the document, or the whole text."""
    return (hit.passage, {"start": hit.start, "end": hit.end}) if passages else (hit.document.text, {})
