"""LanceDB: a row per passage; token vectors are a multi-vector, compared by MaxSim."""

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from trilens.extras import needs_extra
from trilens.represent import Dense, Multi
from trilens.send.address import Address
from trilens.send.layout import Layout
from trilens.send.passages import DIGEST, DOC_ID, END, ID, METADATA, NUMBER, START, TEXT, TITLE, Passage
from trilens.send.target import Engine, answering, require_same_form

with needs_extra("lancedb"):
    import lancedb
    import pyarrow as pa

FAILURES = (RuntimeError, ValueError, OSError)


class LanceTarget:
    """A table of LanceDB."""

    def __init__(self, address: Address, name: str, layout: Layout) -> None:
        self._address, self._layout, self._schema = address, layout, _schema(layout)
        with self._answering():
            tables = lancedb.connect(address.url)
            try:
                self._table = tables.open_table(name)
            except ValueError:
                self._table = tables.create_table(name, schema=self._schema)
            require_same_form(address, name, _form(self._table.schema), _form(self._schema))

    def stored(self) -> Iterator[tuple[str, str]]:
        """See `Destination`."""
        with self._answering():
            for batch in self._table.search().select([ID, DIGEST]).limit(None).to_batches():
                yield from zip(batch.column(ID).to_pylist(), batch.column(DIGEST).to_pylist(), strict=True)

    def write(self, passages: Sequence[Passage]) -> None:
        """See `Destination`."""
        rows = pa.Table.from_pylist([self._row(passage) for passage in passages], schema=self._schema)
        with self._answering():
            self._table.merge_insert(ID).when_matched_update_all().when_not_matched_insert_all().execute(rows)

    def delete(self, ids: Sequence[str]) -> None:
        """See `Destination`."""
        with self._answering():
            self._table.delete(f"{ID} IN ({', '.join(repr(row_id) for row_id in ids)})")

    def finish(self) -> None:
        """See `Destination`. Joins the small files of the writes."""
        with self._answering():
            self._table.optimize()

    def close(self) -> None:
        """See `Destination`. LanceDB keeps nothing open."""

    def _answering(self) -> AbstractContextManager[None]:
        return answering(self._address, *FAILURES)

    def _row(self, passage: Passage) -> dict[str, Any]:
        fields = {ID: passage.id, **passage.fields()}
        fields[METADATA] = json.dumps(fields[METADATA], ensure_ascii=False)
        return fields | {lens: self._vector(vector) for lens, vector in passage.vectors.items()}

    def _vector(self, vector: Any) -> Any:
        """The vector of a row; None for a passage without tokens, which is never found."""
        vectors = vector.vectors.astype(np.float16) if self._layout.half else vector.vectors
        return vectors[0] if isinstance(vector, Dense) else list(vectors) or None


def engine(address: Address) -> Engine:
    """The engine at an address."""
    return Engine("LanceDB", frozenset({Dense, Multi}), True, LanceTarget)


def _schema(layout: Layout) -> Any:
    texts, numbers = (ID, DOC_ID, TITLE, TEXT, METADATA, DIGEST), (NUMBER, START, END)
    columns = [(name, pa.string()) for name in texts] + [(name, pa.int64()) for name in numbers]
    number = pa.float16() if layout.half else pa.float32()
    for field in layout.fields:
        vector = pa.list_(number, field.dim)
        columns.append((field.lens, pa.list_(vector) if field.kind is Multi else vector))
    return pa.schema(columns)


def _form(schema: Any) -> dict[str, str]:
    return {field.name: str(field.type) for field in schema}
