"""An immutable view of one commit; every search runs on one."""

import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from trilens.encode.encoder import Encoded
from trilens.errors import BadFilter, CollectionDamaged
from trilens.index.lens import Mask, Searcher
from trilens.index.topk import TopK
from trilens.store.catalog import Catalog, has_moved_on
from trilens.store.filters import to_sql
from trilens.store.lenses import Lenses
from trilens.store.segment import Segment
from trilens.store.shared import SharedPart, SharedParts
from trilens.text.document import Document
from trilens.text.passages import passage_text

ROWS_AT_ONCE = 256  # whose documents are fetched together
MASKS_KEPT = 16
TRIES = 10


@dataclass(frozen=True, eq=False, slots=True)
class Places:
    """Rows as users know them: the document of each, and where in its text the passage lies."""

    keys: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


def tuned_name(lenses: Iterable[str]) -> str:
    """Under which weights are kept that were tuned for these lenses, in whatever order they are named."""
    return "+".join(sorted(lenses))


class Snapshot:
    """One commit, opened. It stays as it is while writers go on; threads may share it."""

    def __init__(self, root: Path, lenses: Lenses, previous: "Snapshot | None" = None) -> None:
        self._lenses = lenses
        self._lock = RLock()
        self._masks: OrderedDict[str, Mask] = OrderedDict()
        self._searchers: dict[str, Searcher] = {}
        self._live: list[Mask | None] | None = None  # no cached property: its lock and ours would be taken in both orders
        self._catalog, self.segments, self.shared = _open(root, lenses, previous)
        self._close = finalize(self, self._catalog.close)  # at the latest when the last search has let go of it
        self.commit = self._catalog.commit_number()
        self._first_rows = np.cumsum([0, *(len(segment) for segment in self.segments)])

    def close(self) -> None:
        """Let writers reuse the space of what this snapshot alone still sees."""
        with self._lock:
            self._close()

    @cached_property
    def documents_count(self) -> int:
        """Documents in this commit."""
        with self._lock:
            return self._catalog.count()

    @cached_property
    def tuned(self) -> dict[str, Any]:
        """How lenses are fused, by `tuned_name`, where someone has tuned that."""
        with self._lock:
            return self._catalog.tuned()

    @property
    def rows(self) -> int:
        """Rows of all segments, live or not."""
        return int(self._first_rows[-1])

    @property
    def live(self) -> list[Mask | None]:
        """The live rows of each segment; None where all are."""
        with self._lock:
            if self._live is None:
                self._live = [self._live_of(segment) for segment in self.segments]
            return self._live

    def _live_of(self, segment: Segment) -> Mask | None:
        deleted = self._catalog.deleted(segment.record.first_key, segment.record.last_key)
        return ~segment.mask(deleted) if len(deleted) else None

    @property
    def live_rows(self) -> int:
        """Rows that count."""
        masks = zip(self.segments, self.live, strict=True)
        return sum(len(segment) if mask is None else int(mask.sum()) for segment, mask in masks)

    @property
    def has_passages(self) -> bool:
        """Whether some document was split into several rows."""
        return any(segment.record.rows > segment.record.documents for segment in self.segments)

    def search(
        self,
        lens: str,
        queries: Encoded,
        k: int,
        where: Mapping[str, Any] | None = None,
        exact: bool = False,
        params: Any | None = None,
    ) -> TopK:
        """The best k rows of each query through one lens."""
        allowed = None if not where else self.mask(where)
        return self.searcher(lens).search(queries, k, allowed, exact, params)

    def mask(self, where: Mapping[str, Any]) -> Mask:
        """The live rows whose documents pass a filter."""
        try:
            name = json.dumps(where, sort_keys=True, ensure_ascii=False)
            name.encode()
        except RecursionError as error:
            raise BadFilter("filter is nested too deeply; expected a simpler one") from error
        except (TypeError, ValueError) as error:
            raise BadFilter(f"filter {where!r} cannot be written as JSON ({error}); expected a JSON object") from error
        with self._lock:
            if name not in self._masks:
                keys = self._catalog.keys_where(*to_sql(where))
                parts = [segment.mask(keys) for segment in self.segments]
                self._masks[name] = np.concatenate(parts) if parts else np.zeros(0, np.bool_)
                if len(self._masks) > MASKS_KEPT:
                    self._masks.popitem(last=False)
            self._masks.move_to_end(name)
            return self._masks[name]

    def places(self, rows: NDArray[np.int64]) -> Places:
        """The passages at the given rows."""
        found = Places(*(np.zeros(rows.shape, np.int64) for _ in range(3)))
        for segment, here, at in self._by_segment(rows):
            found.keys[here] = segment.rows.keys[at]
            found.starts[here], found.ends[here] = segment.rows.starts[at], segment.rows.ends[at]
        return found

    def keys_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The documents of rows; 0, which is no document, where a row is -1."""
        keys = np.zeros(rows.shape, np.int64)
        for segment, here, at in self._by_segment(rows):
            keys[here] = segment.rows.keys[at]
        return keys

    def _by_segment(self, rows: NDArray[np.int64]) -> Iterator[tuple[Segment, Mask, NDArray[np.int64]]]:
        """Each segment with which of the rows are its own, and where they are in it."""
        for first, last, segment in zip(self._first_rows[:-1], self._first_rows[1:], self.segments, strict=True):
            here = (rows >= first) & (rows < last)
            yield segment, here, rows[here] - first

    def rows_of(self, keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All rows of the documents with these keys, segment by segment, and for each of them the place of its key."""
        rows, owners, places = [np.empty(0, np.int64)], [np.empty(0, np.int64)], np.arange(len(keys))
        for first_row, segment in zip(self._first_rows.tolist(), self.segments, strict=False):
            begins = np.searchsorted(segment.rows.keys, keys)
            counts = np.searchsorted(segment.rows.keys, keys, side="right") - begins
            steps = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
            rows.append(first_row + np.repeat(begins, counts) + steps)
            owners.append(np.repeat(places, counts))
        return np.concatenate(rows), np.concatenate(owners)

    def documents(self, keys: Sequence[int]) -> dict[int, Document]:
        """Documents by key."""
        with self._lock:
            return self._catalog.documents(keys)

    def key(self, doc_id: str) -> int | None:
        """Our number of a document."""
        with self._lock:
            known = self._catalog.find(doc_id)
            return known.key if known else None

    def document(self, doc_id: str) -> Document | None:
        """A document by the user's id."""
        with self._lock:
            known = self._catalog.find(doc_id)
            return self._catalog.documents([known.key])[known.key] if known else None

    def page(self, after: int, count: int) -> list[tuple[int, Document]]:
        """Up to `count` documents with their keys, in the order of keys, from the first one above `after`."""
        with self._lock:
            keys = self._catalog.keys_above(after, count).tolist()
            documents = self._catalog.documents(keys)
        return [(key, documents[key]) for key in keys]

    def passages(self, keys: NDArray[np.int64] | None = None) -> Iterator[tuple[int, Document, str]]:
        """The live rows in order, of some documents (ascending keys) or all: row, document, and what the lenses see of it."""
        for first_row, segment, live in zip(self._first_rows.tolist(), self.segments, self.live, strict=False):
            chosen = np.ones(len(segment), np.bool_) if keys is None else segment.mask(keys)
            rows = first_row + np.flatnonzero(chosen if live is None else chosen & live)
            for start in range(0, len(rows), ROWS_AT_ONCE):
                yield from self.passages_at(rows[start : start + ROWS_AT_ONCE])

    def passages_at(self, rows: NDArray[np.int64]) -> Iterator[tuple[int, Document, str]]:
        """Some rows: their numbers, their documents, and what the lenses see of them."""
        places = self.places(rows)
        documents = self.documents(np.unique(places.keys).tolist())
        columns = (column.tolist() for column in (rows, places.keys, places.starts, places.ends))
        for row, key, start, end in zip(*columns, strict=True):
            yield row, documents[key], passage_text(documents[key], start, end)

    def figures(self, lens: str) -> dict[str, Any]:
        """What a lens has to tell about itself."""
        return self._lenses[lens].figures(self._parts(lens), self.shared.of(lens))

    def _parts(self, lens: str) -> list[Any]:
        return [segment.parts[lens] for segment in self.segments]

    def searcher(self, lens: str) -> Searcher:
        """The searcher of a lens over this commit."""
        with self._lock:
            if lens not in self._searchers:
                self._searchers[lens] = self._lenses[lens].searcher(self._parts(lens), self.live, self.shared.of(lens))
            return self._searchers[lens]


def _open(root: Path, lenses: Lenses, previous: Snapshot | None) -> tuple[Catalog, list[Segment], SharedParts]:
    """The catalog at its last commit with that commit's segments and shared parts, reusing those that are open already.

    A merge may remove files between reading the catalog and opening them. Then there is a newer commit to open instead.
    """
    segments = {segment.record.id: segment for segment in previous.segments} if previous else {}
    shared = {part.record.id: part for part in previous.shared.every} if previous else {}
    for remaining in reversed(range(TRIES)):
        catalog = Catalog.open(root)
        try:
            catalog.begin()
            found = [segments.get(record.id) or Segment(root, record, lenses) for record in catalog.segments()]
            parts = [shared.get(record.id) or SharedPart(root, record, lenses) for record in catalog.shared()]
        except CollectionDamaged:
            commit = catalog.commit_number()
            catalog.close()
            if not remaining or not has_moved_on(root, commit):
                raise
        except BaseException:
            catalog.close()
            raise
        else:
            return catalog, found, SharedParts(parts)
    raise AssertionError("the loop returns or raises")
