"""Detection of duplicate ids, with the place of each first occurrence in a table that spills to disk."""

import sqlite3
from types import TracebackType

from trilens.errors import BadInput, Unreadable
from trilens.read.decode import Place

CACHE_KIB = 64 * 1024
REPEATED = "repeated id"  # a reason for which records are skipped


class SeenIds:
    """The set of ids read so far, as a context manager. Memory use is bounded by the cache, not by the number of ids."""

    def __init__(self) -> None:
        # An empty name opens a temporary database, which SQLite keeps in its cache, spills to disk and removes.
        self._table = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._table.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        self._table.execute("PRAGMA journal_mode = OFF")
        self._table.execute("CREATE TABLE seen (id TEXT PRIMARY KEY, file INTEGER, line INTEGER) WITHOUT ROWID")
        self._table.execute("BEGIN")
        self._files: dict[str, int] = {}

    def __enter__(self) -> "SeenIds":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._table.close()

    def add(self, doc_id: str, place: Place) -> None:
        """Add an id; raise an error with both places if it was added before."""
        file = self._files.setdefault(place.where, len(self._files))
        try:
            cursor = self._table.execute("INSERT OR IGNORE INTO seen VALUES (?, ?, ?)", (doc_id, file, place.line))
        except sqlite3.OperationalError as error:
            raise BadInput(
                f"{place}: the table of ids cannot be written: {error}; free space in the temporary folder, "
                "or set SQLITE_TMPDIR to another one"
            ) from error
        if not cursor.rowcount:
            raise Unreadable(
                f"{place}: the id {doc_id[:80]!r} was read before at {self._first(doc_id)}; "
                "expected unique ids: remove or rename one of the two, or use --id-prefix",
                REPEATED,
            )

    def _first(self, doc_id: str) -> Place:
        file, line = self._table.execute("SELECT file, line FROM seen WHERE id = ?", (doc_id,)).fetchone()
        return Place(next(where for where, number in self._files.items() if number == file), line)
