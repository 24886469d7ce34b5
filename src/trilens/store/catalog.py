"""The catalog: the SQLite file that knows every document, and which segment files belong to the collection.

A document's `key` is our number for one version of it: given once, never again. Segments name documents by key, in ascending
order. A document that was deleted or replaced leaves its key in `deleted` until a merge drops its rows.
"""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trilens.errors import BadInput, CollectionDamaged, CollectionReadOnly, UnknownFormat
from trilens.store.config import CollectionConfig
from trilens.store.failures import clear_errors
from trilens.store.schema import (
    APPLICATION_ID,
    FORMAT_VERSION,
    SCHEMA,
    FileRecord,
    FolderRecord,
    Known,
    SegmentRecord,
    SharedRecord,
)
from trilens.store.schema import FILE_NAME as FILE_NAME
from trilens.text.document import Document

KEYS_PER_STATEMENT = 500

_State = tuple[int, int]  # of a file: when it was last changed, and how large it is


def text_hash(document: Document) -> bytes:
    """Changes when what the lenses see changes: title and text."""
    digest = blake2b(digest_size=16)
    title = document.title.encode()
    digest.update(len(title).to_bytes(8, "little") + title)  # where the title ends must count
    digest.update(document.text.encode())
    return digest.digest()


class Catalog:
    """A connection to the catalog. Reads after `begin` see one commit; writes happen between `begin_write` and `commit`."""

    def __init__(self, root: Path, connection: sqlite3.Connection, state: _State | None = None) -> None:
        """`state` is that of the file where the connection trusts that nobody changes it."""
        self._root = root
        self._connection = connection
        self._state = state

    @staticmethod
    def create(root: Path, config: CollectionConfig) -> None:
        """Make the file. It appears whole or not at all."""
        unfinished = root / f"{FILE_NAME}.new"
        with clear_errors(root):
            unfinished.unlink(missing_ok=True)
            connection = sqlite3.connect(unfinished, isolation_level=None)
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
                connection.executescript(SCHEMA)
                facts = [("config", config.model_dump_json()), ("commit", "0")]
                connection.executemany("INSERT INTO facts VALUES (?, ?)", facts)
            finally:
                connection.close()
            unfinished.rename(root / FILE_NAME)

    @staticmethod
    def open(root: Path) -> "Catalog":
        """Open an existing catalog, after checking that it is ours and of a format that we know."""
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
        """Let go of the file."""
        self._connection.close()

    def begin(self) -> None:
        """Fix the commit that reads see."""
        self._run("BEGIN")
        self.commit_number()

    def begin_write(self) -> None:
        """Start a change; nobody else sees it before `commit`."""
        self._run("PRAGMA synchronous = FULL")
        self._run("PRAGMA foreign_keys = ON")
        self._run("BEGIN IMMEDIATE")

    def commit(self) -> int:
        """Make the change durable and visible as the next commit, whose number is returned."""
        number = self.commit_number() + 1
        self._run("UPDATE facts SET value = ? WHERE name = 'commit'", str(number))
        self._run("COMMIT")
        return number

    def rollback(self) -> None:
        """Forget the change."""
        if self._connection.in_transaction:
            self._run("ROLLBACK")

    def vacuum(self) -> None:
        """Give the space of removed documents back to the disk."""
        self._run("VACUUM")

    def commit_number(self) -> int:
        """How many commits this collection has seen."""
        return int(self._fact("commit"))

    def config(self) -> CollectionConfig:
        """As chosen at creation."""
        try:
            return CollectionConfig.of(**json.loads(self._fact("config")))
        except (BadInput, TypeError, ValueError) as error:
            raise CollectionDamaged(f"{self._root / FILE_NAME} has a config that cannot be used ({error})") from error

    def set_config(self, config: CollectionConfig) -> None:
        """Part of the running change."""
        self._run("UPDATE facts SET value = ? WHERE name = 'config'", config.model_dump_json())

    def tuned(self) -> dict[str, Any]:
        """How lenses are fused, by their names; nothing unless someone has tuned that."""
        found = self._run("SELECT value FROM facts WHERE name = 'tuned'").fetchone()
        try:
            records = json.loads(found[0]) if found else {}
        except ValueError as error:
            raise CollectionDamaged(f"{self._root / FILE_NAME} has tuned weights that are not JSON ({error})") from error
        if not isinstance(records, dict):
            raise CollectionDamaged(f"{self._root / FILE_NAME} has tuned weights that are no object; tune again")
        return records

    def set_tuned(self, records: Mapping[str, Any]) -> None:
        """Part of the running change."""
        self._run("INSERT OR REPLACE INTO facts VALUES ('tuned', ?)", json.dumps(records, ensure_ascii=False))

    def count(self) -> int:
        """Documents in the collection."""
        return int(self._run("SELECT count(*) FROM documents").fetchone()[0])

    def find(self, doc_id: str) -> Known | None:
        """The present version of a document."""
        found = self._run("SELECT key, hash, metadata FROM documents WHERE doc_id = ?", doc_id).fetchone()
        return Known(*found) if found else None

    def insert(self, document: Document) -> int:
        """Add a document and return its key."""
        values = (document.doc_id, document.title, document.text, document.metadata_json(), text_hash(document))
        statement = "INSERT INTO documents (doc_id, title, text, metadata, hash) VALUES (?, ?, ?, ?, ?)"
        return int(self._run(statement, *values).lastrowid or 0)

    def set_metadata(self, key: int, metadata: str) -> None:
        """Replace the metadata of a document whose text stays."""
        self._run("UPDATE documents SET metadata = ? WHERE key = ?", metadata, key)

    def delete(self, key: int, *, in_segment: bool) -> None:
        """Remove a document; if a segment holds its rows, remember that they no longer count."""
        self._run("DELETE FROM documents WHERE key = ?", key)
        if in_segment:
            self._run("INSERT INTO deleted VALUES (?)", key)

    def deleted(self, first_key: int, last_key: int) -> NDArray[np.int64]:
        """Keys in this range whose rows no longer count, ascending."""
        rows = self._run("SELECT key FROM deleted WHERE key BETWEEN ? AND ? ORDER BY key", first_key, last_key)
        return _keys(rows)

    def forget_deleted(self, first_key: int, last_key: int) -> None:
        """A merge has dropped the rows."""
        self._run("DELETE FROM deleted WHERE key BETWEEN ? AND ?", first_key, last_key)

    def documents(self, keys: Sequence[int]) -> dict[int, Document]:
        """Documents by key."""
        found = {}
        for start in range(0, len(keys), KEYS_PER_STATEMENT):
            some = keys[start : start + KEYS_PER_STATEMENT]
            marks = ",".join("?" * len(some))
            rows = self._run(f"SELECT key, doc_id, text, title, metadata FROM documents WHERE key IN ({marks})", *some)
            with clear_errors(self._root):
                for key, doc_id, text, title, metadata in rows:
                    found[key] = Document(doc_id, text, title, json.loads(metadata))
        return found

    def keys(self) -> NDArray[np.int64]:
        """Of all documents, ascending."""
        return _keys(self._run("SELECT key FROM documents ORDER BY key"))

    def keys_above(self, key: int, count: int) -> NDArray[np.int64]:
        """The first keys above one, ascending."""
        return _keys(self._run("SELECT key FROM documents WHERE key > ? ORDER BY key LIMIT ?", key, count))

    def every(self) -> Iterator[tuple[int, bytes, Document]]:
        """Key, hash and content of every document, in the order of keys."""
        with clear_errors(self._root):
            cursor = self._connection.execute("SELECT key, hash, doc_id, text, title, metadata FROM documents ORDER BY key")
            for key, digest, doc_id, text, title, metadata in cursor:
                yield key, digest, Document(doc_id, text, title, json.loads(metadata))

    def keys_where(self, condition: str, values: Iterable[str | int | float]) -> NDArray[np.int64]:
        """Keys of the documents for which an SQL condition holds, ascending."""
        return _keys(self._run(f"SELECT key FROM documents WHERE {condition} ORDER BY key", *values))

    def segments(self) -> list[SegmentRecord]:
        """In the order of their keys."""
        rows = self._run("SELECT id, first_key, last_key, rows, documents FROM segments ORDER BY first_key")
        return [SegmentRecord(row[0], self._files(row[0]), *row[1:]) for row in rows]

    def shared(self) -> list[SharedRecord]:
        """The shared parts of each lens, oldest first."""
        rows = self._run("SELECT id, lens, place FROM shared ORDER BY lens, place")
        records = [SharedRecord(row[0], self._files(row[0]), *row[1:]) for row in rows]
        for number, record in enumerate(records):
            before = records[number - 1] if number else None
            if record.place != (before.place + 1 if before and before.lens == record.lens else 0):
                raise CollectionDamaged(
                    f"{self._root / FILE_NAME} has lost a shared part of {record.lens}; restore a copy or index again"
                )
        return records

    def folders(self) -> set[str]:
        """The names of all folders that belong to the collection."""
        return {row[0] for row in self._run("SELECT id FROM folders")}

    def add_segment(self, segment: SegmentRecord) -> None:
        """Part of the running change."""
        self._add_folder(segment)
        values = (segment.id, segment.first_key, segment.last_key, segment.rows, segment.documents)
        self._run("INSERT INTO segments VALUES (?, ?, ?, ?, ?)", *values)

    def remove_segment(self, segment_id: str) -> None:
        """Part of the running change."""
        self._run("DELETE FROM folders WHERE id = ?", segment_id)

    def add_shared(self, shared: SharedRecord) -> None:
        """Part of the running change."""
        self._add_folder(shared)
        self._run("INSERT INTO shared VALUES (?, ?, ?)", shared.id, shared.lens, shared.place)

    def remove_folders(self) -> None:
        """Part of the running change: what is left are the documents, in no segment."""
        self._run("DELETE FROM folders")
        self._run("DELETE FROM deleted")

    def problems(self) -> list[str]:
        """What SQLite itself finds wrong with the file."""
        try:
            found = [row[0] for row in self._connection.execute("PRAGMA integrity_check(10)")]
            found = [] if found == ["ok"] else found
            lost = self._connection.execute('SELECT DISTINCT "table", parent FROM pragma_foreign_key_check').fetchall()
            found += [f"a row of {table} names one of {parent} that is not there" for table, parent in lost]
        except sqlite3.Error as error:
            found = [str(error)]
        return [f"{self._root / FILE_NAME}: {problem}" for problem in found]

    def _fact(self, name: str) -> str:
        found = self._run("SELECT value FROM facts WHERE name = ?", name).fetchone()
        if not found:
            raise CollectionDamaged(f"{self._root / FILE_NAME} has no {name}; restore a copy or index again")
        return str(found[0])

    def _files(self, folder: str) -> tuple[FileRecord, ...]:
        rows = self._run("SELECT path, bytes, checksum FROM files WHERE folder = ? ORDER BY path", folder)
        return tuple(FileRecord(*row) for row in rows)

    def _add_folder(self, folder: FolderRecord) -> None:
        self._run("INSERT INTO folders VALUES (?)", folder.id)
        for file in folder.files:
            self._run("INSERT INTO files VALUES (?, ?, ?, ?)", folder.id, file.path, file.bytes, file.checksum)

    def _run(self, statement: str, *values: str | int | float | bytes) -> sqlite3.Cursor:
        with clear_errors(self._root):
            if self._state and self._state != _state(self._root / FILE_NAME):
                raise CollectionReadOnly(
                    f"{self._root} was changed by another process while this one, which may not write there, was reading it; "
                    "open it again"
                )
            return self._connection.execute(statement, values)


def has_moved_on(root: Path, commit: int) -> bool:
    """Whether there is a newer commit than this one."""
    catalog = Catalog.open(root)
    try:
        return catalog.commit_number() != commit
    finally:
        catalog.close()


def _connect(path: Path) -> tuple[sqlite3.Connection, _State | None]:
    """A connection; where the folder cannot be written and nobody else writes it, one that asks for no lock files.

    Such a one would mix what it has read before a change with what it reads after it, so the state of the file comes with it.
    """
    live = path.with_name(f"{path.name}-wal").exists()
    mode = "mode=rw" if _can_write(path) else "mode=ro" if live else "mode=ro&immutable=1"
    state = _state(path) if mode.endswith("immutable=1") and path.exists() else None
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{mode}", uri=True, isolation_level=None, check_same_thread=False, timeout=30
    )
    return connection, state


def _state(path: Path) -> _State:
    found = path.stat()
    return found.st_mtime_ns, found.st_size


def _can_write(path: Path) -> bool:
    """Never by opening the file: closing it would drop the POSIX locks of every connection that this process has to it."""
    live = path.with_name(f"{path.name}-wal").exists()
    return os.access(path, os.W_OK) and (live or os.access(path.parent, os.W_OK))


def _keys(rows: Iterable[tuple[int]]) -> NDArray[np.int64]:
    return np.fromiter((row[0] for row in rows), np.int64)
