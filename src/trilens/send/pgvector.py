"""PostgreSQL with pgvector: a row per passage, with columns of the types vector or halfvec, sparsevec and arrays of vectors."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from trilens.errors import BadInput
from trilens.extras import needs_extra
from trilens.kernels.array_types import Float32s
from trilens.represent import Dense, Multi, Representation, Sparse
from trilens.send.address import Address
from trilens.send.layout import Layout, VectorField
from trilens.send.passages import DIGEST, DOC_ID, END, ID, METADATA, NUMBER, START, TEXT, TITLE, Passage
from trilens.send.target import Engine, failed, require_same_form

with needs_extra("pgvector"):
    import psycopg
    from psycopg import sql

SECONDS = 10
PAGE = 1000
MOST_TERMS = 16_000  # of a sparsevec
ESCAPED_ZERO = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")  # in JSON, where a backslash is two
COLUMNS = {
    ID: "uuid",
    DOC_ID: "text",
    NUMBER: "integer",
    TITLE: "text",
    TEXT: "text",
    START: "integer",
    END: "integer",
    METADATA: "jsonb",
    DIGEST: "text",
}
FORM = """SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"""


class PostgresTarget:
    """A table of PostgreSQL. Each write is a transaction."""

    def __init__(self, address: Address, name: str, layout: Layout) -> None:
        self._address, self._table, self._layout = address, sql.Identifier(name), layout
        self._columns = COLUMNS | {field.lens: _column(field, layout.half) for field in layout.fields}
        with self._answering():
            self._connection = psycopg.connect(address.url, connect_timeout=SECONDS)
            try:
                with self._connection.transaction():
                    self._open(name)
            except BaseException:
                self.close()
                raise

    def stored(self) -> Iterator[tuple[str, str]]:
        """See `Destination`."""
        with self._answering(), self._connection.transaction(), self._connection.cursor(name="stored") as rows:
            rows.itersize = PAGE
            rows.execute(sql.SQL("SELECT id::text, digest FROM {}").format(self._table))
            yield from rows

    def write(self, passages: Sequence[Passage]) -> None:
        """See `Destination`."""
        columns = [sql.Identifier(column) for column in self._columns]
        given = [sql.SQL("%s::" + kind) for kind in self._columns.values()]
        replaced = [sql.SQL("{0} = excluded.{0}").format(column) for column in columns]
        statement = sql.SQL("INSERT INTO {} ({}) VALUES ({}) ON CONFLICT (id) DO UPDATE SET {}").format(
            self._table, *(sql.SQL(", ").join(parts) for parts in (columns, given, replaced))
        )
        rows = [self._row(passage) for passage in passages]
        with self._answering(), self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.executemany(statement, rows)

    def delete(self, ids: Sequence[str]) -> None:
        """See `Destination`."""
        with self._answering(), self._connection.transaction():
            self._connection.execute(sql.SQL("DELETE FROM {} WHERE id = ANY(%s::uuid[])").format(self._table), [list(ids)])

    def finish(self) -> None:
        """See `Destination`. Gives the planner statistics of the table."""
        with self._answering(), self._connection.transaction():
            self._connection.execute(sql.SQL("ANALYZE {}").format(self._table))

    def close(self) -> None:
        """See `Destination`."""
        self._connection.close()

    @contextmanager
    def _answering(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise failed(self._address, error.diag.message_primary or str(error)) from error

    def _open(self, name: str) -> None:
        """Create the table, or compare it with the layout."""
        if not self._connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'").fetchone():
            self._connection.execute("CREATE EXTENSION vector")
        found = dict(self._connection.execute(FORM, [name]).fetchall())
        if found:
            require_same_form(self._address, name, found, self._columns)
            return
        columns = [
            sql.SQL("{} " + kind + (" PRIMARY KEY" if column == ID else "")).format(sql.Identifier(column))
            for column, kind in self._columns.items()
        ]
        self._connection.execute(sql.SQL("CREATE TABLE {} ({})").format(self._table, sql.SQL(", ").join(columns)))
        self._connection.execute(sql.SQL("CREATE INDEX ON {} (doc_id)").format(self._table))

    def _row(self, passage: Passage) -> list[Any]:
        fields = {ID: passage.id, **passage.fields()}
        fields[METADATA] = json.dumps(fields[METADATA], ensure_ascii=False)
        document = passage.document
        if "\0" in document.doc_id + document.title + document.text or ESCAPED_ZERO.search(fields[METADATA]):
            raise BadInput(
                f"document {document.doc_id!r} has the character U+0000, which PostgreSQL cannot hold; replace it there"
            )
        vectors = {lens: _vector(lens, vector, passage) for lens, vector in passage.vectors.items()}
        return [(fields | vectors)[column] for column in self._columns]


def engine(address: Address) -> Engine:
    """The engine at an address."""
    return Engine("PostgreSQL", frozenset({Dense, Sparse, Multi}), True, PostgresTarget)


def _column(field: VectorField, half: bool) -> str:
    """The type of a column."""
    if field.kind is Sparse:
        return f"sparsevec({field.dim})"
    vector = f"{'halfvec' if half else 'vector'}({field.dim})"
    return vector if field.kind is Dense else f"{vector}[]"


def _vector(lens: str, vector: Representation, passage: Passage) -> Any:
    """A vector as PostgreSQL reads it; NULL without terms or tokens. The terms of a sparsevec count from 1."""
    match vector:
        case Dense():
            return _list(vector.vectors[0])
        case Multi():
            return [_list(token) for token in vector.vectors] or None
        case Sparse():
            if len(vector.terms) > MOST_TERMS:
                raise BadInput(
                    f"a passage of document {passage.document.doc_id!r} has {len(vector.terms):,} terms in lens {lens}; "
                    f"expected at most {MOST_TERMS:,}, which a sparsevec can hold: leave the lens out, or make shorter passages"
                )
            pairs = zip((vector.terms + 1).tolist(), vector.weights.tolist(), strict=True)
            terms = ",".join(f"{term}:{weight:.9g}" for term, weight in pairs)
            return f"{{{terms}}}/{vector.dim}" if terms else None


def _list(vector: Float32s) -> str:
    return f"[{','.join(f'{value:.9g}' for value in vector.tolist())}]"
