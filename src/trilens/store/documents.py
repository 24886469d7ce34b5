"""The documents of a segment: ids, titles, texts and metadata as UTF-8 in one array of bytes.

documents/keys.npy     document keys, ascending
documents/offsets.npy  where each field of each document begins in `content`, and where the last one ends
documents/content.npy  doc_id, title, text and metadata (canonical JSON) of each document

Metadata can change without the segment; the catalog holds the current version of what has changed.
"""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path

import numpy as np

from trilens.errors import BadInput, CollectionDamaged
from trilens.kernels.array_types import Int64s, Mask, UInt8s
from trilens.represent.arrays import create_array, save_arrays
from trilens.represent.ragged import offsets_of
from trilens.represent.stored import StoredArrays
from trilens.text.document import Document

FIELDS = 4  # doc_id, title, text, metadata
METADATA = 3  # the position of the metadata among the fields


def text_hash(document: Document) -> bytes:
    """Hash of title and text, the indexed content of a document."""
    digest = blake2b(digest_size=16)
    title = document.title.encode()
    digest.update(len(title).to_bytes(8, "little") + title)  # separates title and text unambiguously
    digest.update(document.text.encode())
    return digest.digest()


@dataclass(frozen=True, eq=False, slots=True)
class DocumentsPart:
    """The documents of one segment."""

    folder: Path
    keys: Int64s
    offsets: Int64s
    content: UInt8s

    def __len__(self) -> int:
        return len(self.keys)

    @staticmethod
    def open(folder: Path) -> "DocumentsPart":
        """Memory-map the arrays."""
        arrays = StoredArrays(folder)
        keys, content = arrays.open("keys", np.int64, (None,)), arrays.open("content", np.uint8, (None,))
        arrays.require(bool((keys[:-1] < keys[1:]).all()), "keys", "repeated or unordered keys", "ascending ones")
        return DocumentsPart(folder, keys, arrays.pointers("offsets", len(content), FIELDS * len(keys)), content)

    @property
    def metadata_bytes(self) -> Int64s:
        """The length of the stored metadata of each document."""
        lengths: Int64s = np.diff(self.offsets).reshape(-1, FIELDS)[:, METADATA]
        return lengths

    def find(self, key: int) -> int | None:
        """The position of a document; None if the segment does not hold it."""
        position = int(self.keys.searchsorted(key))
        return position if position < len(self) and self.keys[position] == key else None

    def document(self, position: int, metadata: str | None = None) -> Document:
        """A document; `metadata` replaces the stored metadata."""
        edges = self.offsets[FIELDS * position : FIELDS * position + FIELDS + 1].tolist()
        first = edges[0]
        content = self.content[first : edges[-1]].tobytes()  # bytes are cut faster than arrays
        try:
            doc_id, title, text, stored = [content[start - first : end - first].decode() for start, end in pairwise(edges)]
            return Document(doc_id, text, title, json.loads(stored if metadata is None else metadata))
        except (ValueError, TypeError, RecursionError, BadInput) as error:
            raise CollectionDamaged(
                f"{self.folder} holds a document that cannot be read ({error}); run `trilens check`"
            ) from error

    @staticmethod
    def write(documents: Mapping[int, Document], folder: Path) -> None:
        """Write documents by ascending key."""
        fields = [
            field.encode()
            for document in documents.values()
            for field in (document.doc_id, document.title, document.text, document.metadata_json())
        ]
        offsets = offsets_of(np.array([len(field) for field in fields], np.int64))
        content = np.frombuffer(b"".join(fields), np.uint8)
        save_arrays(folder, keys=np.array(list(documents), np.int64), offsets=offsets, content=content)

    @staticmethod
    def merge(parts: Sequence["DocumentsPart"], keep: Sequence[Mask], changed: Mapping[int, str], folder: Path) -> None:
        """Copy the kept documents of several parts; `changed` is the current metadata of documents where it has changed."""
        replaced = {key: metadata.encode() for key, metadata in changed.items()}
        lengths = [part._lengths(mask, replaced) for part, mask in zip(parts, keep, strict=True)]
        offsets = offsets_of(np.concatenate(lengths).ravel())
        content = create_array(folder, "content", np.uint8, (int(offsets[-1]),))
        copied = 0
        for part, mask in zip(parts, keep, strict=True):
            for piece in part._pieces(mask, replaced):
                content[copied : copied + len(piece)] = piece
                copied += len(piece)
        keys = np.concatenate([part.keys[mask] for part, mask in zip(parts, keep, strict=True)])
        save_arrays(folder, keys=keys, offsets=offsets)

    def _lengths(self, keep: Mask, replaced: Mapping[int, bytes]) -> Int64s:
        """The byte lengths of the fields of the kept documents (documents, FIELDS)."""
        lengths = np.diff(self.offsets).reshape(-1, FIELDS)
        for position, metadata in self._replaced(replaced):
            lengths[position, METADATA] = len(metadata)
        return lengths[keep]

    def _pieces(self, keep: Mask, replaced: Mapping[int, bytes]) -> Iterator[UInt8s]:
        """The bytes of the kept documents, in pieces that are contiguous in `content` or replaced."""
        cuts = sorted(self._replaced(replaced))
        positions = [position for position, _ in cuts]
        runs = np.flatnonzero(np.diff(keep, prepend=False, append=False)).reshape(-1, 2)
        for first, end in runs.tolist():
            start = int(self.offsets[FIELDS * first])
            for position, metadata in cuts[bisect_left(positions, first) : bisect_left(positions, end)]:
                yield self.content[start : self.offsets[FIELDS * position + METADATA]]
                yield np.frombuffer(metadata, np.uint8)
                start = int(self.offsets[FIELDS * (position + 1)])
            yield self.content[start : self.offsets[FIELDS * end]]

    def _replaced(self, replaced: Mapping[int, bytes]) -> Iterator[tuple[int, bytes]]:
        for key, metadata in replaced.items():
            position = self.find(key)
            if position is not None:
                yield position, metadata


class StoredDocuments:
    """The documents of several segments, with their current metadata."""

    def __init__(self, parts: Sequence[DocumentsPart], changed: Mapping[int, str]) -> None:
        """`parts` are in ascending order of keys; `changed` is the metadata of documents where it has changed."""
        self._parts = parts
        self._first_keys = [int(part.keys[0]) if len(part) else 0 for part in parts]
        self._changed = changed

    def get(self, key: int) -> Document | None:
        """A document; None if no segment holds it."""
        place = bisect_right(self._first_keys, key) - 1
        position = self._parts[place].find(key) if place >= 0 else None
        return None if position is None else self._parts[place].document(position, self._changed.get(key))

    def take(self, keys: Iterable[int]) -> dict[int, Document]:
        """Documents by key; a key without a document is damage."""
        documents = {}
        for key in keys:
            document = self.get(key)
            if document is None:
                raise CollectionDamaged(f"no segment holds the document with key {key}; run `trilens check`")
            documents[key] = document
        return documents
