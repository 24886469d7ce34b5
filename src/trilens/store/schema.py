"""The tables of the catalog, and what their rows are in Python."""

from dataclasses import dataclass

FILE_NAME = "catalog.sqlite"
APPLICATION_ID = 0x7472_6C73  # "trls": tells our file from other SQLite files
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
    """One file of a folder: its path inside the folder, and what it must hold."""

    path: str
    bytes: int
    checksum: str


@dataclass(frozen=True, slots=True)
class FolderRecord:
    """A folder that belongs to the collection, and its files."""

    id: str
    files: tuple[FileRecord, ...]


@dataclass(frozen=True, slots=True)
class SegmentRecord(FolderRecord):
    """One segment: the keys it covers, and how many rows and documents it was written with."""

    first_key: int
    last_key: int
    rows: int
    documents: int


@dataclass(frozen=True, slots=True)
class SharedRecord(FolderRecord):
    """One shared part: of which lens, and how many older ones that lens has."""

    lens: str
    place: int


@dataclass(frozen=True, slots=True)
class Known:
    """What is needed to decide whether an upsert changes anything."""

    key: int
    hash: bytes
    metadata: str
