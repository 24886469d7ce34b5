"""The SQLite file of a catalog: its creation and its connections."""

import os
import secrets
import sqlite3
from contextlib import suppress
from pathlib import Path

from trilens.cancellation import is_unwanted
from trilens.errors import CollectionDamaged, CollectionExists, UnknownFormat
from trilens.store.failures import clear_errors
from trilens.store.folders import force
from trilens.store.schema import APPLICATION_ID, FILE_NAME, FORMAT_VERSION, TABLES

UNFINISHED = f"{FILE_NAME}.new"  # the start of the names of catalogs that are being created
BUSY_SECONDS = 30.0  # a lock of another process is waited for
OLDEST_UPGRADED = 1  # the oldest format version that `trilens upgrade` reads
WAL_VERSIONS = slice(18, 20)  # the bytes of the header that select the write-ahead log
NO_ROOM = ("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE", "SQLITE_IOERR_SHMOPEN", "SQLITE_IOERR_WRITE", "SQLITE_CANTOPEN")
INSTRUCTIONS_PER_CHECK = 2_000  # of SQLite's virtual machine: less than a millisecond of a filter on small metadata

FileState = tuple[int, int]  # modification time and size


def new_database() -> sqlite3.Connection:
    """A database in memory with the empty tables of a catalog."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
    for statement in TABLES:
        connection.execute(statement)
    return connection


def write_file(root: Path, database: sqlite3.Connection, *, replace: bool = False) -> None:
    """Write a database in memory as the catalog of a collection, atomically. The caller holds the write lock."""
    image = bytearray(database.serialize())
    image[WAL_VERSIONS] = b"\2\2"
    with clear_errors(root):
        remove_unfinished(root)
        unfinished = root / f"{UNFINISHED}-{secrets.token_hex(4)}"
        try:
            unfinished.write_bytes(image)
            force(unfinished)
            if replace:
                unfinished.replace(root / FILE_NAME)
            else:
                os.link(unfinished, root / FILE_NAME)  # unlike a rename, a link never replaces a catalog
        except FileExistsError as error:
            raise CollectionExists(f"{root} holds a collection already; open it, or choose another folder") from error
        finally:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
        force(root)


def remove_unfinished(root: Path) -> None:
    """Remove what a process left that died while it wrote a catalog. The caller holds the write lock."""
    for path in root.glob(f"{UNFINISHED}*"):
        path.unlink()


def connect(root: Path) -> tuple[sqlite3.Connection, FileState | None]:
    """A connection to the catalog of a collection, after checking that it is one of this format.

    The state of the file is returned if the connection treats it as immutable: it would mix old and new pages if the file
    changed. That is the case without write permission or disk space for SQLite's lock files, while no writer needs them.
    """
    path = root / FILE_NAME
    with clear_errors(root):
        mode = "mode=rw" if can_write(path) else "mode=ro" if _has_wal(path) else IMMUTABLE
        try:
            return _connected(path, mode)
        except sqlite3.Error as error:
            if error.sqlite_errorname not in NO_ROOM or mode == IMMUTABLE or _wal_has_commits(path) or not path.exists():
                raise
            return _connected(path, IMMUTABLE)


IMMUTABLE = "mode=ro&immutable=1"


def file_state(path: Path) -> FileState:
    """The modification time and size of a file."""
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_size


def raw_connection(path: Path, mode: str = "mode=rw") -> sqlite3.Connection:
    """A connection to a catalog file of any version. Nothing that the file defines is trusted.

    A statement ends with an error as soon as the work of the thread that runs it is unwanted.
    """
    uri = f"{path.absolute().as_uri()}?{mode}"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=BUSY_SECONDS)
    connection.set_progress_handler(is_unwanted, INSTRUCTIONS_PER_CHECK)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    return connection


def _connected(path: Path, mode: str) -> tuple[sqlite3.Connection, FileState | None]:
    state = file_state(path) if mode == IMMUTABLE and path.exists() else None
    connection = raw_connection(path, mode)
    try:
        _require_format(path, connection)
    except BaseException:
        connection.close()
        raise
    return connection, state


def format_version(root: Path) -> int:
    """The format version of a collection, which may be one that this release does not open."""
    with clear_errors(root):
        connection = raw_connection(root / FILE_NAME)
        try:
            return _version(root / FILE_NAME, connection)
        finally:
            connection.close()


def _version(path: Path, connection: sqlite3.Connection) -> int:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise CollectionDamaged(f"{path} is not a trilens catalog; expected the folder of a trilens collection")
    return int(version)


def _require_format(path: Path, connection: sqlite3.Connection) -> None:
    version = _version(path, connection)
    if OLDEST_UPGRADED <= version < FORMAT_VERSION:
        raise UnknownFormat(
            f"{path} has format version {version}; this trilens reads version {FORMAT_VERSION}: "
            f"run `trilens upgrade {path.parent}`, which keeps all documents"
        )
    if version != FORMAT_VERSION:
        raise UnknownFormat(
            f"{path} has format version {version}; this trilens reads version {FORMAT_VERSION}: "
            "use the version of trilens that wrote it"
        )
    tables = {row[0] for row in connection.execute("SELECT sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'")}
    if tables != set(TABLES):
        raise CollectionDamaged(f"{path} has other tables than a trilens catalog; restore a backup")


def _has_wal(path: Path) -> bool:
    return path.with_name(f"{path.name}-wal").exists()


def _wal_has_commits(path: Path) -> bool:
    """Whether commits may be in the log only. A connection that finds no space leaves an empty log behind."""
    wal = path.with_name(f"{path.name}-wal")
    return wal.exists() and wal.stat().st_size > 0


def can_write(path: Path) -> bool:
    """Checks permissions without opening the file: closing it would drop the POSIX locks of this process's connections."""
    return os.access(path, os.W_OK) and (_has_wal(path) or os.access(path.parent, os.W_OK))
