"""LangChain: collections as retrievers and vector stores. Filters are those of trilens.

The extra `trilens[langchain]` installs langchain-core.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from pydantic import ConfigDict, Field, PrivateAttr

from trilens.collection import Collection
from trilens.errors import BadInput
from trilens.extras import needs_extra
from trilens.integrations.documents import metadata_of, text_of, to_document
from trilens.integrations.embeddings import FunctionEncoder
from trilens.integrations.shared import DENSE, SharedCollection
from trilens.kernels.array_types import Float32s
from trilens.search.hits import Hit
from trilens.text.document import Document as TrilensDocument

with needs_extra("langchain"):
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables.config import run_in_executor
    from langchain_core.vectorstores import VectorStore
    from langchain_core.vectorstores.utils import maximal_marginal_relevance

Filter = Mapping[str, Any]


def embeddings_encoder(embeddings: Embeddings) -> FunctionEncoder:
    """The encoder of `Collection.create(encoder=…)` and `Collection.open(encoder=…)` that embeds with a LangChain object."""
    return FunctionEncoder(embeddings, embeddings.embed_documents, lambda texts: list(map(embeddings.embed_query, texts)))


class LangChainRetriever(BaseRetriever):
    """Retrieves the best documents of a collection; whole documents, or their best passages.

    k           number of documents
    search      fields of `SearchOptions`, such as lenses, fusion, rerank and filter
    passages    return the best passage instead of the whole text, with the metadata `start` and `end`
    score_key   a metadata key that receives the score
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    collection: Collection
    k: int = Field(default=10, ge=1)
    search: dict[str, Any] = Field(default_factory=dict)
    passages: bool = False
    score_key: str | None = None

    _shared: SharedCollection = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Wrap the collection."""
        super().model_post_init(context)
        self._shared = SharedCollection(self.collection)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None, filter: Filter | None = None
    ) -> list[Document]:
        return self._retrieve(query, k, filter)

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: Filter | None = None,
    ) -> list[Document]:
        return await run_in_executor(None, self._retrieve, query, k, filter)

    def _retrieve(self, query: str, k: int | None, filter: Filter | None) -> list[Document]:
        hits = self._shared.search(query, self.k if k is None else k, filter, self.search)
        return [_of_hit(hit, self.passages, self.score_key) for hit in hits]


class LangChainVectorStore(VectorStore):
    """A collection as a vector store. Every change is committed at once.

    Searches use all lenses of the collection unless `search` names some: its items are fields of `SearchOptions`. Methods that
    need vectors use the lens `dense`.
    """

    def __init__(self, collection: Collection, embeddings: Embeddings | None = None, **search: Any) -> None:
        """`embeddings` is the object that the collection was created with, if there is one."""
        self.collection = collection
        self.search_options = search
        self._embeddings = embeddings
        self._shared = SharedCollection(collection)

    @property
    def embeddings(self) -> Embeddings | None:
        """The embeddings that the collection was created with; None if it uses a model of trilens."""
        return self._embeddings

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        path: str | Path | None = None,
        **options: Any,
    ) -> "LangChainVectorStore":
        """A store of these texts in the collection at `path`, which is created if it does not exist.

        `embedding` computes the dense vectors; None uses the model of trilens. `options` are those of `Collection.create`.
        """
        if path is None:
            raise BadInput("path is missing; expected the folder of the collection, such as path='my.trilens'")
        encoder = None if embedding is None else embeddings_encoder(embedding)
        store = cls(Collection.open_or_create(path, encoder=encoder, **options), embedding)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add texts, and replace those with existing ids; returns their ids. Texts without an id get a random one."""
        listed = list(texts)
        for name, given in (("metadatas", metadatas), ("ids", ids)):
            if given is not None and len(given) != len(listed):
                raise BadInput(f"{name} has {len(given)} elements for {len(listed)} texts; expected as many as texts")
        doc_ids = [doc_id or str(uuid4()) for doc_id in (ids or [None] * len(listed))]
        parts = zip(doc_ids, listed, metadatas or repeat({}), strict=False)
        self._shared.upsert(to_document(doc_id, text, metadata) for doc_id, text, metadata in parts)
        return doc_ids

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        """Delete documents, all if `ids` is None; ids that do not exist are ignored."""
        if ids is None:
            self._shared.clear()
        else:
            self._shared.delete(ids)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents with these ids; ids that do not exist are left out."""
        return [_of_document(document) for document in self._shared.get(ids)]

    def similarity_search(self, query: str, k: int = 4, filter: Filter | None = None, **search: Any) -> list[Document]:
        """The best k documents. `search` overrides the search options of the store."""
        return [_of_hit(hit) for hit in self._hits(query, k, filter, search)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, filter: Filter | None = None, **search: Any
    ) -> list[tuple[Document, float]]:
        """The best k documents with their scores; higher is better."""
        return [(_of_hit(hit), hit.score) for hit in self._hits(query, k, filter, search)]

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, filter: Filter | None = None, **kwargs: Any
    ) -> list[Document]:
        """The best k documents for a query vector, by inner product."""
        return [_of_hit(hit) for hit in self._shared.search_by_vector(embedding, k, filter)]

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Filter | None = None,
        **search: Any,
    ) -> list[Document]:
        """k of the best `fetch_k` documents, selected for relevance and diversity by the dense vectors of their passages."""
        hits = self._hits(query, fetch_k, filter, search)
        return list(self._diverse(self._shared.query_vector(query), hits, k, lambda_mult))

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Filter | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Like `max_marginal_relevance_search`, for a query vector."""
        return list(self._diverse(embedding, self._shared.search_by_vector(embedding, fetch_k, filter), k, lambda_mult))

    def _similarity_search_with_relevance_scores(
        self, query: str, k: int = 4, filter: Filter | None = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """Scores from 0 to 1: the cosines of the lens `dense`, negative ones as 0.

        Of the search options of the store, only the filter applies.
        """
        options = {"lenses": [DENSE], "filter": self.search_options.get("filter")}
        hits = self._shared.search(query, k, filter, options)
        return [(_of_hit(hit), min(1.0, max(0.0, hit.score))) for hit in hits]

    async def _asimilarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        return await run_in_executor(None, self._similarity_search_with_relevance_scores, query, k, **kwargs)

    def _hits(self, query: str, k: int, filter: Filter | None, search: Mapping[str, Any]) -> list[Hit]:
        return self._shared.search(query, k, filter, {**self.search_options, **search})

    def _diverse(
        self, vector: Sequence[float] | Float32s, hits: Sequence[Hit], k: int, lambda_mult: float
    ) -> Iterator[Document]:
        if hits:
            vectors = self._shared.passage_vectors(hits).tolist()
            yield from (_of_hit(hits[i]) for i in maximal_marginal_relevance(np.array(vector), vectors, lambda_mult, k))


def _of_document(document: TrilensDocument) -> Document:
    return Document(id=document.doc_id, page_content=document.text, metadata=metadata_of(document))


def _of_hit(hit: Hit, passages: bool = False, score_key: str | None = None) -> Document:
    text, place = text_of(hit, passages)
    score = {} if score_key is None else {score_key: hit.score}
    return Document(id=hit.doc_id, page_content=text, metadata={**metadata_of(hit.document), **place, **score})
