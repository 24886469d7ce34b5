"""Every id once: remembers where each was first read, in a table that moves to disk when it gets large."""

import sqlite3
from types import TracebackType

from trilens.errors import BadInput
from trilens.text.decode import Place

CACHE_KIB = 64 * 1024


class SeenIds:
    """A context in which `add` refuses an id that came before. Memory is bounded by the cache, not by the ids."""

    def __init__(self) -> None:
        # An empty name is a temporary database that SQLite keeps in its cache, spills to disk and removes by itself.
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
        """Remember the id, or raise with both places when it is known."""
        file = self._files.setdefault(place.where, len(self._files))
        try:
            added = self._table.execute("INSERT OR IGNORE INTO seen VALUES (?, ?, ?)", (doc_id, file, place.line))
        except sqlite3.OperationalError as error:
            raise BadInput(
                f"{place}: the table of ids cannot be kept: {error}; make room in the temporary folder, "
                "or name another one in SQLITE_TMPDIR"
            ) from error
        if not added.rowcount:
            raise BadInput(
                f"{place}: the id {doc_id[:80]!r} was read before at {self._first(doc_id)}; "
                "expected every id once: remove or rename one of the two"
            )

    def _first(self, doc_id: str) -> Place:
        file, line = self._table.execute("SELECT file, line FROM seen WHERE id = ?", (doc_id,)).fetchone()
        return Place(next(where for where, number in self._files.items() if number == file), line)
