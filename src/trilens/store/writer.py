"""The writer of a collection, of which there is at most one at a time.

All changes up to `commit` are one SQLite transaction. Documents are buffered until there are enough for an efficient encoder
pass, then written as a segment that becomes visible with the commit. Memory is bounded by the buffer.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from trilens.encode.encoder import Encoded, Progress
from trilens.errors import BadInput, CollectionError
from trilens.kernels.array_types import Mask
from trilens.kernels.postings import MOST_ROWS
from trilens.store.batch import DocumentBatch, draw_sample
from trilens.store.catalog import Catalog
from trilens.store.changes import Changes
from trilens.store.commit_record import CommitRecord
from trilens.store.creation import remove_left_overs
from trilens.store.documents import DocumentsPart, StoredDocuments, text_hash
from trilens.store.encoded import given_passes
from trilens.store.failures import clear_errors
from trilens.store.folders import FOLDER, orphans, require_whole, sweep
from trilens.store.last_commit import read_last_commit, require_commit, write_last_commit
from trilens.store.lens_set import LensSet
from trilens.store.lock import lock
from trilens.store.merge import SMALLEST, divisions, full_merge, merge_segments, next_merge
from trilens.store.pace import MOST_PASSAGES
from trilens.store.passages import PassageSplitter
from trilens.store.progress import CommitProgress
from trilens.store.records import Records, read_records
from trilens.store.segment import DOCUMENTS, ROWS, PassageRows, Segment, write_segment
from trilens.store.shared import SharedPart, SharedParts, write_shared
from trilens.text.document import Document

BUFFER_PASSAGES = MOST_PASSAGES
BUFFER_CHARACTERS = 32 << 20
ROOM = 2  # times the rows of equal segments that a merge may have


class Writer:
    """Holds the write lock and an open transaction from construction to `commit`, `optimize` or `rollback`."""

    def __init__(self, root: Path, lenses: LensSet) -> None:
        self._root = root
        self._lenses = lenses
        self._lock = lock(root)
        try:
            self._catalog = Catalog.open(root)
        except BaseException:
            self._lock.release()
            raise
        self.progress = CommitProgress()
        self.changes = Changes()
        self._tuned = False
        self._closed = False
        self._committing = False
        try:
            with clear_errors(root):
                recorded = read_last_commit(root)
                # A damaged catalog must neither be committed to nor decide which folders are left-overs.
                require_commit(root, self._catalog.commit_number(), recorded)
                self._catalog.verify()
                self._sweep()
                self._catalog.begin_write()
                self._split = PassageSplitter(self._catalog.config().passages, lenses.model)
                self._segments = self._records().segments
        except BaseException:
            self._release()
            raise
        self._batch = DocumentBatch(self._split)

    @contextmanager
    def atomic(self) -> Iterator[None]:
        """Undo all changes of the block if it raises an error."""
        self._require_open()
        self._catalog.set_savepoint()
        self._batch.set_savepoint()
        before = (self._batch, list(self._segments), replace(self.changes))
        try:
            yield
            self._catalog.keep()
        except BaseException:
            try:
                self._catalog.undo()
            except CollectionError:  # SQLite has ended the transaction, as it does when the disk is full
                self.rollback()
            self._batch, self._segments, self.changes = before
            self._batch.undo()
            self.__dict__.pop("_shared", None)
            raise

    @property
    def buffered_passages(self) -> int:
        """Number of passages that await encoding."""
        return self._batch.passages

    def add(self, document: Document, key: int | None = None) -> None:
        """Add a document with an unused id, under a given key or the next."""
        self._require_unused(document)
        self._insert(document, key)
        self.changes.added += 1

    def add_encoded(self, documents: Sequence[Document], keys: Sequence[int | None], encoded: Mapping[str, Encoded]) -> None:
        """Add documents with unused ids whose passages are encoded already, for each lens, as a segment of their own."""
        self._flush()
        for document, key in zip(documents, keys, strict=True):
            self._require_unused(document)
            self._batch.put(self._catalog.insert(document, key), document)
            self.changes.added += 1
        if documents:
            with clear_errors(self._root):
                self._flush(encoded)

    def upsert(self, document: Document) -> bool:
        """Add or replace a document; False if it is unchanged. A change of metadata alone needs no encoding."""
        stored = self._catalog.find(document.doc_id)
        if stored is None:
            self._insert(document)
            self.changes.added += 1
            return True
        if stored.hash == text_hash(document):
            self.progress.report(1)
            metadata = document.metadata_json()
            if stored.metadata == metadata:
                self.changes.unchanged += 1
                return False
            self._set_metadata(stored.key, document)
        else:
            self._remove(stored.key)
            self._insert(document)
        self.changes.replaced += 1
        return True

    def delete(self, doc_id: str) -> bool:
        """Delete a document; False if there is none with this id."""
        stored = self._catalog.find(doc_id)
        if stored is None:
            return False
        self._remove(stored.key)
        self.changes.deleted += 1
        return True

    def set_tuned(self, name: str, record: Mapping[str, Any] | None) -> None:
        """Store the tuned fusion of a combination of lenses (see `fused_name`); None removes it."""
        records = self._catalog.tuned()
        if record is None:
            records.pop(name, None)
        else:
            records[name] = dict(record)
        self._catalog.set_tuned(records)
        self._tuned = True

    def commit(self) -> Changes:
        """Make all changes durable and visible, merge segments if due, and release the lock.

        Without changes, no commit is made.
        """
        self._require_open()
        if not (self._tuned or self.changes.added or self.changes.replaced or self.changes.deleted):
            self.rollback()
            return self.changes
        try:
            with clear_errors(self._root):
                self._flush()
                while run := self._next_merge():
                    self._merge(run)
                self._finish()
        except BaseException:
            self.rollback()
            raise
        self.progress.committed()
        return self.changes

    def optimize(self, retrain: bool = False, segments: int = 1) -> Changes:
        """Commit with all segments merged into one, or into several of equal size, without the rows of deleted documents.

        `retrain` encodes all documents again and rebuilds the shared parts, so that they fit the whole collection.
        """
        try:
            with clear_errors(self._root):
                if retrain:
                    self._reencode()
                self._flush()
                live = self._live_rows()
                for run in full_merge(live) if segments == 1 else []:
                    if len(live[run]) > 1 or live[run] != [segment.rows for segment in self._segments[run]]:
                        self._merge(run)
                if segments > 1 and live:
                    self._merge(slice(None), max(segments, -(-sum(live) // MOST_ROWS)))
                self._catalog.set_large_segments(segments)
                self._finish(vacuum=True)
        except BaseException:
            self.rollback()
            raise
        self.progress.committed()
        return self.changes

    def rollback(self) -> None:
        """Discard all changes since the last commit and release the lock. An error has done so already."""
        if self._closed:
            return
        try:
            # Closing the catalog discards the transaction as well, and the next writer removes what is left over.
            with suppress(OSError, CollectionError):
                self._catalog.rollback()
                if self._committing:
                    self._sweep()
                else:
                    sweep(self._root, set(self._catalog.folders()))
        finally:
            self._release()

    def _sweep(self) -> None:
        """Remove the left-overs of writers that failed or died, once no interrupted commit can need them."""
        remove_left_overs(self._root)
        known = set(self._catalog.folders())
        if any(orphans(self._root, known)):
            self._catalog.settle()
            sweep(self._root, known)

    def _finish(self, vacuum: bool = False) -> None:
        self.progress.stage("committing")
        if not self._segments:
            self._catalog.remove_folders()  # an empty collection keeps no shared parts: later documents may differ
        self._committing = True
        self._catalog.commit()
        # The commit is done: what fails from here on is made up for by the next one.
        with suppress(OSError, CollectionError):
            write_last_commit(self._root, CommitRecord.of(self._catalog, marks=False))
        with suppress(OSError, CollectionError):
            sweep(self._root, set(self._catalog.folders()))
        if vacuum:
            with suppress(CollectionError):
                self._catalog.vacuum()
        self._release()

    def _release(self) -> None:
        self._closed = True
        try:
            self._catalog.close()
        finally:
            self._lock.release()

    def _require_open(self) -> None:
        if self._closed:
            raise CollectionError(
                f"an error has discarded all changes of {self._root} since the last commit; roll back and make them again"
            )

    def _records(self) -> Records:
        return read_records(self._root, self._catalog.folders())

    @cached_property
    def _shared(self) -> SharedParts:
        """Opened at first use: deleting and retraining work without them, even if they are damaged."""
        return SharedParts(SharedPart(self._root, record, self._lenses) for record in self._records().shared)

    def _require_unused(self, document: Document) -> None:
        if self._catalog.find(document.doc_id):
            raise BadInput(f"document {document.doc_id!r} is in the collection already; use upsert to replace it")

    def _insert(self, document: Document, key: int | None = None) -> None:
        key = self._catalog.insert(document, key)
        with clear_errors(self._root):
            self._put(key, document)

    def _remove(self, key: int) -> None:
        buffered = key in self._batch
        self._catalog.delete(key, in_segment=not buffered)
        if buffered:
            self._batch.drop(key)

    def _set_metadata(self, key: int, document: Document) -> None:
        buffered = key in self._batch
        self._catalog.set_metadata(document, key, in_segment=not buffered)
        if buffered:
            self._batch.set_metadata(key, document)

    def _put(self, key: int, document: Document) -> None:
        """Buffer a document; flush when the buffer is full."""
        self._batch.put(key, document)
        if self._batch.passages >= BUFFER_PASSAGES or self._batch.characters >= BUFFER_CHARACTERS:
            self._flush()

    def _flush(self, encoded: Mapping[str, Encoded] | None = None) -> None:
        """Write the buffered documents as a segment, encoded here or by the caller."""
        if len(self._batch):
            texts = self._batch.texts()
            per_passage = len(self._batch) / len(texts)
            self.progress.began(len(self._batch))

            def fill(folder: Path) -> None:
                DocumentsPart.write(self._batch.documents, folder / DOCUMENTS)
                self._build(texts, folder, lambda passages: self.progress.encoded(passages * per_passage), encoded)

            segment = write_segment(self._root, self._batch.rows(), fill)
            self._catalog.add_folder(segment)
            self._segments.append(segment)
            self.progress.stage("reading")
        self._batch = DocumentBatch(self._split)

    def _build(self, texts: list[str], folder: Path, progress: Progress, given: Mapping[str, Encoded] | None) -> None:
        """Run each encoder once over the texts, unless they are encoded, and write the parts of all lenses."""
        truncated = 0
        self.progress.stage("encoding")
        if given is None:
            passes = self._lenses.encode_docs(self._lenses.names, texts, progress)
        else:
            passes = given_passes(given, self._lenses, len(texts))
        for names, encoded in passes:
            truncated = max(truncated, encoded.truncated)
            for name in names:
                self.progress.stage(f"indexing by {name}")
                if name in self._lenses.sharing:
                    self._share(name, encoded)
                self._lenses[name].build(encoded, folder / self._lenses.folder(name), self._shared.of(name))
            self.progress.stage("encoding")
        self.changes.truncated += truncated

    def _share(self, name: str, encoded: Encoded) -> None:
        """Let a lens extend its shared parts."""
        record = write_shared(self._root, self._lenses, name, encoded, self._shared.of(name))
        if record:
            self._catalog.add_folder(record)
            self._shared.every.append(SharedPart(self._root, record, self._lenses))

    def _reencode(self) -> None:
        """Encode all documents again, discarding segments and shared parts.

        Shared parts are built from a sample of all documents, because the first batch may not be representative.
        """
        folders = [require_whole(self._root, record, DOCUMENTS, read=True) for record in self._segments]
        stored = StoredDocuments([DocumentsPart.open(folder) for folder in folders], self._catalog.changed())
        buffered = self._batch.documents

        def document(key: int) -> Document:
            return buffered[key] if key in buffered else stored.take([key])[key]

        self._catalog.remove_folders()
        self._segments, self._shared, self._batch = [], SharedParts(), DocumentBatch(self._split)
        self.changes.truncated = 0
        keys = self._catalog.keys()
        if names := self._lenses.sharing:
            sample = draw_sample(keys, document, self._split, BUFFER_PASSAGES, BUFFER_CHARACTERS)
            for users, encoded in self._lenses.encode_docs(names, sample) if sample else ():
                for name in users:
                    self._share(name, encoded)
        for key in keys.tolist():
            self._put(key, document(key))

    def _merge(self, run: slice, parts: int = 1) -> None:
        """Replace adjacent segments by one, or several of equal size, without deleted rows."""
        self.progress.stage("merging segments")
        records = self._segments[run]
        segments = [Segment(self._root, record, self._lenses) for record in records]
        keep = [self._live_mask(segment) for segment in segments]
        changed = self._catalog.changed(records[0].first_key, records[-1].last_key)
        masks = [keep] if parts == 1 else divisions([segment.rows.keys for segment in segments], keep, parts)
        merged = [merge_segments(self._root, segments, part, self._lenses, self._shared, changed) for part in masks]
        for record in records:
            self._catalog.remove_folder(record.id)
            self._catalog.forget_marks(record.first_key, record.last_key)
        replacement = [record for record in merged if record]
        for record in replacement:
            self._catalog.add_folder(record)
        self._segments[run] = replacement

    def _live_mask(self, segment: Segment) -> Mask:
        return ~segment.mask(self._catalog.marked("deleted", segment.record.first_key, segment.record.last_key))

    def _next_merge(self) -> slice | None:
        changed = self._catalog.marked("changed")
        ranges = ((record, np.searchsorted(changed, [record.first_key, record.last_key + 1])) for record in self._segments)
        outdated = [2 * (end - start) > record.documents for record, (start, end) in ranges]
        live, count = self._live_rows(), self._catalog.large_segments()
        most = MOST_ROWS if count == 1 else min(MOST_ROWS, max(SMALLEST, ROOM * sum(live) // count))
        return next_merge([record.rows for record in self._segments], live, outdated, most)

    def _live_rows(self) -> list[int]:
        """Number of live rows of each segment."""
        counts = []
        for record in self._segments:
            deleted = self._catalog.marked("deleted", record.first_key, record.last_key)
            live = record.rows
            if len(deleted):
                keys = PassageRows.open(self._root / FOLDER / record.id / ROWS).keys
                live -= int(np.isin(keys, deleted).sum())
            counts.append(live)
        return counts
