"""Requests and responses of the HTTP API that are not types of the library."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from trilens.encode.folder import Head
from trilens.encode.reading import Side
from trilens.explain.explanation import Explanation
from trilens.explain.word import Word
from trilens.search.hits import SerializedHit
from trilens.search.options import SearchOptions
from trilens.text.document import Document

Count = Annotated[int, Field(strict=True, ge=1)]
Text = Annotated[str, Field(min_length=1)]
Metadata = dict[str, Any]


class RequestBody(BaseModel):
    """A request body; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class SearchRequest(SearchOptions):
    """Queries and search options."""

    queries: Annotated[list[Text], Field(min_length=1)]
    document_texts: bool = Field(False, description="Add the whole texts of the documents to the hits.")


class ExplainRequest(SearchOptions):
    """Documents whose scores to explain, with the query and options of the search."""

    query: Text
    doc_ids: Annotated[list[str], Field(min_length=1)]


class DisentangleRequest(RequestBody):
    """A text to map to weighted vocabulary terms."""

    text: Text
    side: Side = "query"
    top: Count | None = Field(30, description="Number of terms; null: all.")
    whole_words: bool = Field(False, description="Leave out word pieces; a split word of the text stands for its pieces.")


class EncodeRequest(RequestBody):
    """Texts to encode with the model of a collection."""

    texts: Annotated[list[str], Field(min_length=1)]
    side: Side = "query"
    heads: Annotated[list[Head], Field(min_length=1)] | None = Field(None, description="Default: all heads of the model.")
    collection: str | None = Field(None, description="The collection whose model encodes. Default: the first that has a model.")


class DocumentContent(RequestBody):
    """A document without its id, which is part of the path."""

    text: str
    title: str = ""
    metadata: Metadata = {}


class DocumentBody(DocumentContent):
    """A document to add."""

    doc_id: Text


class DocumentsRequest(RequestBody):
    """Documents to add."""

    documents: Annotated[list[DocumentBody], Field(min_length=1)]
    replace: bool = Field(True, description="Replace documents with existing ids; false: refuse the request.")


class Failure(BaseModel):
    """The body of every error response."""

    error: str


class Answer(BaseModel):
    """The hits of one query, and the commit of the collection that was searched."""

    query: str
    commit: int
    hits: list[SerializedHit]


class Answers(BaseModel):
    """One answer per query, in order. The queries of one request may see different commits."""

    collection: str
    took_ms: float
    answers: list[Answer]


class Explanations(BaseModel):
    """One explanation per document, in the order of the ids."""

    explanations: list[Explanation]


class Words(BaseModel):
    """The vocabulary terms of a text, heaviest first."""

    text: str
    words: list[Word]


class ExampleQueries(BaseModel):
    """Example queries: titles and sentences of documents of a commit."""

    commit: int
    queries: list[str]


class TermVector(BaseModel):
    """Weighted terms of one text; the three lists are aligned."""

    terms: list[int]
    words: list[str]
    weights: list[float]


class TokenVectors(BaseModel):
    """One vector per token of one text."""

    tokens: list[str]
    vectors: list[list[float]]


class EncodedTexts(BaseModel):
    """One representation per text and head; null for heads that were not requested or do not exist."""

    model: str
    side: Side
    dense: list[list[float]] | None
    sparse: list[TermVector] | None
    lexical: list[TermVector] | None
    multi: list[TokenVectors] | None
    truncated: int


class DocumentPage(BaseModel):
    """A page of documents. Pass `next` as `after` to get the next page; null at the end. `missing`: ids that do not exist."""

    documents: list[Document]
    missing: list[str]
    next: int | None


class Changed(BaseModel):
    """The changes of a commit, and the collection after it."""

    added: int
    replaced: int
    unchanged: int
    deleted: int
    truncated: int
    missing: list[str]
    documents: int
    commit: int


class LensFacts(BaseModel):
    """A lens type, with its CSS colours for light and dark mode."""

    name: str
    description: str
    colour: str
    dark_colour: str


class FilterOperator(BaseModel):
    """An operator of metadata filters: a label for user interfaces, and the kind of operand that it takes."""

    name: str
    label: str
    operand: Literal["value", "list", "boolean", "condition"]


class CollectionFacts(BaseModel):
    """A served collection.

    `heads` are the heads of its model; `disentangle`: whether /disentangle supports the model. `bytes` is the size on disk.
    `problem` says why the collection cannot be searched, null if it can. `committed` is null if the folder is gone.
    """

    name: str
    documents: int
    passages: int
    bytes: int
    lenses: list[str]
    model: str | None
    heads: list[str]
    disentangle: bool
    commit: int
    committed: datetime | None
    problem: str | None


class CollectionList(BaseModel):
    """The served collections, all lens types and filter operators.

    `writable`: a write key can change documents; `may_write`: the key of this request can. `max_body_bytes`: the largest body.
    """

    collections: list[CollectionFacts]
    lenses: list[LensFacts]
    operators: list[FilterOperator]
    writable: bool
    may_write: bool
    max_body_bytes: int
    version: str


class Ready(BaseModel):
    """The response of the readiness check."""

    status: Literal["ready"]
    version: str


class Health(BaseModel):
    """The response of the health check."""

    status: Literal["ok"]
    version: str
