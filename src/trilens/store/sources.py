"""`SourceMemory`: which documents came from which files of which sources, so that unchanged files need not be read.

It is a SQLite file beside the catalog, written before the documents are. What it says of a document counts only where the
catalog holds that very version, by its digest, so a process may die at any time between the two. Without the file, everything
is read again.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import blake2b, file_digest
from pathlib import Path
from time import time_ns
from types import TracebackType
from typing import Any

from trilens.errors import CollectionError
from trilens.read.readers import Item
from trilens.read.skipped import Skipped
from trilens.read.sources import SourceFile
from trilens.store.catalog import DocumentRow
from trilens.store.catalog_file import raw_connection
from trilens.store.failures import clear_errors
from trilens.store.schema import FILE_NAME
from trilens.text.files import SPOOLED, shown

SOURCES = "sources.sqlite"
VERSION = 1
SETTLED_NS = 2_000_000_000  # a file that was written this shortly before it was read may have been written again since
ROWS_AT_ONCE = 10_000
KNOWN = ("modified_ns", "read_ns", "size_bytes", "hash", "reading")
TABLES = """
CREATE TABLE IF NOT EXISTS files (
    source TEXT, name TEXT, reading TEXT, modified_ns INTEGER, size_bytes INTEGER, hash BLOB, read_ns INTEGER,
    PRIMARY KEY (source, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS versions (
    doc_id TEXT, digest BLOB, source TEXT, file TEXT, present INTEGER,
    PRIMARY KEY (doc_id, digest, source, file)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS versions_by_file ON versions (source, file);
"""
STORED = "EXISTS (SELECT 1 FROM catalog.documents AS stored WHERE stored.doc_id = v.doc_id AND stored.digest = v.digest)"


@dataclass(slots=True)
class _File:
    """A file as it was found in this run.

    `clean`: all of it could be read; `unchanged`: it need not be read; `useless`: nothing of it could be read.
    """

    modified_ns: int
    size_bytes: int
    hash: bytes
    read_ns: int = field(default_factory=time_ns)
    clean: bool = True
    unchanged: bool = False
    useless: bool = False
    documents: int = 0


class SourceMemory:
    """The memory of one run over some sources: first the files are surveyed, then `keep` and the documents are written.

    `reading` stands for the options with which the files are read: a file is unchanged only under the same ones.
    """

    def __init__(self, root: Path, reading: str) -> None:
        self._root, self._reading = root, reading
        self._files: dict[tuple[str, str], _File] = {}
        self._names: dict[Path, str] = {}
        self._unread_folders = set[str]()
        self._current: _File | None = None
        self._kept: sqlite3.Connection | None = None
        self._read = sqlite3.connect("", isolation_level=None)  # spills to disk
        self._read.executescript("CREATE TABLE versions (doc_id TEXT, digest BLOB, source TEXT, file TEXT); BEGIN")
        if (root / SOURCES).exists() and (root / FILE_NAME).exists():
            self._kept = _open(root)

    def __enter__(self) -> "SourceMemory":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._read.close()
        if self._kept is not None:
            self._kept.close()

    @property
    def unchanged_documents(self) -> int:
        """The number of documents in files that are not read."""
        statement = "SELECT count(*) FROM versions WHERE (source, file) = (?, ?) AND present"
        return sum(self._run(statement, *key)[0][0] for key, file in self._files.items() if file.unchanged)

    def unchanged(self, source: Path, file: SourceFile) -> Iterator[str] | None:
        """The ids of the documents of a file that is as it was when they were indexed; None if it has to be read.

        What turned out to be useless earlier in this run has none.
        """
        if source.name == SPOOLED:
            return None
        key = (self._name(source), file.name)
        self._current = self._files.get(key) or self._look(key, file.path)
        if self._current.useless:  # and parsing it again may take as long as the limits permit
            return iter(())
        return self._ids(*key) if self._current.unchanged else None

    def _look(self, key: tuple[str, str], path: Path) -> _File:
        """Compare a file with what is known of it."""
        try:
            status = path.stat()
            found = _File(status.st_mtime_ns, status.st_size, self._same_hash(key, path, status))
            found.unchanged = bool(found.hash) and self._is_stored(key)
            found.hash = found.hash or _hash(path)
        except OSError:  # reading it will say so
            found = _File(0, 0, b"", clean=False)
        self._files[key] = found
        return found

    def _same_hash(self, key: tuple[str, str], path: Path, status: os.stat_result) -> bytes:
        """The hash of a file that has not changed; b"" if it has. Its content decides if its time is in doubt."""
        known = self._run(f"SELECT {', '.join(KNOWN)} FROM files WHERE (source, name) = (?, ?)", *key)
        if not known:
            return b""
        modified_ns, read_ns, size_bytes, content, reading = known[0]
        if (size_bytes, reading) != (status.st_size, self._reading):
            return b""
        settled = modified_ns == status.st_mtime_ns and modified_ns + SETTLED_NS < read_ns
        return bytes(content) if settled or content == _hash(path) else b""

    def add(self, item: Item) -> None:
        """Note a document that was read."""
        if item.file is not None and item.source.name != SPOOLED:
            digest = DocumentRow.of(0, item.document).digest
            row = (item.document.doc_id, digest, self._name(item.source), item.file.name)
            self._read.execute("INSERT INTO versions VALUES (?, ?, ?, ?)", row)
            if self._current is not None:
                self._current.documents += 1

    def skip(self, skipped: Skipped) -> None:
        """Note that something could not be read: no document that came from there counts as gone."""
        if skipped.may_be_folder or (skipped.unit == "folder" and skipped.is_error):
            self._unread_folders.add(skipped.name)
        elif skipped.is_error and self._current is not None:
            self._current.clean = False
            self._current.useless = skipped.unit == "file" and not self._current.documents

    def keep(self) -> None:
        """Write down what was read, before the documents are added to the collection."""
        with clear_errors(self._root):
            if self._kept is None:
                self._kept = _open(self._root)
            self._run("BEGIN IMMEDIATE")
            for (source, name), file in self._files.items():
                self._keep_file(source, name, file)
            rows = self._read.execute("SELECT * FROM versions")
            while block := rows.fetchmany(ROWS_AT_ONCE):
                self._kept.executemany("INSERT OR REPLACE INTO versions VALUES (?, ?, ?, ?, 1)", block)
            for source in {source for source, _ in self._files}:
                self._drop_missing(source)
            self._run("COMMIT")

    def replaced(self) -> tuple[int, str, str] | None:
        """How many documents take the place of those of other sources, with the id and the source of one; None if none does."""
        if self._kept is None:
            return None
        count, first = 0, ("", "")
        for doc_id, digest, source, _ in self._read.execute("SELECT * FROM versions"):
            statement = (
                f"SELECT source FROM versions AS v WHERE doc_id = ? AND digest <> ? AND source <> ? AND present AND {STORED}"
            )
            if others := self._run(statement, doc_id, digest, source):
                first = first if count else (doc_id, others[0][0])
                count += 1
        return (count, *first) if count else None

    def gone(self) -> list[str]:
        """The documents of the collection that are in no source any more, and were in one of those that were read."""
        sources = {source for source, _ in self._files}
        statement = f"""SELECT DISTINCT doc_id FROM versions AS v WHERE source = ? AND NOT present AND {STORED} AND NOT EXISTS (
            SELECT 1 FROM versions AS other WHERE other.doc_id = v.doc_id AND other.digest = v.digest AND other.present)"""
        return sorted({row[0] for source in sources for row in self._run(statement, source)})

    def forget(self) -> None:
        """Drop what is known of versions that are neither in a source nor in the collection."""
        self._run(f"DELETE FROM versions AS v WHERE NOT present AND NOT {STORED}")

    def _keep_file(self, source: str, name: str, file: _File) -> None:
        if file.unchanged:
            statement = "UPDATE files SET modified_ns = ?, read_ns = ? WHERE (source, name) = (?, ?)"
            self._run(statement, file.modified_ns, file.read_ns, source, name)
        elif file.clean:
            self._run("UPDATE versions SET present = 0 WHERE (source, file) = (?, ?)", source, name)
            row = (source, name, self._reading, file.modified_ns, file.size_bytes, file.hash, file.read_ns)
            self._run("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?)", *row)
        else:  # it is read again the next time
            self._run("DELETE FROM files WHERE (source, name) = (?, ?)", source, name)

    def _drop_missing(self, source: str) -> None:
        """Note the files that are gone from a source, except those in folders that could not be read."""
        for (name,) in self._run("SELECT DISTINCT file FROM versions WHERE source = ? AND present", source):
            unread = any(not folder or name.startswith(f"{folder}/") for folder in self._unread_folders)
            if (source, name) not in self._files and not unread:
                self._run("UPDATE versions SET present = 0 WHERE (source, file) = (?, ?)", source, name)
                self._run("DELETE FROM files WHERE (source, name) = (?, ?)", source, name)

    def _is_stored(self, key: tuple[str, str]) -> bool:
        """Whether the collection holds all documents of a file as they were read."""
        missing = f"SELECT 1 FROM versions AS v WHERE (source, file) = (?, ?) AND present AND NOT {STORED} LIMIT 1"
        return not self._run(missing, *key)

    def _ids(self, source: str, name: str) -> Iterator[str]:
        statement = "SELECT doc_id FROM versions WHERE (source, file) = (?, ?) AND present"
        return (row[0] for row in self._run(statement, source, name))

    def _name(self, source: Path) -> str:
        """The name of a source: its absolute path."""
        if source not in self._names:
            self._names[source] = shown(source.resolve())
        return self._names[source]

    def _run(self, statement: str, *values: str | int | bytes) -> list[Any]:
        if self._kept is None:
            return []
        try:
            return self._kept.execute(statement, values).fetchall()
        except sqlite3.DatabaseError as error:
            path = self._root / SOURCES
            raise CollectionError(f"{path} cannot be used ({error}); remove it: all sources are read again then") from error


def _open(root: Path) -> sqlite3.Connection:
    """The file of a collection with its catalog attached; one that is damaged or of another version is replaced."""
    path = root / SOURCES
    with clear_errors(root):
        try:
            return _connect(path)
        except (sqlite3.DatabaseError, ValueError) as error:
            if isinstance(error, sqlite3.OperationalError):
                raise
            path.unlink()
            return _connect(path)


def _connect(path: Path) -> sqlite3.Connection:
    with closing(sqlite3.connect(path)) as created:
        (version,) = created.execute("PRAGMA user_version").fetchone()
        if version not in (0, VERSION):
            raise ValueError(f"{path} has version {version}")
        created.executescript(TABLES)
        created.execute(f"PRAGMA user_version = {VERSION}")
    connection = raw_connection(path)
    connection.execute("ATTACH ? AS catalog", (f"{(path.parent / FILE_NAME).absolute().as_uri()}?mode=rw",))
    return connection


def _hash(path: Path) -> bytes:
    with path.open("rb") as file:
        return file_digest(file, lambda: blake2b(digest_size=16)).digest()
