"""The synchronous client."""

import ssl
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import httpx

from trilens.client import calls
from trilens.client.calls import Call, Result
from trilens.client.endpoint import Endpoint
from trilens.client.representations import Representations
from trilens.explain.explanation import Explanation
from trilens.explain.word import Word
from trilens.search.hits import Hit
from trilens.store.changes import Changes
from trilens.text.document import Document

if TYPE_CHECKING:
    from trilens.search.options import SearchOptions


class Client:
    """A connection to a service; threads may share it. `AsyncClient` has the same methods, to be awaited.

    `timeout` is in seconds. `retries`: how often a request is sent again if the service is overloaded and says when to retry;
    `add` and `delete` are sent once. `verify`: an SSL context for certificates of an own authority, or False to accept any.
    """

    def __init__(
        self,
        address: str,
        *,
        key: str | None = None,
        timeout: float = 60.0,
        retries: int = 2,
        verify: ssl.SSLContext | bool = True,
    ) -> None:
        self._endpoint = Endpoint(address, key, timeout, retries, verify)
        self._http = httpx.Client(**self._endpoint.settings())

    def collections(self) -> list[dict[str, Any]]:
        """Name, number of documents, lenses and model of each collection."""
        return self.send(calls.list_collections())

    def collection(self, name: str) -> "RemoteCollection":
        """A collection of the service. Whether it exists shows with the first request."""
        return RemoteCollection(self, name)

    def send(self, call: Call[Result]) -> Result:
        """Send a request, again if the service asks for it and it may be repeated."""
        for sent in count(1):
            try:
                response = self._http.request(**self._endpoint.arguments(call))
            except httpx.HTTPError as error:
                raise self._endpoint.unreachable(error) from error
            pause = self._endpoint.pause(call, response, sent)
            if pause is None:
                return self._endpoint.result(call, response)
            time.sleep(pause)
        raise AssertionError

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class RemoteCollection:
    """A collection of a service, with the methods of `Collection` that the service offers. Each change is a commit."""

    def __init__(self, client: Client, name: str) -> None:
        self.client, self.name = client, name

    def search(
        self, queries: Sequence[str], k: int | None = None, *, options: "SearchOptions | None" = None, **settings: Any
    ) -> list[list[Hit]]:
        """The best k documents of each query; see `Collection.search`."""
        return self.client.send(calls.search(self.name, queries, k, options, settings))

    def explain(self, query: str, doc_id: str, *, options: "SearchOptions | None" = None, **settings: Any) -> Explanation:
        """Why a search with these options gives a document its score; see `Collection.explain`."""
        return self.client.send(calls.explain(self.name, query, doc_id, options, settings))

    def get(self, doc_id: str) -> Document | None:
        """A document by its id."""
        return self.client.send(calls.get(self.name, doc_id))

    def documents(self) -> Iterator[Document]:
        """All documents in the order in which they were added, requested page by page."""
        after: int | None = 0
        while after is not None:
            page, after = self.client.send(calls.list_documents(self.name, after))
            yield from page

    def add(self, documents: Iterable[Document]) -> Changes:
        """Add documents in one request and one commit; an existing id is an error, after which none of them is added."""
        return self.client.send(calls.put(self.name, documents, replace=False))

    def upsert(self, documents: Iterable[Document]) -> Changes:
        """Add documents and replace those with existing ids, in one request and one commit."""
        return self.client.send(calls.put(self.name, documents, replace=True))

    def ingest(self, documents: Iterable[Document]) -> Changes:
        """Upsert a long stream of documents, with a request and a commit for each part of it."""
        changes = Changes()
        for batch in calls.batches(documents):
            changes += self.upsert(batch)
        return changes

    def delete(self, doc_ids: Iterable[str]) -> list[str]:
        """Delete documents, 100 per commit; returns the ids that do not exist."""
        return [missing for ids in calls.id_batches(doc_ids) for missing in self.client.send(calls.delete(self.name, ids))]

    def info(self) -> dict[str, Any]:
        """Number of documents, lenses, model and its heads, and the commit."""
        return self.client.send(calls.info(self.name))

    def disentangle(self, text: str, *, passage: bool = False, top: int | None = None) -> list[Word]:
        """The vocabulary terms that a text activates, heaviest first; see `Collection.disentangle`."""
        return self.client.send(calls.disentangle(self.name, text, passage, top))

    def encode(self, texts: Sequence[str], side: str = "query", heads: Sequence[str] | None = None) -> Representations:
        """Representations of texts by the heads of the collection's model; `side` is query or doc."""
        return self.client.send(calls.encode(texts, side, heads, self.name))
