"""The one writer of a collection: documents in, a commit out.

Everything between the first change and `commit` is one SQLite transaction, so it happens whole or not at all. Documents wait in
a buffer until there are enough for an efficient pass of the encoders; then they become a segment on disk that nobody sees
before the commit names it. Memory is bounded by the buffer, whatever the number of documents.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from filelock import FileLock, Timeout

from trilens.errors import BadInput, CollectionLocked, CollectionReadOnly
from trilens.index.lens import Mask
from trilens.store.catalog import Catalog, SegmentRecord, clear_errors, text_hash
from trilens.store.lenses import Lenses
from trilens.store.merge import choose, choose_all, merge_segments
from trilens.store.segment import Rows, Segment, sweep, write_segment
from trilens.text.document import Document
from trilens.text.passages import split_passages

LOCK_NAME = "writer.lock"
BUFFER_PASSAGES = 4096
BUFFER_CHARACTERS = 32 << 20

DocumentsDone = Callable[[float], None]


def no_report(documents: float) -> None:
    """For callers that do not want to know."""


@dataclass(slots=True)
class Changes:
    """What a commit did. `truncated` counts passages longer than the model reads."""

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    deleted: int = 0
    truncated: int = 0

    def __add__(self, other: "Changes") -> "Changes":
        return Changes(*(getattr(self, item.name) + getattr(other, item.name) for item in fields(self)))


class Writer:
    """Holds the lock and an open transaction from its making to `commit` or `rollback`."""

    def __init__(self, root: Path, lenses: Lenses) -> None:
        self._root = root
        self._lenses = lenses
        self._lock = _lock(root)
        try:
            self._catalog = Catalog.open(root)
        except BaseException:
            self._lock.release()
            raise
        self._buffer: dict[int, Document] = {}
        self._spans: dict[int, list[tuple[int, int]]] = {}
        self._characters = 0
        self._passages = 0
        self.report: DocumentsDone = no_report
        self.changes = Changes()
        try:
            self._catalog.begin_write()
            sweep(root, self._named())
            self._config = self._catalog.config()
            self._segments = self._catalog.segments()
        except BaseException:
            self._release()
            raise

    def add(self, document: Document) -> None:
        """Add a document whose id is not there yet."""
        if self._catalog.find(document.doc_id):
            raise BadInput(f"document {document.doc_id!r} is in the collection already; use upsert to replace it")
        self._insert(document)
        self.changes.added += 1

    def upsert(self, document: Document) -> bool:
        """Add or replace a document; False if nothing had to change. A change of metadata alone needs no encoding."""
        known = self._catalog.find(document.doc_id)
        if known is None:
            self._insert(document)
            self.changes.added += 1
            return True
        if known.hash == text_hash(document):
            self.report(1)
            metadata = document.metadata_json()
            if known.metadata == metadata:
                self.changes.unchanged += 1
                return False
            self._catalog.set_metadata(known.key, metadata)
            if known.key in self._buffer:
                self._buffer[known.key] = document
        else:
            self._remove(known.key)
            self._insert(document)
        self.changes.replaced += 1
        return True

    def delete(self, doc_id: str) -> bool:
        """Delete a document; False if there is none with this id."""
        known = self._catalog.find(doc_id)
        if known is None:
            return False
        self._remove(known.key)
        self.changes.deleted += 1
        return True

    def commit(self) -> Changes:
        """Make everything so far durable and visible, merge segments where that pays, and give up the lock.

        Without a change there is no commit.
        """
        if not (self.changes.added or self.changes.replaced or self.changes.deleted):
            self.rollback()
            return self.changes
        try:
            with clear_errors(self._root):
                self._flush()
                while run := choose([segment.rows for segment in self._segments], self._live_rows()):
                    self._merge(run)
                self._finish()
        except BaseException:
            self.rollback()
            raise
        return self.changes

    def optimize(self) -> Changes:
        """Commit with all segments merged into one, without the rows of deleted documents."""
        try:
            with clear_errors(self._root):
                self._flush()
                live = self._live_rows()
                for run in choose_all(live):
                    if len(live[run]) > 1 or live[run] != [segment.rows for segment in self._segments[run]]:
                        self._merge(run)
                self._finish(vacuum=True)
        except BaseException:
            self.rollback()
            raise
        return self.changes

    def rollback(self) -> None:
        """Forget everything since the last commit and give up the lock."""
        try:
            self._catalog.rollback()
            sweep(self._root, self._named())
        finally:
            self._release()

    def _finish(self, vacuum: bool = False) -> None:
        self._catalog.commit()
        sweep(self._root, self._named())
        if vacuum:
            with suppress(CollectionReadOnly):  # no space to make space: all is committed, the next time will do
                self._catalog.vacuum()
        self._release()

    def _release(self) -> None:
        self._catalog.close()
        self._lock.release()

    def _named(self) -> set[str]:
        return {segment.id for segment in self._catalog.segments()}

    def _insert(self, document: Document) -> None:
        key = self._catalog.insert(document)
        config = self._config.passages
        self._buffer[key] = document
        self._spans[key] = split_passages(document.text, config.words, config.overlap)
        self._characters += len(document.text)
        self._passages += len(self._spans[key])
        if self._passages >= BUFFER_PASSAGES or self._characters >= BUFFER_CHARACTERS:
            with clear_errors(self._root):
                self._flush()

    def _remove(self, key: int) -> None:
        self._catalog.delete(key, in_segment=key not in self._buffer)
        self._buffer.pop(key, None)
        self._spans.pop(key, None)

    def _flush(self) -> None:
        """Turn the buffer into a segment of this transaction."""
        if self._buffer:
            spans = [(key, start, end) for key, cuts in self._spans.items() for start, end in cuts]
            texts = [passage_text(self._buffer[key], start, end) for key, start, end in spans]
            keys, starts, ends = zip(*spans, strict=True)
            rows = Rows(np.array(keys, np.int64), np.array(starts, np.int32), np.array(ends, np.int32))
            share = len(self._buffer) / len(texts)

            def fill(folder: Path) -> None:
                self.changes.truncated += self._lenses.build(texts, folder, lambda passages: self.report(passages * share))

            segment = write_segment(self._root, rows, fill)
            self._catalog.add_segment(segment)
            self._segments.append(segment)
        self._buffer.clear()
        self._spans.clear()
        self._characters = self._passages = 0

    def _merge(self, run: slice) -> None:
        """Replace neighbouring segments by one without their dead rows."""
        records = self._segments[run]
        segments = [Segment(self._root, record, self._lenses) for record in records]
        merged = merge_segments(self._root, segments, [self._live_mask(segment) for segment in segments], self._lenses)
        for record in records:
            self._catalog.remove_segment(record.id)
            self._catalog.forget_deleted(record.first_key, record.last_key)
        kept: list[SegmentRecord] = []
        if merged:
            self._catalog.add_segment(merged)
            kept.append(merged)
        self._segments[run] = kept

    def _live_mask(self, segment: Segment) -> Mask:
        return ~segment.mask(self._catalog.deleted(segment.record.first_key, segment.record.last_key))

    def _live_rows(self) -> list[int]:
        """Live rows of each segment."""
        counts = []
        for record in self._segments:
            deleted = self._catalog.deleted(record.first_key, record.last_key)
            alive = record.rows
            if len(deleted):
                keys = Rows.open(self._root / "segments" / record.id / "rows").keys
                alive -= int(np.isin(keys, deleted).sum())
            counts.append(alive)
        return counts


def passage_text(document: Document, start: int, end: int) -> str:
    """What the lenses see of a passage: every passage carries the document's title."""
    text = document.text[start:end]
    return f"{document.title}\n{text}" if document.title else text


def _lock(root: Path) -> FileLock:
    lock = FileLock(root / LOCK_NAME, timeout=0, thread_local=False)
    with clear_errors(root):
        try:
            lock.acquire()
        except Timeout as error:
            raise CollectionLocked(
                f"{root} is being written by another process; wait for it to finish and run it again"
            ) from error
    return lock
