"""The one writer of a collection: documents in, a commit out.

Everything between the first change and `commit` is one SQLite transaction, so it happens whole or not at all. Documents wait in
a buffer until there are enough for an efficient pass of the encoders; then they become a segment on disk that nobody sees
before the commit names it. Memory is bounded by the buffer, whatever the number of documents.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from trilens.encode.encoder import Encoded, Progress
from trilens.errors import BadInput, CollectionLocked, CollectionReadOnly
from trilens.index.lens import Mask
from trilens.store.batch import Batch, draw_sample
from trilens.store.catalog import Catalog, text_hash
from trilens.store.failures import clear_errors
from trilens.store.folders import FOLDER, sweep
from trilens.store.lenses import Lenses
from trilens.store.merge import choose, choose_all, merge_segments
from trilens.store.schema import SegmentRecord
from trilens.store.segment import Rows, Segment, write_segment
from trilens.store.shared import SharedPart, SharedParts, write_shared
from trilens.text.document import Document

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
        self.report: DocumentsDone = no_report
        self.changes = Changes()
        self._tuned = False
        try:
            self._catalog.begin_write()
            sweep(root, self._catalog.folders())
            self._passages = self._catalog.config().passages
            self._segments = self._catalog.segments()
        except BaseException:
            self._release()
            raise
        self._batch = Batch(self._passages)

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

    def set_tuned(self, name: str, record: Mapping[str, Any] | None) -> None:
        """Keep how the lenses of this name are fused (see `tuned_name`); None forgets it."""
        records = self._catalog.tuned()
        if record is None:
            records.pop(name, None)
        else:
            records[name] = dict(record)
        self._catalog.set_tuned(records)
        self._tuned = True

    def commit(self) -> Changes:
        """Make everything so far durable and visible, merge segments where that pays, and give up the lock.

        Without a change there is no commit.
        """
        if not (self._tuned or self.changes.added or self.changes.replaced or self.changes.deleted):
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

    def optimize(self, retrain: bool = False) -> Changes:
        """Commit with all segments merged into one, without the rows of deleted documents.

        `retrain` makes segments and shared parts anew from the texts, so that what is shared fits all documents.
        """
        try:
            with clear_errors(self._root):
                if retrain:
                    self._encode_again()
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
            sweep(self._root, self._catalog.folders())
        finally:
            self._release()

    def _finish(self, vacuum: bool = False) -> None:
        if not self._segments:
            self._catalog.remove_folders()  # what no row relies on is not kept for documents that may be of another kind
        self._catalog.commit()
        sweep(self._root, self._catalog.folders())
        if vacuum:
            with suppress(CollectionReadOnly):  # no space to make space: all is committed, the next time will do
                self._catalog.vacuum()
        self._release()

    def _release(self) -> None:
        self._catalog.close()
        self._lock.release()

    @cached_property
    def _shared(self) -> SharedParts:
        """Opened when first needed: documents can be deleted, and everything encoded again, without them."""
        return SharedParts(SharedPart(self._root, record, self._lenses) for record in self._catalog.shared())

    def _insert(self, document: Document) -> None:
        key = self._catalog.insert(document)
        with clear_errors(self._root):
            self._put(key, document)

    def _remove(self, key: int) -> None:
        waiting = key in self._batch
        self._catalog.delete(key, in_segment=not waiting)
        if waiting:
            self._batch.drop(key)

    def _put(self, key: int, document: Document) -> None:
        """Let a document wait until there are enough for a segment."""
        self._batch.put(key, document)
        if self._batch.passages >= BUFFER_PASSAGES or self._batch.characters >= BUFFER_CHARACTERS:
            self._flush()

    def _flush(self) -> None:
        """Turn the documents that wait into a segment of this transaction."""
        if len(self._batch):
            texts = self._batch.texts()
            per_passage = len(self._batch) / len(texts)

            def fill(folder: Path) -> None:
                self._build(texts, folder, lambda passages: self.report(passages * per_passage))

            segment = write_segment(self._root, self._batch.rows(), fill)
            self._catalog.add_segment(segment)
            self._segments.append(segment)
        self._batch = Batch(self._passages)

    def _build(self, texts: list[str], folder: Path, progress: Progress) -> None:
        """Encode the texts with each encoder once and write the part of every lens."""
        truncated = 0
        for names, encoded in self._lenses.encode_docs(self._lenses.names, texts, progress):
            truncated = max(truncated, encoded.truncated)
            for name in names:
                if name in self._lenses.sharing:
                    self._share(name, encoded)
                self._lenses[name].build(encoded, folder / name, self._shared.of(name))
        self.changes.truncated += truncated

    def _share(self, name: str, encoded: Encoded) -> None:
        """Let a lens add to what its segments share, in this transaction."""
        record = write_shared(self._root, self._lenses[name], encoded, self._shared.of(name))
        if record:
            self._catalog.add_shared(record)
            self._shared.every.append(SharedPart(self._root, record, self._lenses))

    def _encode_again(self) -> None:
        """Put every document through the lenses as if there were no segments and nothing shared yet.

        The first batch may be about one thing only, so what is shared is made from a sample of all documents before it.
        """
        self._catalog.remove_folders()
        self._segments, self._shared, self._batch = [], SharedParts(), Batch(self._passages)
        self.changes.truncated = 0
        if names := self._lenses.sharing:
            sample = draw_sample(self._catalog, self._passages, BUFFER_PASSAGES, BUFFER_CHARACTERS)
            for users, encoded in self._lenses.encode_docs(names, sample) if sample else ():
                for name in users:
                    self._share(name, encoded)
        for key, _, document in self._catalog.every():
            self._put(key, document)

    def _merge(self, run: slice) -> None:
        """Replace neighbouring segments by one without their dead rows."""
        records = self._segments[run]
        segments = [Segment(self._root, record, self._lenses) for record in records]
        keep = [self._live_mask(segment) for segment in segments]
        merged = merge_segments(self._root, segments, keep, self._lenses, self._shared)
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
                keys = Rows.open(self._root / FOLDER / record.id / "rows").keys
                alive -= int(np.isin(keys, deleted).sum())
            counts.append(alive)
        return counts


def _lock(root: Path) -> FileLock:
    lock = FileLock(root / LOCK_NAME, timeout=0, thread_local=False)
    with clear_errors(root):
        try:
            lock.acquire()
        except Timeout as error:
            raise CollectionLocked(
                f"{root} is being written by another process, or through another Collection of this one; "
                "wait until that has committed and run it again"
            ) from error
    return lock
