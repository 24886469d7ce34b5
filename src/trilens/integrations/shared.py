"""`SharedCollection`: a collection behind an interface of a framework, which several threads may use."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final

import numpy as np

from trilens.collection import Collection
from trilens.encode.encoder import Encoded
from trilens.errors import BadInput
from trilens.kernels.array_types import Float32s
from trilens.represent import Dense
from trilens.search.fusion import rank_alone
from trilens.search.hits import Hit
from trilens.search.ranking import best_documents
from trilens.search.search import to_hits
from trilens.text.document import Document
from trilens.text.passages import passage_text

DENSE: Final = "dense"


def require_collection(given: object) -> None:
    """Refuse anything else, such as the path of a collection."""
    if not isinstance(given, Collection):
        raise BadInput(f"got {type(given).__name__}; expected a trilens.Collection: open it with Collection.open(path)")


class SharedCollection:
    """Changes are made one at a time and committed at once; after an error nothing is changed."""

    def __init__(self, collection: Collection) -> None:
        require_collection(collection)
        self.collection = collection
        self._lock = Lock()

    @contextmanager
    def _change(self) -> Iterator[Collection]:
        with self._lock:
            try:
                yield self.collection
            except BaseException:
                self.collection.rollback()
                raise
            self.collection.commit()

    def add(self, documents: Iterable[Document]) -> None:
        """Add documents; an existing id is an error."""
        with self._change() as collection:
            collection.add(documents)

    def upsert(self, documents: Iterable[Document]) -> None:
        """Add documents and replace those with existing ids."""
        with self._change() as collection:
            collection.upsert(documents)

    def delete(self, doc_ids: Iterable[str]) -> list[str]:
        """Delete documents; returns the ids that do not exist."""
        with self._change() as collection:
            return collection.delete(doc_ids)

    def clear(self) -> None:
        """Delete all documents."""
        self.delete([document.doc_id for document in self.collection.documents()])

    def get(self, doc_ids: Iterable[str]) -> list[Document]:
        """The documents with these ids, in this order; ids that do not exist are left out."""
        found = (self.collection.get(doc_id) for doc_id in doc_ids)
        return [document for document in found if document is not None]

    def matching(self, filter: Mapping[str, Any]) -> list[Document]:
        """The documents that pass a filter, in the order in which they were added."""
        snapshot = self.collection.snapshot
        keys = np.unique(snapshot.keys_of(np.flatnonzero(snapshot.mask(filter)))).tolist()
        documents = snapshot.documents(keys)
        return [documents[key] for key in keys]

    def search(self, query: str, k: int, filter: Mapping[str, Any] | None, options: Mapping[str, Any]) -> list[Hit]:
        """The best k documents of one query. `options` are fields of `SearchOptions`; a filter among them holds as well."""
        filters = [given for given in (options.get("filter"), filter) if given]
        both = {"$and": filters} if len(filters) > 1 else next(iter(filters), None)
        return self.collection.search([query], **{**options, "k": k, "filter": both})[0]

    def search_by_vector(self, vector: Sequence[float], k: int, filter: Mapping[str, Any] | None) -> list[Hit]:
        """The best k documents for a query vector, by its inner product with the dense vectors of the passages."""
        self._require_dense()
        snapshot = self.collection.snapshot
        if not snapshot.rows:
            return []
        query = Encoded(dense=Dense(np.array([vector], np.float32)))
        return to_hits(snapshot, rank_alone(DENSE, best_documents(snapshot, DENSE, query, k, filter)))[0]

    def query_vector(self, query: str) -> Float32s:
        """The dense vector of a query by the collection's model."""
        self._require_dense()
        return _vectors(self.collection.model.encoder.encode_queries([query], heads=[DENSE]))[0]

    def passage_vectors(self, hits: Sequence[Hit]) -> Float32s:
        """The dense vectors of the passages of hits, computed by the collection's model."""
        self._require_dense()
        texts = [passage_text(hit.document, hit.start, hit.end) for hit in hits]
        return _vectors(self.collection.model.encoder.encode_docs(texts, heads=[DENSE]))

    def _require_dense(self) -> None:
        if DENSE not in self.collection.lenses:
            raise BadInput(
                f"the lenses of {self.collection.path} are {', '.join(self.collection.lenses)}; expected {DENSE} for a search "
                "that uses vectors: create the collection with it"
            )


def _vectors(encoded: Encoded) -> Float32s:
    assert encoded.dense is not None  # the head was asked for
    return encoded.dense.vectors
