"""The catalog: a SQLite file with the ids and metadata of all documents and the names of segments and shared parts.

A `key` identifies one version of a document and is never reused. The rows of a segment are in ascending order of keys. The key
of a deleted or replaced document stays in `deleted`, and the key of a document with other metadata than in its segment in
`changed`, until a merge rewrites the segment.
"""

import errno
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from trilens.cancellation import require_wanted
from trilens.errors import BadInput, CollectionDamaged, CollectionError, CollectionReadOnly
from trilens.kernels.array_types import Int64s
from trilens.store.catalog_file import FileState, can_write, connect, file_state
from trilens.store.config import CollectionConfig
from trilens.store.documents import text_hash
from trilens.store.failures import clear_errors
from trilens.store.folders import REPAIR
from trilens.store.schema import FILE_NAME, FORMAT_VERSION, FolderRecord, StoredVersion
from trilens.text.document import Document

LARGEST_KEY = (1 << 63) - 1
DATES = "[0-9][0-9][0-9][0-9]-[0-9][0-9]*"  # as a pattern of GLOB
Mark = Literal["deleted", "changed"]
KeyRange = tuple[int, int]  # first and last key
INSERT = "INSERT INTO documents (doc_id, metadata, hash, digest) VALUES (?, ?, ?, ?) RETURNING key"


class DocumentRow(NamedTuple):
    """What the catalog stores about a document. `hash` is that of title and text; `digest` covers the columns before it."""

    key: int
    doc_id: str
    metadata: str
    hash: bytes
    digest: bytes

    @staticmethod
    def of(key: int, document: Document) -> "DocumentRow":
        """The row of a document under a key."""
        content = (document.doc_id, document.metadata_json(), text_hash(document))
        return DocumentRow(key, *content, row_digest(*content))

    @property
    def is_intact(self) -> bool:
        """Whether the digest fits the other columns."""
        return self.digest == row_digest(self.doc_id, self.metadata, self.hash)


def row_digest(doc_id: str, metadata: str, content_hash: bytes) -> bytes:
    """Hash of what the catalog stores about a document."""
    return _digest([(doc_id, metadata, content_hash)])


class Catalog:
    """A connection to the catalog. Reads after `begin` see one commit; writes require `begin_write` and end with `commit`."""

    def __init__(self, root: Path, connection: sqlite3.Connection, state: FileState | None = None) -> None:
        """`state` is the expected state of the file if the connection treats it as immutable."""
        self._root = root
        self._connection = connection
        self._state = state

    @staticmethod
    def open(root: Path) -> "Catalog":
        """Open an existing catalog after checking its application id, format version and tables."""
        return Catalog(root, *connect(root))

    def stored_digest(self) -> str:
        """The digest of the commit, which no other commit of any collection has."""
        return self._fact("digest")

    def twin(self, digest: str) -> "Catalog | None":
        """Another connection that reads the commit with this digest; None if that is not the last one, or cannot be opened."""
        with suppress(CollectionError), ExitStack() as stack:
            twin = stack.enter_context(closing(Catalog.open(self._root)))
            twin.begin()
            if twin.stored_digest() == digest:
                stack.pop_all()
                return twin
        return None

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def begin(self) -> None:
        """Start a read transaction, which fixes the commit that reads see."""
        self._run("BEGIN")
        self.commit_number()

    def begin_write(self) -> None:
        """Start a write transaction, invisible to others until `commit`."""
        if self._state and can_write(self._root / FILE_NAME):
            with clear_errors(self._root):  # it is immutable because there was no space for the files of a connection
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._run("PRAGMA synchronous = FULL")
        self._run("BEGIN IMMEDIATE")

    def settle(self) -> None:
        """Make the last commit final: none that failed or was interrupted can take effect any more.

        A process can fail or die when its commit is complete in the write-ahead log but not announced to the others. When all
        processes are gone, recovery finds it there, unless a later transaction has overwritten it.
        """
        self._run("PRAGMA synchronous = FULL")
        self._run(f"PRAGMA user_version = {FORMAT_VERSION}")

    def commit(self) -> int:
        """Commit the transaction and return the number of the commit."""
        number = self.commit_number() + 1
        self.set_fact("commit", str(number))
        self.commit_as_is()
        return number

    def commit_as_is(self) -> None:
        """Commit the transaction under the number that it has set."""
        self.seal()
        self._run("COMMIT")

    def set_savepoint(self) -> None:
        """Mark the state to which `undo` returns."""
        self._run("SAVEPOINT change")

    def keep(self) -> None:
        """Keep the changes since the savepoint."""
        self._run("RELEASE change")

    def undo(self) -> None:
        """Discard the changes since the savepoint."""
        self._run("ROLLBACK TO change")
        self._run("RELEASE change")

    def rollback(self) -> None:
        """Discard the transaction, if there is one."""
        if self._connection.in_transaction:
            self._run("ROLLBACK")

    def vacuum(self) -> None:
        """Release the disk space of removed documents."""
        self._run("VACUUM")

    def commit_number(self) -> int:
        """The number of the last commit."""
        number = self._fact("commit")
        if not (number.isascii() and number.isdigit()):
            raise CollectionDamaged(f"{self._root / FILE_NAME} has the commit number {number[:20]!r}; {REPAIR}")
        return int(number)

    def seal(self) -> None:
        """Store the digest of the facts, the folders and the next key."""
        self.set_fact("digest", self._digest())

    def verify(self) -> None:
        """Raise if the facts, the folders or the next key are not those of the commit."""
        if self.stored_digest() != self._digest():
            raise CollectionDamaged(f"{self._root / FILE_NAME} has changed: its records do not fit their digest; {REPAIR}")

    def config(self) -> CollectionConfig:
        """The configuration of the collection."""
        try:
            return CollectionConfig.from_stored(self._fact("config"))
        except (BadInput, TypeError, ValueError, RecursionError) as error:
            raise CollectionDamaged(f"{self._root / FILE_NAME} has a config that cannot be used ({error}); {REPAIR}") from error

    def tuned(self) -> dict[str, Any]:
        """The tuned fusions by combination of lenses; empty if none was tuned."""
        rows = self._run("SELECT value FROM facts WHERE name = 'tuned'")
        try:
            records = json.loads(rows[0][0]) if rows else {}
        except (ValueError, TypeError, RecursionError) as error:
            raise CollectionDamaged(f"{self._root / FILE_NAME} has tuned weights that are not JSON ({error})") from error
        if not isinstance(records, dict):
            raise CollectionDamaged(f"{self._root / FILE_NAME} has tuned weights that are not a JSON object; tune again")
        return records

    def set_tuned(self, records: Mapping[str, Any]) -> None:
        """Replace the tuned fusions."""
        self.set_fact("tuned", json.dumps(records, ensure_ascii=False))

    def large_segments(self) -> int:
        """The number of segments that merges must leave of a large collection."""
        count = self.facts().get("segments", "")
        return int(count) if count.isdigit() else 1

    def set_large_segments(self, count: int) -> None:
        """Let merges leave as many segments."""
        if count == 1:
            self._run("DELETE FROM facts WHERE name = 'segments'")
        else:
            self.set_fact("segments", str(count))

    def facts(self) -> dict[str, str]:
        """All facts by name."""
        return dict(self._run("SELECT name, value FROM facts"))

    def set_fact(self, name: str, value: str) -> None:
        """Store a fact."""
        self._run("INSERT OR REPLACE INTO facts VALUES (?, ?)", name, value)

    def set_facts(self, facts: Mapping[str, str]) -> None:
        """Replace all facts."""
        self._run("DELETE FROM facts")
        for name, value in facts.items():
            self.set_fact(name, value)

    def count(self) -> int:
        """Number of documents."""
        return int(self._run("SELECT count(*) FROM documents")[0][0])

    def find(self, doc_id: str) -> StoredVersion | None:
        """The stored version of a document; None if there is none."""
        rows = self._run("SELECT key, hash, metadata FROM documents WHERE doc_id = ?", doc_id)
        return StoredVersion(*rows[0]) if rows else None

    def insert(self, document: Document, key: int | None = None) -> int:
        """Add a document and return its key: a given one, which must be above all others, or the next."""
        if key is not None:
            if not self.next_key() <= key <= LARGEST_KEY:
                raise BadInput(f"key of document {document.doc_id!r} is {key}; expected {self.next_key()} or more")
            self.restore(DocumentRow.of(key, document))
            return key
        content = (document.doc_id, document.metadata_json(), text_hash(document))
        return int(self._run(INSERT, *content, row_digest(*content))[0][0])

    def restore(self, row: DocumentRow) -> None:
        """Add a document under its old key."""
        self._run("INSERT INTO documents VALUES (?, ?, ?, ?, ?)", *row)

    def set_metadata(self, document: Document, key: int, *, in_segment: bool) -> None:
        """Replace the metadata of a document; if a segment holds the document, its copy counts as outdated."""
        content = (document.doc_id, document.metadata_json(), text_hash(document))
        self._run("UPDATE documents SET metadata = ?, digest = ? WHERE key = ?", content[1], row_digest(*content), key)
        if in_segment:
            self.mark("changed", key)

    def delete(self, key: int, *, in_segment: bool) -> None:
        """Remove a document; if a segment holds its rows, mark them as deleted."""
        self._run("DELETE FROM documents WHERE key = ?", key)
        if in_segment:
            self._run("DELETE FROM changed WHERE key = ?", key)
            self.mark("deleted", key)

    def mark(self, table: Mark, key: int) -> None:
        """Mark a key as deleted or changed since its segment was written."""
        self._run(f"INSERT OR IGNORE INTO {table} VALUES (?)", key)

    def marked(self, table: Mark, first_key: int = 0, last_key: int = LARGEST_KEY) -> Int64s:
        """The marked keys in a range, ascending."""
        return _keys(self._run(f"SELECT key FROM {table} WHERE key BETWEEN ? AND ? ORDER BY key", first_key, last_key))

    def changed(self, first_key: int = 0, last_key: int = LARGEST_KEY) -> dict[int, str]:
        """The metadata of the documents in a range whose metadata has changed since their segment was written, by key."""
        statement = "SELECT key, metadata FROM changed JOIN documents USING (key) WHERE key BETWEEN ? AND ? ORDER BY key"
        return dict(self._run(statement, first_key, last_key))

    def forget_marks(self, first_key: int, last_key: int) -> None:
        """Drop the marks in a range, after a merge has rewritten the segment."""
        self._run("DELETE FROM deleted WHERE key BETWEEN ? AND ?", first_key, last_key)
        self._run("DELETE FROM changed WHERE key BETWEEN ? AND ?", first_key, last_key)

    def keys(self) -> Int64s:
        """Keys of all documents, ascending."""
        return _keys(self._run("SELECT key FROM documents ORDER BY key"))

    def keys_above(self, key: int, count: int) -> Int64s:
        """The first `count` keys above `key`, ascending."""
        return _keys(self._run("SELECT key FROM documents WHERE key > ? ORDER BY key LIMIT ?", key, count))

    def keys_where(self, condition: str, values: Iterable[str | int | float], ranges: Sequence[KeyRange]) -> Iterator[Int64s]:
        """Keys of the documents that satisfy a SQL condition, by ranges of keys; a step of the iterator reads one range.

        It is one statement, so that the lists of values in the condition are sorted only once, with one row for each range,
        because a step that returns a row waits for Python's global lock.
        """
        in_range = "key BETWEEN (range.value ->> 0) AND (range.value ->> 1)"
        keys = f"SELECT json_group_array(key) FROM documents WHERE {in_range} AND {condition}"
        statement = f"SELECT ({keys}) FROM json_each(?) AS range"
        with clear_errors(self._root):
            self._require_unchanged()
            with closing(self._connection.execute(statement, [*values, json.dumps(ranges)])) as cursor:
                for row in cursor:
                    require_wanted()
                    yield np.array(json.loads(row[0]), np.int64)

    def types_of(self, path: str, keys: Sequence[int] | None = None) -> dict[str, int]:
        """The JSON types of a metadata field, or of the elements of its lists, with their numbers of documents.

        Text that begins like a date in ISO 8601 has the type `date`. `keys` restricts the count to some documents.
        """
        documents = "SELECT key, metadata FROM documents"
        if keys is not None:
            documents += " WHERE key IN (SELECT value FROM json_each(?))"
        kind = f"iif(atom.type = 'text' AND atom.value GLOB '{DATES}', 'date', atom.type)"
        statement = f"""SELECT {kind}, count(DISTINCT chosen.key)
            FROM ({documents}) AS chosen, json_each(metadata, ?) AS atom
            WHERE json_type(metadata, ?) <> 'object' GROUP BY 1"""
        return dict(self._run(statement, *([] if keys is None else [json.dumps(keys)]), path, path))

    def next_key(self) -> int:
        """The key of the next document that is added."""
        rows = self._run("SELECT seq FROM sqlite_sequence WHERE name = 'documents'")
        return int(rows[0][0]) + 1 if rows else 1

    def set_next_key(self, key: int) -> None:
        """Never give documents keys below this one."""
        self._run("DELETE FROM sqlite_sequence WHERE name = 'documents'")
        self._run("INSERT INTO sqlite_sequence VALUES ('documents', ?)", key - 1)

    def rows(self) -> Iterator[DocumentRow]:
        """The rows of all documents, by ascending key."""
        with clear_errors(self._root):
            cursor = self._connection.execute("SELECT key, doc_id, metadata, hash, digest FROM documents ORDER BY key")
            for row in cursor:
                yield DocumentRow(*row)

    def folders(self) -> dict[str, str]:
        """The checksums of the manifests of all folders, by folder id."""
        return dict(self._run("SELECT id, checksum FROM folders ORDER BY id"))

    def add_folder(self, folder: FolderRecord) -> None:
        """Record a segment or shared part."""
        self._run("INSERT INTO folders VALUES (?, ?)", folder.id, folder.checksum)

    def remove_folder(self, folder_id: str) -> None:
        """Remove the record of a segment."""
        self._run("DELETE FROM folders WHERE id = ?", folder_id)

    def remove_folders(self) -> None:
        """Remove the records of all segments and shared parts; the documents stay."""
        for table in ("folders", "deleted", "changed"):
            self._run(f"DELETE FROM {table}")

    def problems(self) -> list[str]:
        """Problems that the integrity checks of SQLite find."""
        try:
            problems = [row[0] for row in self._connection.execute("PRAGMA integrity_check(10)")]
            problems = [] if problems == ["ok"] else problems
        except sqlite3.Error as error:
            problems = [str(error)]
        return [f"{self._root / FILE_NAME}: {problem}" for problem in problems]

    def _fact(self, name: str) -> str:
        rows = self._run("SELECT value FROM facts WHERE name = ?", name)
        if not rows or not isinstance(rows[0][0], str):
            raise CollectionDamaged(f"{self._root / FILE_NAME} has no {name}; {REPAIR}")
        return rows[0][0]

    def _digest(self) -> str:
        facts = self._run("SELECT name, value FROM facts WHERE name <> 'digest' ORDER BY name")
        folders = self._run("SELECT id, checksum FROM folders ORDER BY id")
        return _digest([*facts, *folders, (self.next_key(),)]).hex()

    def _run(self, statement: str, *values: str | int | float | bytes) -> list[Any]:
        with clear_errors(self._root):
            self._require_unchanged()
            return self._connection.execute(statement, values).fetchall()

    def _require_unchanged(self) -> None:
        if self._state and self._state != file_state(self._root / FILE_NAME):
            raise CollectionReadOnly(f"{self._root} was changed by another process while it was open read-only; open it again")


def has_moved_on(root: Path, commit: int) -> bool:
    """Whether the collection has a newer commit."""
    catalog = Catalog.open(root)
    try:
        return catalog.commit_number() != commit
    finally:
        catalog.close()


def _keys(rows: Iterable[tuple[int]]) -> Int64s:
    return np.fromiter((row[0] for row in rows), np.int64)


def _digest(rows: Iterable[tuple[Any, ...]]) -> bytes:
    """Hash of rows of a table, including the types of the values."""
    return blake2b(repr(list(rows)).encode("utf-8", "surrogatepass"), digest_size=16).digest()
