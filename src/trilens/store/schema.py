"""The tables of the catalog, and the records of documents and folders."""

from dataclasses import dataclass, field

from trilens.text.files import CATALOG

FILE_NAME = CATALOG
APPLICATION_ID = 0x7472_6C73  # "trls": identifies the file among SQLite files
FORMAT_VERSION = 5
TABLES = (
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    """CREATE TABLE documents (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    doc_id TEXT NOT NULL UNIQUE,
    metadata TEXT NOT NULL,
    hash BLOB NOT NULL,
    digest BLOB NOT NULL
)""",
    "CREATE TABLE deleted (key INTEGER PRIMARY KEY)",
    "CREATE TABLE changed (key INTEGER PRIMARY KEY)",
    "CREATE TABLE folders (id TEXT PRIMARY KEY, checksum TEXT NOT NULL) WITHOUT ROWID",
)


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A file: its path inside the folder, size and checksum."""

    path: str
    bytes: int
    checksum: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderRecord:
    """An immutable folder of the collection and its files. `checksum` is that of its manifest, which lists the files."""

    id: str
    files: tuple[FileRecord, ...] = ()
    checksum: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRecord(FolderRecord):
    """A segment: its range of keys, and its number of rows and documents when written."""

    first_key: int
    last_key: int
    rows: int
    documents: int


@dataclass(frozen=True, slots=True, kw_only=True)
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
