"""The catalog: a SQLite file with all documents and the records of segments and shared parts.

A `key` identifies one version of a document and is never reused. The rows of a segment are in ascending order of keys. The key
of a deleted or replaced document stays in `deleted` until a merge drops its rows.
"""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from trilens.errors import BadInput, CollectionDamaged, CollectionReadOnly, UnknownFormat
from trilens.kernels.array_types import Int64s
from trilens.store.config import CollectionConfig
from trilens.store.failures import clear_errors
from trilens.store.schema import (
    APPLICATION_ID,
    FORMAT_VERSION,
    SCHEMA,
    FileRecord,
    FolderRecord,
    SegmentRecord,
    SharedRecord,
    StoredVersion,
)
from trilens.store.schema import FILE_NAME as FILE_NAME
from trilens.text.document import Document

KEYS_PER_STATEMENT = 500

_FileState = tuple[int, int]  # modification time and size


def text_hash(document: Document) -> bytes:
    """Hash of title and text, the indexed content of a document."""
    digest = blake2b(digest_size=16)
    title = document.title.encode()
    digest.update(len(title).to_bytes(8, "little") + title)  # separates title and text unambiguously
    digest.update(document.text.encode())
    return digest.digest()


class Catalog:
    """A connection to the catalog. Reads after `begin` see one commit; writes require `begin_write` and end with `commit`."""

    def __init__(self, root: Path, connection: sqlite3.Connection, state: _FileState | None = None) -> None:
        """`state` is the expected state of the file if the connection treats it as immutable."""
        self._root = root
        self._connection = connection
        self._state = state

    @staticmethod
    def create(root: Path, config: CollectionConfig) -> None:
        """Create the file atomically."""
        unfinished = root / f"{FILE_NAME}.new"
        with clear_errors(root):
            unfinished.unlink(missing_ok=True)
            connection = sqlite3.connect(unfinished, isolation_level=None)
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
                connection.executescript(SCHEMA)
                facts = [("config", config.to_stored()), ("commit", "0")]
                connection.executemany("INSERT INTO facts VALUES (?, ?)", facts)
            finally:
                connection.close()
            unfinished.rename(root / FILE_NAME)

    @staticmethod
    def open(root: Path) -> "Catalog":
        """Open an existing catalog after checking its application id and format version."""
        path = root / FILE_NAME
        with clear_errors(root):
            connection, state = _connect(path)
            try:
                (application,) = connection.execute("PRAGMA application_id").fetchone()
                (version,) = connection.execute("PRAGMA user_version").fetchone()
            except sqlite3.Error:
                connection.close()
                raise
        if application == APPLICATION_ID and version == FORMAT_VERSION:
            return Catalog(root, connection, state)
        connection.close()
        if application != APPLICATION_ID:
            raise CollectionDamaged(f"{path} is not a trilens catalog; expected the folder of a trilens collection")
        raise UnknownFormat(
            f"{path} has format version {version}; this trilens reads version {FORMAT_VERSION}: "
            "use the version of trilens that wrote it, or index again"
        )

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def begin(self) -> None:
        """Start a read transaction, which fixes the commit that reads see."""
        self._run("BEGIN")
        self.commit_number()

    def begin_write(self) -> None:
        """Start a write transaction, invisible to others until `commit`."""
        self._run("PRAGMA synchronous = FULL")
        self._run("PRAGMA foreign_keys = ON")
        self._run("BEGIN IMMEDIATE")

    def commit(self) -> int:
        """Commit the transaction and return the number of the commit."""
        number = self.commit_number() + 1
        self._run("UPDATE facts SET value = ? WHERE name = 'commit'", str(number))
        self._run("COMMIT")
        return number

    def rollback(self) -> None:
        """Discard the transaction, if there is one."""
        if self._connection.in_transaction:
            self._run("ROLLBACK")

    def vacuum(self) -> None:
        """Release the disk space of removed documents."""
        self._run("VACUUM")

    def commit_number(self) -> int:
        """The number of the last commit."""
        return int(self._fact("commit"))

    def config(self) -> CollectionConfig:
        """The configuration of the collection."""
        try:
            return CollectionConfig.from_stored(self._fact("config"))
        except (BadInput, TypeError, ValueError) as error:
            raise CollectionDamaged(f"{self._root / FILE_NAME} has a config that cannot be used ({error})") from error

    def tuned(self) -> dict[str, Any]:
        """The tuned fusions by combination of lenses; empty if none was tuned."""
        row = self._run("SELECT value FROM facts WHERE name = 'tuned'").fetchone()
        try:
            records = json.loads(row[0]) if row else {}
        except ValueError as error:
            raise CollectionDamaged(f"{self._root / FILE_NAME} has tuned weights that are not JSON ({error})") from error
        if not isinstance(records, dict):
            raise CollectionDamaged(f"{self._root / FILE_NAME} has tuned weights that are not a JSON object; tune again")
        return records

    def set_tuned(self, records: Mapping[str, Any]) -> None:
        """Replace the tuned fusions."""
        self._run("INSERT OR REPLACE INTO facts VALUES ('tuned', ?)", json.dumps(records, ensure_ascii=False))

    def count(self) -> int:
        """Number of documents."""
        return int(self._run("SELECT count(*) FROM documents").fetchone()[0])

    def find(self, doc_id: str) -> StoredVersion | None:
        """The stored version of a document; None if there is none."""
        row = self._run("SELECT key, hash, metadata FROM documents WHERE doc_id = ?", doc_id).fetchone()
        return StoredVersion(*row) if row else None

    def insert(self, document: Document) -> int:
        """Add a document and return its key."""
        values = (document.doc_id, document.title, document.text, document.metadata_json(), text_hash(document))
        statement = "INSERT INTO documents (doc_id, title, text, metadata, hash) VALUES (?, ?, ?, ?, ?)"
        return int(self._run(statement, *values).lastrowid or 0)

    def set_metadata(self, key: int, metadata: str) -> None:
        """Replace the metadata of a document."""
        self._run("UPDATE documents SET metadata = ? WHERE key = ?", metadata, key)

    def delete(self, key: int, *, in_segment: bool) -> None:
        """Remove a document; if a segment holds its rows, mark them as deleted."""
        self._run("DELETE FROM documents WHERE key = ?", key)
        if in_segment:
            self._run("INSERT INTO deleted VALUES (?)", key)

    def deleted(self, first_key: int, last_key: int) -> Int64s:
        """Deleted keys in a range, ascending."""
        rows = self._run("SELECT key FROM deleted WHERE key BETWEEN ? AND ? ORDER BY key", first_key, last_key)
        return _keys(rows)

    def forget_deleted(self, first_key: int, last_key: int) -> None:
        """Drop the deletion marks in a range, after a merge has dropped the rows."""
        self._run("DELETE FROM deleted WHERE key BETWEEN ? AND ?", first_key, last_key)

    def documents(self, keys: Sequence[int]) -> dict[int, Document]:
        """Documents by key."""
        documents = {}
        for start in range(0, len(keys), KEYS_PER_STATEMENT):
            chunk = keys[start : start + KEYS_PER_STATEMENT]
            marks = ",".join("?" * len(chunk))
            rows = self._run(f"SELECT key, doc_id, text, title, metadata FROM documents WHERE key IN ({marks})", *chunk)
            with clear_errors(self._root):
                for key, doc_id, text, title, metadata in rows:
                    documents[key] = Document(doc_id, text, title, json.loads(metadata))
        return documents

    def keys(self) -> Int64s:
        """Keys of all documents, ascending."""
        return _keys(self._run("SELECT key FROM documents ORDER BY key"))

    def keys_above(self, key: int, count: int) -> Int64s:
        """The first `count` keys above `key`, ascending."""
        return _keys(self._run("SELECT key FROM documents WHERE key > ? ORDER BY key LIMIT ?", key, count))

    def all_documents(self) -> Iterator[tuple[int, bytes, Document]]:
        """Key, hash and content of all documents, by ascending key."""
        with clear_errors(self._root):
            cursor = self._connection.execute("SELECT key, hash, doc_id, text, title, metadata FROM documents ORDER BY key")
            for key, digest, doc_id, text, title, metadata in cursor:
                yield key, digest, Document(doc_id, text, title, json.loads(metadata))

    def keys_where(self, condition: str, values: Iterable[str | int | float]) -> Int64s:
        """Keys of the documents that satisfy a SQL condition, ascending."""
        return _keys(self._run(f"SELECT key FROM documents WHERE {condition} ORDER BY key", *values))

    def segments(self) -> list[SegmentRecord]:
        """The segments, by ascending keys."""
        rows = self._run("SELECT id, first_key, last_key, rows, documents FROM segments ORDER BY first_key")
        return [SegmentRecord(row[0], self._files(row[0]), *row[1:]) for row in rows]

    def shared(self) -> list[SharedRecord]:
        """The shared parts of each lens, oldest first."""
        rows = self._run("SELECT id, lens, place FROM shared ORDER BY lens, place")
        records = [SharedRecord(row[0], self._files(row[0]), *row[1:]) for row in rows]
        for number, record in enumerate(records):
            previous = records[number - 1] if number else None
            if record.place != (previous.place + 1 if previous and previous.lens == record.lens else 0):
                raise CollectionDamaged(
                    f"{self._root / FILE_NAME} has lost a shared part of {record.lens}; restore a copy or index again"
                )
        return records

    def folders(self) -> set[str]:
        """Ids of all folders of the collection."""
        return {row[0] for row in self._run("SELECT id FROM folders")}

    def add_segment(self, segment: SegmentRecord) -> None:
        """Record a segment."""
        self._add_folder(segment)
        values = (segment.id, segment.first_key, segment.last_key, segment.rows, segment.documents)
        self._run("INSERT INTO segments VALUES (?, ?, ?, ?, ?)", *values)

    def remove_segment(self, segment_id: str) -> None:
        """Remove the record of a segment."""
        self._run("DELETE FROM folders WHERE id = ?", segment_id)

    def add_shared(self, shared: SharedRecord) -> None:
        """Record a shared part."""
        self._add_folder(shared)
        self._run("INSERT INTO shared VALUES (?, ?, ?)", shared.id, shared.lens, shared.place)

    def remove_folders(self) -> None:
        """Remove the records of all segments and shared parts; the documents stay."""
        self._run("DELETE FROM folders")
        self._run("DELETE FROM deleted")

    def problems(self) -> list[str]:
        """Problems that the integrity checks of SQLite find."""
        try:
            problems = [row[0] for row in self._connection.execute("PRAGMA integrity_check(10)")]
            problems = [] if problems == ["ok"] else problems
            dangling = self._connection.execute('SELECT DISTINCT "table", parent FROM pragma_foreign_key_check').fetchall()
            problems += [f"a row of {table} refers to a missing row of {parent}" for table, parent in dangling]
        except sqlite3.Error as error:
            problems = [str(error)]
        return [f"{self._root / FILE_NAME}: {problem}" for problem in problems]

    def _fact(self, name: str) -> str:
        row = self._run("SELECT value FROM facts WHERE name = ?", name).fetchone()
        if not row:
            raise CollectionDamaged(f"{self._root / FILE_NAME} has no {name}; restore a copy or index again")
        return str(row[0])

    def _files(self, folder: str) -> tuple[FileRecord, ...]:
        rows = self._run("SELECT path, bytes, checksum FROM files WHERE folder = ? ORDER BY path", folder)
        return tuple(FileRecord(*row) for row in rows)

    def _add_folder(self, folder: FolderRecord) -> None:
        self._run("INSERT INTO folders VALUES (?)", folder.id)
        for file in folder.files:
            self._run("INSERT INTO files VALUES (?, ?, ?, ?)", folder.id, file.path, file.bytes, file.checksum)

    def _run(self, statement: str, *values: str | int | float | bytes) -> sqlite3.Cursor:
        with clear_errors(self._root):
            if self._state and self._state != _file_state(self._root / FILE_NAME):
                raise CollectionReadOnly(
                    f"{self._root} was changed by another process while it was open read-only; open it again"
                )
            return self._connection.execute(statement, values)


def has_moved_on(root: Path, commit: int) -> bool:
    """Whether the collection has a newer commit."""
    catalog = Catalog.open(root)
    try:
        return catalog.commit_number() != commit
    finally:
        catalog.close()


def _connect(path: Path) -> tuple[sqlite3.Connection, _FileState | None]:
    """Connect; without write permission and without a writer, open the file as immutable, which needs no lock files.

    An immutable connection would mix old and new pages if the file changed, so the state of the file is returned with it.
    """
    has_wal = path.with_name(f"{path.name}-wal").exists()
    mode = "mode=rw" if _can_write(path) else "mode=ro" if has_wal else "mode=ro&immutable=1"
    state = _file_state(path) if mode.endswith("immutable=1") and path.exists() else None
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{mode}", uri=True, isolation_level=None, check_same_thread=False, timeout=30
    )
    return connection, state


def _file_state(path: Path) -> _FileState:
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_size


def _can_write(path: Path) -> bool:
    """Checks permissions without opening the file: closing it would drop the POSIX locks of this process's connections."""
    has_wal = path.with_name(f"{path.name}-wal").exists()
    return os.access(path, os.W_OK) and (has_wal or os.access(path.parent, os.W_OK))


def _keys(rows: Iterable[tuple[int]]) -> Int64s:
    return np.fromiter((row[0] for row in rows), np.int64)
