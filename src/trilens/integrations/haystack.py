"""Haystack: a collection as a document store, and its retriever.

The extra `trilens[haystack]` installs haystack-ai.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from trilens.collection import Collection
from trilens.errors import BadFilter, BadInput
from trilens.extras import needs_extra
from trilens.integrations.documents import metadata_of, text_of, to_document
from trilens.integrations.haystack_fields import distinct_values, field_types, smallest_and_largest
from trilens.integrations.haystack_filters import META, translate
from trilens.integrations.shared import SharedCollection
from trilens.search.hits import Hit
from trilens.text.document import Document as TrilensDocument

with needs_extra("haystack"):
    from haystack import Document, component, default_from_dict, default_to_dict
    from haystack.document_stores.errors import DuplicateDocumentError
    from haystack.document_stores.types import DuplicatePolicy, FilterPolicy, apply_filter_policy
    from haystack.errors import FilterError

RESERVED = "_haystack"  # metadata key of the fields of a document that trilens does not have, such as its embedding

Store = TypeVar("Store")
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def _in_thread(
    method: Callable[Concatenate[Store, Parameters], Result],
) -> Callable[Concatenate[Store, Parameters], Awaitable[Result]]:
    """The asynchronous form of a method: it runs in a thread."""

    @wraps(method)
    async def run(self: Store, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        return await asyncio.to_thread(method, self, *args, **kwargs)

    return run


@contextmanager
def _filter_errors() -> Iterator[None]:
    try:
        yield
    except BadFilter as error:
        raise FilterError(str(error)) from error


class HaystackDocumentStore:
    """The documents of a collection. Every change is committed at once; embeddings are stored, but not searched."""

    def __init__(self, path: str | Path, **options: Any) -> None:
        """The collection at `path`, created on first use if it does not exist, with these options of `Collection.create`."""
        self.path = str(path)
        self.options = options

    @cached_property
    def collection(self) -> Collection:
        """The collection."""
        return Collection.open_or_create(self.path, **self.options)

    @cached_property
    def _shared(self) -> SharedCollection:
        return SharedCollection(self.collection)

    def to_dict(self) -> dict[str, Any]:
        """The path and the options."""
        return default_to_dict(self, path=self.path, **self.options)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "HaystackDocumentStore":
        """A store of the same collection."""
        return default_from_dict(cls, data)

    def count_documents(self) -> int:
        """Number of documents."""
        return len(self.collection)

    def filter_documents(self, filters: dict[str, Any] | None = None) -> list[Document]:
        """The documents that pass the filters, in the order in which they were added."""
        with _filter_errors():
            return [_of_document(document) for document in self._shared.matching(translate(filters))]

    def write_documents(self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE) -> int:
        """Write documents; returns how many. Existing ids are an error unless the policy says otherwise."""
        if not isinstance(documents, list) or not all(isinstance(document, Document) for document in documents):
            raise ValueError(f"documents is {str(documents)[:80]!r}; expected a list of haystack.Document")
        if policy == DuplicatePolicy.OVERWRITE:
            self._shared.upsert(map(_to_document, documents))
            return len(documents)
        first: dict[str, Document] = {}
        for document in documents:
            first.setdefault(document.id, document)
        present = {document.doc_id for document in self._shared.get(first)}
        if policy != DuplicatePolicy.SKIP and (present or len(first) < len(documents)):
            ids = [document.id for document in documents]
            repeated = next(doc_id for doc_id in ids if doc_id in present or ids.count(doc_id) > 1)
            raise DuplicateDocumentError(
                f"document {repeated!r} exists already; expected other ids, or DuplicatePolicy.OVERWRITE"
            )
        written = [document for doc_id, document in first.items() if doc_id not in present]
        self._shared.add(map(_to_document, written))
        return len(written)

    def delete_documents(self, document_ids: list[str]) -> None:
        """Delete documents; ids that do not exist are ignored."""
        self._shared.delete(document_ids)

    def delete_all_documents(self) -> None:
        """Delete all documents."""
        self._shared.clear()

    def delete_by_filter(self, filters: dict[str, Any]) -> int:
        """Delete the documents that pass the filters; returns how many."""
        found = [document.id for document in self.filter_documents(filters)]
        self._shared.delete(found)
        return len(found)

    def update_by_filter(self, filters: dict[str, Any], meta: dict[str, Any]) -> int:
        """Change metadata of the documents that pass the filters; returns how many."""
        found = self.filter_documents(filters)
        self._shared.upsert(_to_document(replace(document, meta={**document.meta, **meta})) for document in found)
        return len(found)

    def count_documents_by_filter(self, filters: dict[str, Any]) -> int:
        """Number of documents that pass the filters."""
        return len(self.filter_documents(filters))

    def count_unique_metadata_by_filter(self, filters: dict[str, Any], metadata_fields: list[str]) -> dict[str, int]:
        """Number of distinct values of each field in the documents that pass the filters."""
        found = self.filter_documents(filters)
        return {field.removeprefix(META): len(distinct_values(found, field)) for field in metadata_fields}

    def get_metadata_fields_info(self) -> dict[str, dict[str, str]]:
        """The type of each metadata field: boolean, int, float or keyword."""
        return field_types(self.filter_documents())

    def get_metadata_field_min_max(self, metadata_field: str) -> dict[str, Any]:
        """The smallest and the largest value of a field."""
        return smallest_and_largest(self.filter_documents(), metadata_field)

    def get_metadata_field_unique_values(
        self,
        metadata_field: str,
        search_term: str | None = None,
        from_: int = 0,
        size: int = 10,
        filters: dict[str, Any] | None = None,
    ) -> tuple[list[Any], int]:
        """A page of the distinct values of a field that contain the search term, and their number."""
        values = distinct_values(self.filter_documents(filters), metadata_field)
        found = [value for value in values if (search_term or "").lower() in str(value).lower()]
        return found[from_ : from_ + size], len(found)

    def search(
        self, query: str, filters: dict[str, Any] | None, k: int, options: dict[str, Any], passages: bool = False
    ) -> list[Document]:
        """The best k documents of a query; `options` are fields of `SearchOptions`."""
        with _filter_errors():
            return [_of_hit(hit, passages) for hit in self._shared.search(query, k, translate(filters), options)]

    count_documents_async = _in_thread(count_documents)
    filter_documents_async = _in_thread(filter_documents)
    write_documents_async = _in_thread(write_documents)
    delete_documents_async = _in_thread(delete_documents)
    delete_all_documents_async = _in_thread(delete_all_documents)
    delete_by_filter_async = _in_thread(delete_by_filter)
    update_by_filter_async = _in_thread(update_by_filter)
    count_documents_by_filter_async = _in_thread(count_documents_by_filter)
    count_unique_metadata_by_filter_async = _in_thread(count_unique_metadata_by_filter)
    get_metadata_fields_info_async = _in_thread(get_metadata_fields_info)
    get_metadata_field_min_max_async = _in_thread(get_metadata_field_min_max)
    get_metadata_field_unique_values_async = _in_thread(get_metadata_field_unique_values)


@component
class HaystackRetriever:
    """Retrieves the best documents of a store, with their scores."""

    def __init__(
        self,
        document_store: HaystackDocumentStore,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        filter_policy: str | FilterPolicy = FilterPolicy.REPLACE,
        search: dict[str, Any] | None = None,
        passages: bool = False,
    ) -> None:
        """`search` has fields of `SearchOptions`, such as lenses and fusion.

        With `passages` the content of a document is its best passage, with the metadata `start` and `end`.
        """
        if not isinstance(document_store, HaystackDocumentStore):
            raise BadInput(f"document_store is {type(document_store).__name__}; expected a HaystackDocumentStore")
        self.document_store = document_store
        self.filters = filters
        self.top_k = top_k
        self.filter_policy = FilterPolicy.from_str(filter_policy) if isinstance(filter_policy, str) else filter_policy
        self.search = search or {}
        self.passages = passages

    def to_dict(self) -> dict[str, Any]:
        """The store and the parameters."""
        return default_to_dict(
            self,
            document_store=self.document_store.to_dict(),
            filters=self.filters,
            top_k=self.top_k,
            filter_policy=self.filter_policy.value,
            search=self.search,
            passages=self.passages,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "HaystackRetriever":
        """A retriever with the same store and parameters."""
        parameters = data["init_parameters"]
        store = parameters["document_store"]
        if isinstance(store, dict):
            parameters = {**parameters, "document_store": HaystackDocumentStore.from_dict(store)}
        return default_from_dict(cls, {**data, "init_parameters": parameters})

    @component.output_types(documents=list[Document])
    def run(self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None) -> dict[str, list[Document]]:
        """The best documents; `filters` replace those of the retriever, or are merged with them, as its policy says."""
        return {"documents": self._documents(query, filters, top_k)}

    @component.output_types(documents=list[Document])
    async def run_async(
        self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """The same in a thread."""
        return {"documents": await asyncio.to_thread(self._documents, query, filters, top_k)}

    def _documents(self, query: str, filters: dict[str, Any] | None, top_k: int | None) -> list[Document]:
        merged = apply_filter_policy(self.filter_policy, self.filters, filters)
        k = self.top_k if top_k is None else top_k
        return self.document_store.search(query, merged, k, self.search, self.passages)


def _to_document(document: Document) -> TrilensDocument:
    fields = document.to_dict(flatten=False)
    extra = {name: fields[name] for name in fields if name not in ("id", "content", "meta") and fields[name] is not None}
    extra |= {"content": None} if document.content is None else {}
    return to_document(document.id, document.content or "", document.meta, RESERVED, extra)


def _of_document(document: TrilensDocument, **changes: Any) -> Document:
    extra = document.metadata.get(RESERVED, {})
    own = {"id": document.doc_id, "content": document.text, "meta": metadata_of(document, RESERVED)}
    return Document.from_dict({**own, **extra, **changes})


def _of_hit(hit: Hit, passages: bool) -> Document:
    document = _of_document(hit.document, score=hit.score)
    text, place = text_of(hit, passages)
    return replace(document, content=text, meta={**document.meta, **place}) if passages else document
