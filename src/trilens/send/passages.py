"""`Passage`: what is sent of one row: its document's fields, its text, its vectors and a digest of all of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple
from uuid import UUID, uuid5

import numpy as np

from trilens.kernels.array_types import AnyArray, Float32s, Int64s
from trilens.represent import Dense, Multi, Representation, Sparse
from trilens.send.layout import Layout
from trilens.store.snapshot import Snapshot
from trilens.text.document import Document

IDS = UUID("6f0c8f5e-3f0e-5d55-9f1c-2c9a4b1f7a11")  # the namespace of passage ids
ROWS_AT_ONCE = 1024
MOST_PASSAGES, MOST_NUMBERS = 256, 1_000_000  # of one request
# The fields of a passage beside its vectors, in every engine.
ID, DOC_ID, NUMBER, TITLE, TEXT = "id", "doc_id", "passage", "title", "text"
START, END, METADATA, DIGEST = "span_start", "span_end", "metadata", "digest"


class RowPlace(NamedTuple):
    """A row, the key of its document, and which passage of the document it is, from 0."""

    row: int
    key: int
    number: int


@dataclass(frozen=True, eq=False, slots=True)
class Passage:
    """A passage with the vectors of one row by lens. `id` depends on the id of the document and the passage's number alone."""

    id: str
    document: Document
    number: int
    start: int
    end: int
    vectors: Mapping[str, Representation]
    digest: str

    @property
    def text(self) -> str:
        """The text of the passage, without the title."""
        return self.document.text[self.start : self.end]

    @property
    def numbers(self) -> int:
        """How many numbers its vectors have."""
        return sum(array.size for vector in self.vectors.values() for array in _arrays(vector))

    def fields(self) -> dict[str, Any]:
        """All fields but id and vectors; the digest comes first."""
        document = self.document
        return {
            DIGEST: self.digest,
            DOC_ID: document.doc_id,
            NUMBER: self.number,
            TITLE: document.title,
            TEXT: self.text,
            START: self.start,
            END: self.end,
            METADATA: dict(document.metadata),
        }


def read_passages(snapshot: Snapshot, layout: Layout) -> Iterator[list[Passage]]:
    """All passages of a commit, some hundreds at a time."""
    for places in _places(snapshot):
        rows = np.array([place.row for place in places])
        spans = snapshot.places(rows)
        documents = snapshot.documents(np.unique(spans.keys).tolist())
        vectors = {field.lens: snapshot.searcher(field.lens).vectors(rows) for field in layout.fields}
        passages = []
        for i, place in enumerate(places):
            own = {lens: one.take(np.array([i])) for lens, one in vectors.items() if one is not None}
            span = (int(spans.starts[i]), int(spans.ends[i]))
            passages.append(_passage(documents[place.key], place.number, span, own))
        yield passages


def passage_ids(snapshot: Snapshot) -> Iterator[str]:
    """The ids of all passages; no vector is read."""
    for places in _places(snapshot):
        documents = snapshot.documents(sorted({place.key for place in places}))
        yield from (_id(documents[place.key].doc_id, place.number) for place in places)


def requests(passages: list[Passage]) -> Iterator[list[Passage]]:
    """Pieces of a list that one request can hold."""
    piece: list[Passage] = []
    numbers = 0
    for passage in passages:
        if piece and (len(piece) == MOST_PASSAGES or numbers + passage.numbers > MOST_NUMBERS):
            yield piece
            piece, numbers = [], 0
        piece.append(passage)
        numbers += passage.numbers
    if piece:
        yield piece


def values(vector: Float32s) -> list[float]:
    """A vector as numbers whose decimal form is short and the same float32 when it is read."""
    return [float(f"{value:.9g}") for value in vector.tolist()]


def _places(snapshot: Snapshot) -> Iterator[list[RowPlace]]:
    """The live rows in order; those of a document follow each other in one segment."""
    first_row = 0
    for segment, live in zip(snapshot.segments, snapshot.live, strict=True):
        rows: Int64s = np.arange(len(segment)) if live is None else np.flatnonzero(live)
        keys = segment.rows.keys[rows]
        numbers = np.arange(len(rows)) - np.searchsorted(keys, keys)
        for start in range(0, len(rows), ROWS_AT_ONCE):
            some = slice(start, start + ROWS_AT_ONCE)
            columns = ((first_row + rows[some]).tolist(), keys[some].tolist(), numbers[some].tolist())
            yield [RowPlace(*place) for place in zip(*columns, strict=True)]
        first_row += len(segment)


def _passage(document: Document, number: int, span: tuple[int, int], vectors: Mapping[str, Representation]) -> Passage:
    digest = blake2b(digest_size=16)
    for text in (document.doc_id, document.title, document.text[slice(*span)], document.metadata_json(), repr((number, *span))):
        encoded = text.encode()
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    for lens, vector in vectors.items():
        digest.update(lens.encode())
        for array in _arrays(vector):
            digest.update(array.size.to_bytes(8, "little") + np.ascontiguousarray(array).tobytes())
    return Passage(_id(document.doc_id, number), document, number, *span, vectors, digest.hexdigest())


def _id(doc_id: str, number: int) -> str:
    return str(uuid5(IDS, f"{number} {doc_id}"))


def _arrays(vector: Representation) -> tuple[AnyArray, ...]:
    match vector:
        case Dense():
            return (vector.vectors,)
        case Sparse():
            return (vector.terms, vector.weights)
        case Multi():
            return (vector.vectors,)
