"""Catalogs of the format versions 1 to 4, which held the titles and texts of all documents."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trilens.errors import BadInput, CollectionDamaged
from trilens.store.catalog_file import raw_connection
from trilens.store.config import CollectionConfig
from trilens.store.documents import text_hash
from trilens.store.failures import clear_errors
from trilens.store.schema import FILE_NAME, FileRecord, SegmentRecord, SharedRecord
from trilens.text.document import Document

COLUMNS = "key, doc_id, title, text, metadata, hash"


class OldCatalog:
    """A catalog without a write-ahead log, opened for an upgrade."""

    def __init__(self, root: Path, connection: sqlite3.Connection) -> None:
        self._root = root
        self._connection = connection
        self.facts: dict[str, str] = dict(connection.execute("SELECT name, value FROM facts"))

    @staticmethod
    @contextmanager
    def opened(root: Path) -> Iterator["OldCatalog"]:
        """The catalog of a collection; its write-ahead log is written back, which needs that no other process has it open."""
        with clear_errors(root):
            connection = raw_connection(root / FILE_NAME)
            try:
                connection.execute("PRAGMA journal_mode = DELETE")
                yield OldCatalog(root, connection)
            finally:
                connection.close()

    def config(self, weighting: bool = True) -> CollectionConfig:
        """The configuration of the collection, with or without the term weighting of its model."""
        try:
            stored = json.loads(self.facts["config"])
            if not weighting:
                stored.pop("weighing", None)
            return CollectionConfig.from_stored(json.dumps(stored))
        except (KeyError, BadInput, ValueError) as error:
            raise CollectionDamaged(f"{self._root / FILE_NAME} has a config that cannot be used ({error})") from error

    def count(self) -> int:
        """Number of documents."""
        return int(self._connection.execute("SELECT count(*) FROM documents").fetchone()[0])

    def documents(self, first_key: int = 0, last_key: int = (1 << 63) - 1) -> Iterator[tuple[int, Document]]:
        """The documents in a range of keys, in order."""
        rows = self._connection.execute(
            f"SELECT {COLUMNS} FROM documents WHERE key BETWEEN ? AND ? ORDER BY key", (first_key, last_key)
        )
        for key, doc_id, title, text, metadata, stored_hash in rows:
            try:
                document = Document(doc_id, text, title, json.loads(metadata))
            except BadInput as error:
                raise BadInput(
                    f"{error}; delete this document with the release that wrote {self._root}, then upgrade"
                ) from error
            if text_hash(document) != stored_hash:
                raise CollectionDamaged(
                    f"{self._root / FILE_NAME}: document {doc_id!r} has changed: its text is not the one that was indexed; "
                    "restore a backup or index it again"
                )
            yield key, document

    def segments(self) -> list[SegmentRecord]:
        """The segments in order; without the checksums of manifests, which these versions do not have."""
        rows = self._connection.execute("SELECT id, first_key, last_key, rows, documents FROM segments ORDER BY first_key")
        return [
            SegmentRecord(id=name, files=self._files(name), first_key=first, last_key=last, rows=count, documents=documents)
            for name, first, last, count, documents in rows.fetchall()
        ]

    def shared(self) -> list[SharedRecord]:
        """The shared parts of all lenses."""
        rows = self._connection.execute("SELECT id, lens, place FROM shared ORDER BY lens, place")
        return [SharedRecord(id=name, files=self._files(name), lens=lens, place=place) for name, lens, place in rows.fetchall()]

    def deleted(self) -> list[int]:
        """The keys that are deleted but still in a segment."""
        return [key for (key,) in self._connection.execute("SELECT key FROM deleted ORDER BY key")]

    def next_key(self) -> int:
        """The key of the next document that is added."""
        row = self._connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'documents'").fetchone()
        return int(row[0]) + 1 if row else 1

    def _files(self, folder: str) -> tuple[FileRecord, ...]:
        rows = self._connection.execute("SELECT path, bytes, checksum FROM files WHERE folder = ? ORDER BY path", (folder,))
        return tuple(FileRecord(*row) for row in rows)
