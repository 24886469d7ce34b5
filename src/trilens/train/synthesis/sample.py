"""The passages of a collection for which questions are written."""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

import numpy as np

from trilens.errors import BadInput
from trilens.kernels.array_types import Int64s
from trilens.store.snapshot import Snapshot
from trilens.text.document import Document
from trilens.text.passages import passage_text

Unit = Literal["passages", "documents"]


@dataclass(frozen=True, slots=True)
class DrawnPassage:
    """A passage, `start:end` of its document."""

    document: Document
    start: int
    end: int

    @property
    def text(self) -> str:
        """The text with the title, as it is indexed."""
        return passage_text(self.document, self.start, self.end)


class DrawnPassages:
    """Random passages in random order: of all documents, or one of each document that has several."""

    def __init__(self, snapshot: Snapshot, unit: Unit, limit: int | None, seed: int) -> None:
        self._snapshot = snapshot
        rows = _live_rows(snapshot)
        if not len(rows):
            raise BadInput("the collection is empty; expected documents: index some first")
        order = np.random.default_rng(seed).permutation(rows)
        if unit == "documents":
            order = _one_of_several(order, snapshot.keys_of(order))
            if not len(order):
                raise BadInput("no document has more than one passage; expected long documents, or --of passages")
        self._places = snapshot.places(order[:limit])

    def __len__(self) -> int:
        return len(self._places.keys)

    def __getitem__(self, number: int) -> DrawnPassage:
        key, start, end = (int(column[number]) for column in self._columns)
        return DrawnPassage(self._snapshot.documents([key])[key], start, end)

    def characters(self, first: int) -> Int64s:
        """The lengths of the passages from number `first` on."""
        return self._places.ends[first:] - self._places.starts[first:]

    def digest(self) -> str:
        """Identifies the passages and their order."""
        digest = blake2b(digest_size=16)
        for column in self._columns:
            digest.update(np.ascontiguousarray(column).tobytes())
        return digest.hexdigest()

    @property
    def _columns(self) -> tuple[Int64s, Int64s, Int64s]:
        return self._places.keys, self._places.starts, self._places.ends


def _live_rows(snapshot: Snapshot) -> Int64s:
    """The numbers of all rows that are not deleted."""
    segments = zip(snapshot.segments, snapshot.live, strict=True)
    masks = [np.ones(len(segment), np.bool_) if live is None else live for segment, live in segments]
    return np.flatnonzero(np.concatenate([np.zeros(0, np.bool_), *masks]))


def _one_of_several(rows: Int64s, keys: Int64s) -> Int64s:
    """The first row of each key that occurs more than once."""
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    return rows[np.sort(first[counts > 1])]
