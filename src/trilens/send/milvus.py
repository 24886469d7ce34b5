"""Milvus: an entity per passage, with a field for each lens."""

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from trilens.errors import BadInput
from trilens.extras import needs_extra
from trilens.represent import Dense, Sparse
from trilens.send.address import Address
from trilens.send.layout import Layout, VectorField
from trilens.send.passages import DIGEST, DOC_ID, END, ID, METADATA, NUMBER, START, TEXT, TITLE, Passage
from trilens.send.target import Engine, answering, require_same_form
from trilens.text.document import MAX_ID_BYTES

with needs_extra("milvus"):
    from pymilvus import DataType, MilvusClient, MilvusException

TOKEN = "MILVUS_TOKEN"
PAGE = 1000
SECONDS = 60
MOST_BYTES = 65_535  # of a text or a JSON value
TEXT_BYTES = {ID: 36, DOC_ID: MAX_ID_BYTES, TITLE: MOST_BYTES, TEXT: MOST_BYTES, DIGEST: 32}
FAILURES = (MilvusException, OSError, RuntimeError, ValueError)


class MilvusTarget:
    """A collection of Milvus."""

    def __init__(self, address: Address, name: str, layout: Layout) -> None:
        logging.getLogger("pymilvus").setLevel(logging.CRITICAL + 1)  # it prints the tracebacks of errors that it also raises
        self._address, self._name, self._layout = address, name, layout
        with self._answering():
            self._client = _connect(address)
            try:
                self._open()
            except BaseException:
                self.close()
                raise

    def stored(self) -> Iterator[tuple[str, str]]:
        """See `Destination`."""
        with self._answering():
            pages = self._client.query_iterator(
                self._name, batch_size=PAGE, output_fields=[ID, DIGEST], consistency_level="Strong"
            )
            while page := pages.next():
                yield from ((entity[ID], entity[DIGEST]) for entity in page)
            pages.close()

    def write(self, passages: Sequence[Passage]) -> None:
        """See `Destination`."""
        entities = [self._entity(passage) for passage in passages]
        with self._answering():
            self._client.upsert(self._name, entities)

    def delete(self, ids: Sequence[str]) -> None:
        """See `Destination`."""
        with self._answering():
            self._client.delete(self._name, ids=list(ids))

    def finish(self) -> None:
        """See `Destination`. Makes everything durable and indexed."""
        with self._answering():
            self._client.flush(self._name)

    def close(self) -> None:
        """See `Destination`."""
        self._client.close()

    def _answering(self) -> AbstractContextManager[None]:
        return answering(self._address, *FAILURES)

    def _open(self) -> None:
        """Create the collection, or compare it with the layout."""
        schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
        for field, most in TEXT_BYTES.items():
            schema.add_field(field, DataType.VARCHAR, is_primary=field == ID, max_length=most)
        for field in (NUMBER, START, END):
            schema.add_field(field, DataType.INT64)
        schema.add_field(METADATA, DataType.JSON)
        for dense in self._layout.of_kind(Dense):
            schema.add_field(dense.lens, DataType.FLOAT_VECTOR, dim=dense.dim)
        for sparse in self._layout.of_kind(Sparse):
            schema.add_field(sparse.lens, DataType.SPARSE_FLOAT_VECTOR)
        if self._client.has_collection(self._name):
            found = self._client.describe_collection(self._name)["fields"]
            require_same_form(self._address, self._name, _form(found), _form(schema.to_dict()["fields"]))
            self._client.load_collection(self._name)
            return
        indexes = self._client.prepare_index_params()
        for vectors in self._layout.fields:
            kind = "SPARSE_INVERTED_INDEX" if vectors.kind is Sparse else "AUTOINDEX"
            indexes.add_index(vectors.lens, index_type=kind, metric_type="IP")
        self._client.create_collection(self._name, schema=schema, index_params=indexes, consistency_level="Strong")

    def _entity(self, passage: Passage) -> dict[str, Any]:
        fields = {ID: passage.id, **passage.fields()}
        lengths = {field: len(fields[field].encode()) for field in (TITLE, TEXT)}
        lengths[METADATA] = len(passage.document.metadata_json().encode())
        for field, length in lengths.items():
            if length > MOST_BYTES:
                raise BadInput(
                    f"{field} of document {passage.document.doc_id!r} has {length:,} bytes; expected at most {MOST_BYTES:,}, "
                    "which Milvus can hold: make the collection with shorter passages, or shorten it"
                )
        if _is_wide(passage.document.metadata):
            raise BadInput(
                f"metadata of document {passage.document.doc_id!r} has an integer of more than 64 bits, which Milvus cannot "
                "hold; make it a string or a float"
            )
        return fields | {field.lens: _vector(field, passage) for field in self._layout.fields}


def engine(address: Address) -> Engine:
    """The engine at an address."""
    if address.path is not None:
        if address.path.suffix != ".db":
            raise BadInput(f"the file of Milvus Lite is {address.path}; expected a name that ends in .db")
        with needs_extra("milvus"):
            import milvus_lite  # noqa: F401
    return Engine("Milvus", frozenset({Dense, Sparse}), False, MilvusTarget)


def _connect(address: Address) -> MilvusClient:
    if address.path is not None and not address.path.absolute().parent.is_dir():
        raise BadInput(f"there is no folder {address.path.parent} for {address.path.name}; create it first")
    return MilvusClient(address.url, token=os.environ.get(TOKEN, ""), timeout=SECONDS)


def _form(fields: Sequence[dict[str, Any]]) -> dict[str, str]:
    """The types of fields, with the dimensions of dense vectors."""
    kinds = {field["name"]: DataType(field["type"]).name for field in fields}
    dims = {field["name"]: field.get("params", {}).get("dim") for field in fields}
    return {name: f"{kind} of {dims[name]} dimensions" if dims[name] else kind for name, kind in kinds.items()}


def _is_wide(value: Any) -> bool:
    """Whether some integer of a JSON value has more than 64 bits."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return any(map(_is_wide, value))
    return isinstance(value, int) and not -(1 << 63) <= value < 1 << 64


def _vector(field: VectorField, passage: Passage) -> Any:
    vector = passage.vectors[field.lens]
    if isinstance(vector, Dense):
        return vector.vectors[0]
    assert isinstance(vector, Sparse)
    # Milvus has no empty vectors; no query has the term behind the last one, so this one is never found.
    return dict(zip(vector.terms.tolist(), vector.weights.tolist(), strict=True)) or {vector.dim: 1.0}
