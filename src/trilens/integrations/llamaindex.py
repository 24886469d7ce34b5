"""LlamaIndex: collections as retrievers and vector stores.

trilens computes the vectors itself, from the text of a node and the title in its metadata; embeddings of nodes are not stored.
The extra `trilens[llamaindex]` installs llama-index-core.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import PrivateAttr

from trilens.collection import Collection
from trilens.errors import BadInput
from trilens.extras import needs_extra
from trilens.integrations.documents import metadata_of, to_document
from trilens.integrations.filters import Filter, all_of, compare
from trilens.integrations.llamaindex_filters import translate
from trilens.integrations.shared import DENSE, SharedCollection
from trilens.search.hits import Hit
from trilens.text.document import Document as TrilensDocument

with needs_extra("llamaindex"):
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.indices.query.embedding_utils import get_top_k_mmr_embeddings
    from llama_index.core.schema import (
        BaseNode,
        Document,
        ImageDocument,
        ImageNode,
        IndexNode,
        Node,
        NodeWithScore,
        QueryBundle,
        TextNode,
    )
    from llama_index.core.vector_stores.types import (
        BasePydanticVectorStore,
        MetadataFilters,
        VectorStoreQuery,
        VectorStoreQueryMode,
        VectorStoreQueryResult,
    )

RESERVED = "_llamaindex"  # metadata key of the fields of a node that trilens does not have, such as its relationships
KINDS = {kind.class_name(): kind for kind in (TextNode, Node, Document, ImageNode, ImageDocument, IndexNode)}
RESOURCES = ("text_resource", "image_resource", "audio_resource", "video_resource")
LEAST_CANDIDATES = 20  # of maximal marginal relevance
MOST_CANDIDATES_PER_HIT = 4


class LlamaIndexRetriever(BaseRetriever):
    """Retrieves the best documents of a collection as nodes; whole documents, or their best passages."""

    def __init__(
        self,
        collection: Collection,
        similarity_top_k: int = 10,
        filters: MetadataFilters | None = None,
        passages: bool = False,
        search: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """`search` has fields of `SearchOptions`, such as lenses and fusion; `kwargs` are those of `BaseRetriever`."""
        super().__init__(**kwargs)
        self.similarity_top_k = similarity_top_k
        self._filter = translate(filters)
        self._passages = passages
        self._search = dict(search or {})
        self._shared = SharedCollection(collection)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        hits = self._shared.search(query_bundle.query_str, self.similarity_top_k, self._filter, self._search)
        make = _passage_of if self._passages else _of_hit
        return [NodeWithScore(node=make(hit), score=hit.score) for hit in hits]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


class LlamaIndexVectorStore(BasePydanticVectorStore):
    """A collection as a vector store. Every change is committed at once.

    Queries use all lenses of the collection unless `search` names some: its items are fields of `SearchOptions`. The query
    modes are DEFAULT, TEXT_SEARCH and SPARSE (the lens `bm25`), HYBRID (`bm25` and `dense`, weighted by `alpha`), and MMR.
    """

    stores_text: bool = True
    is_embedding_query: bool = False

    _shared: SharedCollection = PrivateAttr()
    _search: dict[str, Any] = PrivateAttr()

    def __init__(self, collection: Collection, **search: Any) -> None:
        super().__init__()
        self._shared = SharedCollection(collection)
        self._search = search

    @classmethod
    def class_name(cls) -> str:
        """The name of the class for LlamaIndex."""
        return cls.__name__

    @property
    def client(self) -> Collection:
        """The collection."""
        return self._shared.collection

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Add nodes, and replace those with existing ids; returns their ids."""
        self._shared.upsert(map(_to_document, nodes))
        return [node.node_id for node in nodes]

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """The same in a thread."""
        return await asyncio.to_thread(self.add, nodes)

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete the nodes of a source document."""
        self._delete(_of_sources([ref_doc_id]))

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """The same in a thread."""
        await asyncio.to_thread(self.delete, ref_doc_id)

    def get_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None) -> list[BaseNode]:
        """The nodes with these ids that pass the filters."""
        if filters is None and node_ids is not None:
            return [_of_document(document) for document in self._shared.get(node_ids)]
        matching = self._shared.matching(translate(filters))
        return [_of_document(document) for document in matching if node_ids is None or document.doc_id in node_ids]

    async def aget_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None) -> list[BaseNode]:
        """The same in a thread."""
        return await asyncio.to_thread(self.get_nodes, node_ids, filters)

    def delete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """Delete the nodes with these ids that pass the filters; at least one of both has to be given."""
        if node_ids is None and filters is None:
            raise BadInput("neither node_ids nor filters are given; expected one of them, or clear() to delete all nodes")
        self._shared.delete([node.node_id for node in self.get_nodes(node_ids, filters)])

    async def adelete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """The same in a thread."""
        await asyncio.to_thread(self.delete_nodes, node_ids, filters)

    def clear(self) -> None:
        """Delete all nodes."""
        self._shared.clear()

    async def aclear(self) -> None:
        """The same in a thread."""
        await asyncio.to_thread(self.clear)

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """The best nodes for a query text; for a query vector, through the lens `dense`, if there is no text."""
        hits = self._hits(query, _filter_of(query))
        scores = [hit.score for hit in hits]
        return VectorStoreQueryResult(nodes=list(map(_of_hit, hits)), similarities=scores, ids=[hit.doc_id for hit in hits])

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """The same in a thread."""
        return await asyncio.to_thread(self.query, query, **kwargs)

    def _delete(self, filter: Filter) -> None:
        self._shared.delete([document.doc_id for document in self._shared.matching(filter)])

    def _hits(self, query: VectorStoreQuery, filter: Filter) -> list[Hit]:
        k = query.similarity_top_k
        match query.mode:
            case VectorStoreQueryMode.DEFAULT:
                return self._nearest(query, k, filter)
            case VectorStoreQueryMode.TEXT_SEARCH | VectorStoreQueryMode.SPARSE:
                sparse = query.mode == VectorStoreQueryMode.SPARSE
                return self._by_text(query, (query.sparse_top_k if sparse else None) or k, filter, lenses=["bm25"])
            case VectorStoreQueryMode.HYBRID:
                return self._by_text(query, query.hybrid_top_k or k, filter, **_hybrid(query.alpha))
            case VectorStoreQueryMode.MMR:
                candidates = self._nearest(query, max(LEAST_CANDIDATES, MOST_CANDIDATES_PER_HIT * k), filter)
                return self._diverse(query, candidates)
        raise BadInput(f"query mode is {query.mode.value!r}; expected default, text_search, sparse, hybrid or mmr")

    def _nearest(self, query: VectorStoreQuery, k: int, filter: Filter) -> list[Hit]:
        if not query.query_str and query.query_embedding is not None:
            return self._shared.search_by_vector(query.query_embedding, k, filter)
        return self._by_text(query, k, filter)

    def _by_text(self, query: VectorStoreQuery, k: int, filter: Filter, **options: Any) -> list[Hit]:
        return self._shared.search(query.query_str or "", k, filter, {**self._search, **options})

    def _diverse(self, query: VectorStoreQuery, hits: Sequence[Hit]) -> list[Hit]:
        """The hits selected for relevance and diversity, in the order of selection, with their own scores."""
        if not hits:
            return []
        vector = self._shared.query_vector(query.query_str) if query.query_str else query.query_embedding
        _, chosen = get_top_k_mmr_embeddings(
            vector,
            self._shared.passage_vectors(hits).tolist(),
            similarity_top_k=query.similarity_top_k,
            mmr_threshold=query.mmr_threshold,
        )
        return [hits[i] for i in chosen]


def _hybrid(alpha: float | None) -> dict[str, Any]:
    """Search options: 0 is bm25 alone, 1 is dense alone."""
    if alpha is None:
        return {"lenses": ["bm25", DENSE]}
    if alpha in (0, 1):
        return {"lenses": [DENSE if alpha else "bm25"], "fusion": None}
    return {"lenses": ["bm25", DENSE], "fusion": f"zscore:bm25={1 - alpha},{DENSE}={alpha}"}


def _filter_of(query: VectorStoreQuery) -> Filter:
    """The filters of a query, and its restriction to nodes or to source documents; those have to be of LlamaIndex."""
    filters = [translate(query.filters)]
    if query.node_ids:  # an index passes an empty list for no restriction
        filters.append(compare(f"{RESERVED}.id_", "$in", query.node_ids))
    if query.doc_ids:
        filters.append(_of_sources(query.doc_ids))
    return all_of([filter for filter in filters if filter])


def _of_sources(ref_doc_ids: list[str]) -> Filter:
    return compare(f"{RESERVED}.ref_doc_id", "$in", ref_doc_ids)


def _to_document(node: BaseNode) -> TrilensDocument:
    if type(node) is not KINDS.get(node.class_name()):
        raise BadInput(f"node {node.node_id!r} is a {type(node).__name__}; expected one of {', '.join(KINDS)}")
    if any(getattr(getattr(node, name, None), "data", None) for name in RESOURCES):
        raise BadInput(f"node {node.node_id!r} holds binary data, which LlamaIndex does not serialise; expected a path or url")
    extra = node.model_dump(mode="json", exclude_defaults=True, exclude={"metadata", "embedding", "text"})
    if "text_resource" in extra:
        extra["text_resource"].pop("text", None)
    extra |= {"id_": node.node_id, "class_name": node.class_name(), "ref_doc_id": node.ref_doc_id}
    return to_document(node.node_id, node.get_content(), node.metadata, RESERVED, extra)


def _of_document(document: TrilensDocument) -> BaseNode:
    """The node that was added, or a text node of a document that another program added."""
    extra = {**document.metadata.get(RESERVED, {}), "metadata": metadata_of(document, RESERVED)}
    kind = KINDS[extra.pop("class_name", TextNode.class_name())]
    extra.pop("ref_doc_id", None)
    if issubclass(kind, TextNode):
        extra["text"] = document.text
    elif "text_resource" in extra:
        extra["text_resource"] = {**extra["text_resource"], "text": document.text}
    return kind.from_dict({"id_": document.doc_id, **extra})


def _of_hit(hit: Hit) -> BaseNode:
    return _of_document(hit.document)


def _passage_of(hit: Hit) -> TextNode:
    metadata = metadata_of(hit.document, RESERVED)
    return TextNode(id_=hit.doc_id, text=hit.passage, metadata=metadata, start_char_idx=hit.start, end_char_idx=hit.end)
