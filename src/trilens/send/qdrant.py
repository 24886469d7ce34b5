"""Qdrant: a point per passage with named vectors; token vectors are a multi-vector, compared by MaxSim."""

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from trilens.errors import ServiceFailed
from trilens.extras import needs_extra
from trilens.represent import Dense, Multi, Sparse
from trilens.send.address import Address
from trilens.send.layout import Layout, VectorField
from trilens.send.passages import DIGEST, Passage, values
from trilens.send.target import Engine, answering, failed, require_same_form

with needs_extra("qdrant"):
    from qdrant_client import QdrantClient, models
    from qdrant_client.http.exceptions import ApiException, UnexpectedResponse

KEY = "QDRANT_API_KEY"
PAGE = 1000
SECONDS = 60
# The client raises RuntimeError for a folder that is in use, and ValueError for one that is not its own.
FAILURES = (ApiException, RuntimeError, ValueError, OSError)


class QdrantTarget:
    """A collection of Qdrant."""

    def __init__(self, address: Address, name: str, layout: Layout) -> None:
        self._address, self._name, self._layout = address, name, layout
        with self._answering():
            self._client = _connect(address)
            try:
                self._open()
            except UnexpectedResponse as error:
                self.close()
                if error.status_code in (401, 403):
                    raise _refused(address) from error
                raise
            except BaseException:
                self.close()
                raise

    def stored(self) -> Iterator[tuple[str, str]]:
        """See `Destination`."""
        offset, first = None, True
        while first or offset is not None:
            with self._answering():
                points, offset = self._client.scroll(self._name, limit=PAGE, offset=offset, with_payload=[DIGEST])
            yield from ((str(point.id), str((point.payload or {}).get(DIGEST, ""))) for point in points)
            first = False

    def write(self, passages: Sequence[Passage]) -> None:
        """See `Destination`."""
        points = [
            models.PointStruct(id=passage.id, payload=passage.fields(), vector=self._vectors(passage)) for passage in passages
        ]
        with self._answering():
            self._client.upsert(self._name, points, wait=True)

    def delete(self, ids: Sequence[str]) -> None:
        """See `Destination`."""
        with self._answering():
            self._client.delete(self._name, models.PointIdsList(points=list(ids)), wait=True)

    def finish(self) -> None:
        """See `Destination`. Nothing remains."""

    def close(self) -> None:
        """See `Destination`."""
        self._client.close()

    def _answering(self) -> AbstractContextManager[None]:
        return answering(self._address, *FAILURES)

    def _open(self) -> None:
        """Create the collection, or compare it with the layout."""
        token_settings = models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)
        no_graph = models.HnswConfigDiff(m=0)  # of all tokens it would be large; MaxSim is exact without, and re-ranks
        dense = {
            field.lens: models.VectorParams(size=field.dim, distance=models.Distance.DOT)
            if field.kind is Dense
            else models.VectorParams(
                size=field.dim, distance=models.Distance.DOT, multivector_config=token_settings, hnsw_config=no_graph
            )
            for field in self._layout.fields
            if field.kind is not Sparse
        }
        sparse = {field.lens: models.SparseVectorParams() for field in self._layout.of_kind(Sparse)}
        if not self._client.collection_exists(self._name):
            self._client.create_collection(self._name, vectors_config=dense, sparse_vectors_config=sparse)
            return
        found = self._client.get_collection(self._name).config.params
        require_same_form(
            self._address, self._name, _form(found.vectors or {}, found.sparse_vectors or {}), _form(dense, sparse)
        )

    def _vectors(self, passage: Passage) -> dict[str, Any]:
        """The named vectors of a point; empty ones are left out."""
        vectors = {field.lens: _vector(field, passage) for field in self._layout.fields}
        return {lens: vector for lens, vector in vectors.items() if vector is not None}


def engine(address: Address) -> Engine:
    """The engine at an address."""
    return Engine("Qdrant", frozenset({Dense, Sparse, Multi}), False, QdrantTarget)


def _connect(address: Address) -> QdrantClient:
    if address.path is not None:
        return QdrantClient(path=str(address.path))
    return QdrantClient(url=address.url, api_key=os.environ.get(KEY), timeout=SECONDS, check_compatibility=False)


def _refused(address: Address) -> ServiceFailed:
    given = f"the key in {KEY}" if os.environ.get(KEY) else "a request without a key"
    return failed(address, f"it refuses {given}", f"set {KEY} to a key that may write")


def _form(vectors: Any, sparse: Any) -> dict[str, str]:
    """The form of each vector of a collection; "" is the name of the vector of a collection without names."""
    named = vectors if isinstance(vectors, dict) else {"": vectors}
    kinds = {name: "token vectors" if params.multivector_config else "dense vectors" for name, params in named.items()}
    form = {name: f"{kinds[name]} of {params.size} dimensions, {params.distance}" for name, params in named.items()}
    return form | dict.fromkeys(sparse, "sparse vectors")


def _vector(field: VectorField, passage: Passage) -> Any:
    vector = passage.vectors[field.lens]
    match vector:
        case Dense():
            return values(vector.vectors[0])
        case Sparse():
            return (
                models.SparseVector(indices=vector.terms.tolist(), values=values(vector.weights)) if len(vector.terms) else None
            )
        case Multi():
            return [values(token) for token in vector.vectors] or None
