"""`Snapshot`: an immutable view of one commit; every search runs on one."""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from weakref import finalize

import numpy as np

from trilens.cancellation import require_wanted
from trilens.encode.encoder import Encoded
from trilens.errors import CollectionDamaged
from trilens.index.topk import TopK
from trilens.kernels.array_types import Int64s, Mask
from trilens.lenses.lens import Searcher
from trilens.lenses.statistics import Statistics
from trilens.represent import Representation
from trilens.store.catalog import Catalog, has_moved_on
from trilens.store.documents import StoredDocuments
from trilens.store.failures import clear_errors
from trilens.store.fair_lock import FairLock
from trilens.store.filter_types import compared_kinds, describe, json_path, unexpected
from trilens.store.last_commit import open_verified
from trilens.store.lens_set import LensSet
from trilens.store.masks import FilterMasks
from trilens.store.records import read_records
from trilens.store.sampling import LARGEST, Sampling
from trilens.store.schema import FileRecord, FolderRecord
from trilens.store.segment import Segment
from trilens.store.shared import SharedPart, SharedParts
from trilens.text.document import Document
from trilens.text.passages import passage_text

SAMPLED_DOCUMENTS = 1000
ROWS_AT_ONCE = 256  # rows whose documents are read together
TRIES = 10


@dataclass(frozen=True, eq=False, slots=True)
class Places:
    """The document key of each row and the span of its passage in the document's text."""

    keys: Int64s
    starts: Int64s
    ends: Int64s


class Snapshot:
    """One open commit. It is unaffected by later commits, and threads may share it."""

    def __init__(self, root: Path, lenses: LensSet, previous: "Snapshot | None" = None) -> None:
        self._lenses = lenses
        self._lock = FairLock()
        self._searchers: dict[str, Searcher] = {}
        self._sampled: Sampling | None = None
        self._whole_of: Snapshot | None = None
        self._live: list[Mask | None] | None = None  # not a cached_property: its lock and ours would be taken in both orders
        with clear_errors(root):
            self._catalog, self.segments, self.shared = _open(root, lenses, previous)
        self._close = finalize(self, self._catalog.close)  # at the latest when the snapshot is collected
        self.commit = self._catalog.commit_number()
        self._masks = FilterMasks(self._catalog, self.segments, self._lock)
        self._first_rows = np.cumsum([0, *(len(segment) for segment in self.segments)])

    def close(self) -> None:
        """End the read transaction, so that SQLite can reuse pages that only this snapshot needs."""
        with self._lock:
            self._close()

    @cached_property
    def documents_count(self) -> int:
        """Number of documents."""
        with self._lock:
            return self._catalog.count()

    @cached_property
    def tuned(self) -> dict[str, Any]:
        """Tuned fusions, by the lenses that they are for."""
        with self._lock:
            return self._catalog.tuned()

    @property
    def files(self) -> list[FileRecord]:
        """The files of all segments and shared parts."""
        records: list[FolderRecord] = [segment.record for segment in self.segments]
        records += [part.record for part in self.shared.every]
        return [file for record in records for file in record.files]

    @property
    def rows(self) -> int:
        """Number of rows of all segments, including deleted ones."""
        return int(self._first_rows[-1])

    @property
    def live(self) -> list[Mask | None]:
        """Masks of the live rows of each segment; None where all rows are live."""
        with self._lock:
            if self._live is None:
                self._live = [self._live_of(segment) for segment in self.segments]
            return self._live

    def _live_of(self, segment: Segment) -> Mask | None:
        deleted = self._catalog.marked("deleted", segment.record.first_key, segment.record.last_key)
        return ~segment.mask(deleted) if len(deleted) else None

    @property
    def live_rows(self) -> int:
        """Number of live rows."""
        masks = zip(self.segments, self.live, strict=True)
        return sum(len(segment) if mask is None else int(mask.sum()) for segment, mask in masks)

    @property
    def has_passages(self) -> bool:
        """Whether any document has several rows."""
        return any(segment.record.rows > segment.record.documents for segment in self.segments)

    def search(
        self,
        lens: str,
        queries: Encoded,
        k: int,
        filter: Mapping[str, Any] | None = None,
        exact: bool = False,
        params: Any | None = None,
    ) -> TopK:
        """The k best rows of each query by one lens."""
        require_wanted()
        allowed = self.mask(filter) if filter else None
        top = self.searcher(lens).search(queries, k, allowed, exact, params)
        if not (top.scores < np.inf).all():  # NaN or infinite
            raise CollectionDamaged(f"lens {lens} has scores that are not finite; run `trilens check`")
        return top

    def query_vectors(self, lenses: Sequence[str], queries: Sequence[str]) -> dict[str, Representation | None]:
        """Queries as vectors whose inner products (token vectors: MaxSim) with those of rows are the scores of these lenses."""
        encoded = self._lenses.encode_queries(lenses, list(queries), {})
        return {lens: self.searcher(lens).query_vectors(encoded[lens]) for lens in lenses}

    def mask(self, filter: Mapping[str, Any]) -> Mask:
        """Mask of the live rows whose documents pass a filter."""
        return self._masks.mask(filter)

    def mistyped(self, filter: Mapping[str, Any]) -> list[str]:
        """One line for each field whose type is not that of the values with which the filter compares it.

        If the filter matches some documents, a sample shows whether there are such fields, so that others cost nothing.
        """
        keys = np.concatenate([np.empty(0, np.int64), *(segment.documents.keys for segment in self.segments)])
        sample = keys[:: max(1, len(keys) // SAMPLED_DOCUMENTS)].tolist() if self.mask(filter).any() else None
        lines = []
        for key, kinds in compared_kinds(filter).items():
            with self._lock:
                if unexpected(kinds, self._catalog.types_of(json_path(key), sample)):
                    found = unexpected(kinds, self._catalog.types_of(json_path(key)))
                    lines.append(describe(key, kinds, found))
        return lines

    def places(self, rows: Int64s) -> Places:
        """The passages at the given rows."""
        places = Places(*(np.zeros(rows.shape, np.int64) for _ in range(3)))
        for segment, here, local in self._by_segment(rows):
            places.keys[here] = segment.rows.keys[local]
            places.starts[here], places.ends[here] = segment.rows.starts[local], segment.rows.ends[local]
        return places

    def keys_of(self, rows: Int64s) -> Int64s:
        """The document key of each row; 0, which is no key, where a row is -1."""
        keys = np.zeros(rows.shape, np.int64)
        for segment, here, local in self._by_segment(rows):
            keys[here] = segment.rows.keys[local]
        return keys

    def _by_segment(self, rows: Int64s) -> Iterator[tuple[Segment, Mask, Int64s]]:
        """Each segment with the mask of the rows that belong to it, and their numbers within it."""
        for first, last, segment in zip(self._first_rows[:-1], self._first_rows[1:], self.segments, strict=True):
            here = (rows >= first) & (rows < last)
            yield segment, here, rows[here] - first

    def rows_of(self, keys: Int64s) -> tuple[Int64s, Int64s]:
        """All rows of the documents with these keys, segment by segment, and for each row the position of its key."""
        rows, owners, places = [np.empty(0, np.int64)], [np.empty(0, np.int64)], np.arange(len(keys))
        for first_row, segment in zip(self._first_rows.tolist(), self.segments, strict=False):
            begins = np.searchsorted(segment.rows.keys, keys)
            counts = np.searchsorted(segment.rows.keys, keys, side="right") - begins
            steps = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
            rows.append(first_row + np.repeat(begins, counts) + steps)
            owners.append(np.repeat(places, counts))
        return np.concatenate(rows), np.concatenate(owners)

    @cached_property
    def _documents(self) -> StoredDocuments:
        with self._lock:
            return StoredDocuments([segment.documents for segment in self.segments], self._catalog.changed())

    def documents(self, keys: Sequence[int]) -> dict[int, Document]:
        """Documents by key."""
        return self._documents.take(keys)

    def key(self, doc_id: str) -> int | None:
        """The key of a document; None if there is none with this id."""
        with self._lock:
            known = self._catalog.find(doc_id)
            return known.key if known else None

    def document(self, doc_id: str) -> Document | None:
        """A document by id."""
        key = self.key(doc_id)
        return None if key is None else self.documents([key])[key]

    def page(self, after: int, count: int) -> list[tuple[int, Document]]:
        """Up to `count` documents by ascending key, starting above the key `after`."""
        with self._lock:
            keys = self._catalog.keys_above(after, count).tolist()
        return list(self.documents(keys).items())

    def passages(self, keys: Int64s | None = None) -> Iterator[tuple[int, Document, str]]:
        """The live rows of some documents (ascending keys) or all, in order: row, document, and the text that is encoded."""
        for first_row, segment, live in zip(self._first_rows.tolist(), self.segments, self.live, strict=False):
            wanted = np.ones(len(segment), np.bool_) if keys is None else segment.mask(keys)
            rows = first_row + np.flatnonzero(wanted if live is None else wanted & live)
            for start in range(0, len(rows), ROWS_AT_ONCE):
                yield from self.passages_at(rows[start : start + ROWS_AT_ONCE])

    def passages_at(self, rows: Int64s) -> Iterator[tuple[int, Document, str]]:
        """Rows with their documents and the texts that are encoded."""
        places = self.places(rows)
        documents = self.documents(np.unique(places.keys).tolist())
        columns = (column.tolist() for column in (rows, places.keys, places.starts, places.ends))
        for row, key, start, end in zip(*columns, strict=True):
            yield row, documents[key], passage_text(documents[key], start, end)

    def figures(self, lens: str) -> dict[str, Any]:
        """Statistics of a lens."""
        return self._lenses[lens].figures(self._parts(lens), self.shared.of(lens))

    def _parts(self, lens: str) -> list[Any]:
        return [segment.parts[lens] for segment in self.segments]

    def searcher(self, lens: str) -> Searcher:
        """The searcher of a lens over this commit."""
        if lens not in self._searchers:  # without the lock, which filters hold
            sampling = self._sampling
            with self._lock:
                if lens not in self._searchers:
                    searcher = self._lenses[lens].searcher(self._parts(lens), self.live, self.shared.of(lens))
                    searcher.draw_sample = partial(sampling.sample, lens)
                    self._searchers[lens] = searcher
        return self._searchers[lens]

    def statistics(self, queries: Mapping[str, Encoded], params: Mapping[str, Any]) -> Statistics:
        """What the scores of queries, encoded for each lens, depend on in this commit."""
        lenses = {name: self.searcher(name).statistics(encoded, params.get(name)) for name, encoded in queries.items()}
        return Statistics(self.live_rows, self._sampling.numbers, lenses)

    def given(self, statistics: Statistics) -> "Snapshot":
        """This commit as a part of a larger collection that has these statistics: its scores are those of the whole.

        What is opened is shared with this snapshot, which must stay open.
        """
        part = copy(self)
        part._whole_of = self  # the files close with the snapshot that has opened them
        part._searchers = {}
        limit = int(statistics.sample[-1]) if len(statistics.sample) else LARGEST
        for name, counted in statistics.lenses.items():
            searcher = self.searcher(name).given(statistics.rows, counted)
            searcher.draw_sample = partial(self._sampling.sample, name, limit)
            part._searchers[name] = searcher
        return part

    @property
    def _sampling(self) -> Sampling:
        """The random passages; searchers refer to it, and it must not refer to this snapshot, which closes when it is free."""
        with self._lock:
            if self._sampled is None:
                self._sampled = Sampling(self.segments, self.live)
            return self._sampled


def _open(root: Path, lenses: LensSet, previous: Snapshot | None) -> tuple[Catalog, list[Segment], SharedParts]:
    """The catalog at its last commit with the segments and shared parts of that commit; those already open are reused.

    A merge may remove files between reading the catalog and opening them; then a newer commit is opened instead.
    """
    segments = {segment.record.id: segment for segment in previous.segments} if previous else {}
    shared = {part.record.id: part for part in previous.shared.every} if previous else {}
    known = {folder_id: opened.record for folder_id, opened in (segments | shared).items()}
    for remaining in reversed(range(TRIES)):
        catalog = open_verified(root)
        try:
            records = read_records(root, catalog.folders(), known)
            opened = [segments.get(record.id) or Segment(root, record, lenses) for record in records.segments]
            parts = [shared.get(record.id) or SharedPart(root, record, lenses) for record in records.shared]
        except CollectionDamaged:
            commit = catalog.commit_number()
            catalog.close()
            if not remaining or not has_moved_on(root, commit):
                raise
        except BaseException:
            catalog.close()
            raise
        else:
            return catalog, opened, SharedParts(parts)
    raise AssertionError("the loop returns or raises")
