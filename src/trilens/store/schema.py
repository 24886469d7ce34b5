"""The tables of the catalog and their records."""

from dataclasses import dataclass

FILE_NAME = "catalog.sqlite"
APPLICATION_ID = 0x7472_6C73  # "trls": identifies the file among SQLite files
FORMAT_VERSION = 4
SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE documents (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    doc_id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    text TEXT NOT NULL,
    metadata TEXT NOT NULL,
    hash BLOB NOT NULL
);
CREATE TABLE deleted (key INTEGER PRIMARY KEY);
CREATE TABLE folders (id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE files (
    folder TEXT NOT NULL REFERENCES folders (id) ON DELETE CASCADE,
    path TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    checksum TEXT NOT NULL,
    PRIMARY KEY (folder, path)
) WITHOUT ROWID;
CREATE TABLE segments (
    id TEXT PRIMARY KEY REFERENCES folders (id) ON DELETE CASCADE,
    first_key INTEGER NOT NULL,
    last_key INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    documents INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE shared (
    id TEXT PRIMARY KEY REFERENCES folders (id) ON DELETE CASCADE,
    lens TEXT NOT NULL,
    place INTEGER NOT NULL,
    UNIQUE (lens, place)
) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A file: its path inside the folder, size and checksum."""

    path: str
    bytes: int
    checksum: str


@dataclass(frozen=True, slots=True)
class FolderRecord:
    """A folder of the collection and its files."""

    id: str
    files: tuple[FileRecord, ...]


@dataclass(frozen=True, slots=True)
class SegmentRecord(FolderRecord):
    """A segment: its range of keys, and its number of rows and documents when written."""

    first_key: int
    last_key: int
    rows: int
    documents: int


@dataclass(frozen=True, slots=True)
class SharedRecord(FolderRecord):
    """A shared part: its lens, and its position among the shared parts of that lens."""

    lens: str
    place: int


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """The stored version of a document, as far as an upsert needs it to detect changes."""

    key: int
    hash: bytes
    metadata: str
