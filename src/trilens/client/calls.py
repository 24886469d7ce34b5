"""`Call`: one request to the service and how its answer is read; and a function for each request."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote

from pydantic import BaseModel

from trilens.client.representations import Representations, read_representations
from trilens.errors import BadInput
from trilens.explain.explanation import Explanation
from trilens.explain.word import Word
from trilens.frozen import Frozen
from trilens.search.hits import Hit, read_hit
from trilens.store.changes import Changes
from trilens.text.document import Document

if TYPE_CHECKING:  # what it imports would take most of the time of importing the client
    from trilens.search.options import SearchOptions

PREFIX = "/api/v1"
DOCUMENTS_AT_ONCE = 100  # as many as the service lists or deletes in one request
CHARACTERS_AT_ONCE = 500_000  # at most 6 MB as JSON
Result = TypeVar("Result")
Page = tuple[list[Document], int | None]
"""Documents, and where the next page begins."""


@dataclass(frozen=True, slots=True)
class Call(Generic[Result]):
    """One request. `repeatable`: sending it again after a refusal has the same effect and answer as sending it once."""

    method: str
    path: str
    read: Callable[[Any], Result]
    query: Sequence[tuple[str, str]] = ()
    body: Mapping[str, Any] | None = None
    repeatable: bool = True

    def content(self) -> bytes | None:
        """The body as JSON."""
        if self.body is None:
            return None
        try:
            return json.dumps(self.body, allow_nan=False, default=_plain).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise BadInput(f"the request cannot be written as JSON: {error}") from error


def list_collections() -> Call[list[dict[str, Any]]]:
    """Facts about all collections."""
    return Call("GET", "/collections", lambda answer: list(answer["collections"]))


def info(name: str) -> Call[dict[str, Any]]:
    """Facts about a collection."""
    return Call("GET", _of(name), dict)


def search(
    name: str, queries: Sequence[str], k: int | None, options: "SearchOptions | None", settings: Mapping[str, Any]
) -> Call[list[list[Hit]]]:
    """The hits of each query."""

    def read(answer: Any) -> list[list[Hit]]:
        return [[read_hit(hit) for hit in one["hits"]] for one in answer["answers"]]

    if isinstance(queries, str):
        raise BadInput("queries is one string; expected a list of them: put it into a list")
    if not len(queries):
        raise BadInput("queries is empty; expected one or more texts")
    body = {**_options(options, k, settings), "queries": list(queries), "document_texts": True}
    return Call("POST", _of(name, "/search"), read, body=body)


def explain(
    name: str, query: str, doc_id: str, options: "SearchOptions | None", settings: Mapping[str, Any]
) -> Call[Explanation]:
    """The explanation of a score."""
    body = {**_options(options, None, settings), "query": query, "doc_ids": [doc_id]}
    return Call("POST", _of(name, "/explain"), lambda answer: Explanation.from_json(answer["explanations"][0]), body=body)


def disentangle(name: str, text: str, passage: bool, top: int | None) -> Call[list[Word]]:
    """The vocabulary terms of a text."""
    body = {"text": text, "side": "doc" if passage else "query", "top": top}
    return Call("POST", _of(name, "/disentangle"), lambda answer: [Word(**word) for word in answer["words"]], body=body)


def encode(texts: Sequence[str], side: str, heads: Sequence[str] | None, collection: str | None) -> Call[Representations]:
    """The representations of texts."""
    if isinstance(texts, str):
        raise BadInput("texts is one string; expected a list of them: put it into a list")
    body = {"texts": list(texts), "side": side, "heads": None if heads is None else list(heads), "collection": collection}
    return Call("POST", "/encode", read_representations, body=body)


def get(name: str, doc_id: str) -> Call[Document | None]:
    """A document; None if there is none with this id."""
    query = [("id", _require_id(doc_id))]  # some ids, such as "..", cannot be part of a path
    return Call("GET", _of(name, "/documents"), lambda page: next(map(_document, page["documents"]), None), query)


def list_documents(name: str, after: int) -> Call[Page]:
    """A page of documents."""
    query = [("after", str(after)), ("limit", str(DOCUMENTS_AT_ONCE))]
    return Call("GET", _of(name, "/documents"), lambda page: (list(map(_document, page["documents"])), page["next"]), query)


def put(name: str, documents: Iterable[Document], *, replace: bool) -> Call[Changes]:
    """Add documents in one commit; `replace` those with existing ids, or refuse them all."""
    plain = [asdict(_require_document(document)) for document in documents]
    body = {"documents": plain, "replace": replace}
    return Call("PUT", _of(name, "/documents"), _changes, body=body, repeatable=replace)


def delete(name: str, doc_ids: Sequence[str]) -> Call[list[str]]:
    """Delete documents; the ids that do not exist."""
    query = [("id", doc_id) for doc_id in doc_ids]
    return Call("DELETE", _of(name, "/documents"), lambda answer: list(answer["missing"]), query, repeatable=False)


def batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Documents in lists that one request can hold."""
    batch: list[Document] = []
    characters = 0
    for document in documents:
        length = len(_require_document(document).text) + len(document.title) + len(document.metadata_json())
        if batch and (len(batch) == DOCUMENTS_AT_ONCE or characters + length > CHARACTERS_AT_ONCE):
            yield batch
            batch, characters = [], 0
        batch.append(document)
        characters += length
    if batch:
        yield batch


def id_batches(doc_ids: Iterable[str]) -> Iterator[list[str]]:
    """Ids in lists that one request can hold."""
    if isinstance(doc_ids, str):
        raise BadInput("doc_ids is one string; expected a list of them: put it into a list")
    ids = [_require_id(doc_id) for doc_id in doc_ids]
    return (ids[start : start + DOCUMENTS_AT_ONCE] for start in range(0, len(ids), DOCUMENTS_AT_ONCE))


def _of(name: str, action: str = "") -> str:
    return f"/collections/{quote(name, safe='')}{action}"


def _options(options: "SearchOptions | None", k: int | None, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a request. The service validates them, so that no lens has to be installed here."""
    if options is not None and not isinstance(options, Frozen):
        raise BadInput(f"options is {type(options).__name__}; expected SearchOptions: pass its fields as keyword arguments")
    given = {} if options is None else _plain(options)
    return {**given, **({} if k is None else {"k": k}), **settings}


def _plain(value: Any) -> Any:
    """What JSON can hold: options as the fields that were set, numbers of numpy as those of Python."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_unset=True)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not JSON")


def _require_id(doc_id: object) -> str:
    if not isinstance(doc_id, str) or not doc_id:
        raise BadInput(f"doc_id is {doc_id!r}; expected a non-empty string")
    return doc_id


def _require_document(document: object) -> Document:
    if not isinstance(document, Document):
        raise BadInput(f"got {type(document).__name__}; expected a trilens.Document")
    return document


def _document(plain: Mapping[str, Any]) -> Document:
    return Document(**plain)


def _changes(answer: Mapping[str, Any]) -> Changes:
    return Changes(**{field.name: answer[field.name] for field in fields(Changes)})
