"""The tools that the MCP server offers: search, explain, get a document, list the collections. All of them only read."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Annotated, Any

from pydantic import Field, ValidationError

from trilens.collection import Collection
from trilens.errors import BadInput, BadOptions, first_error
from trilens.frozen import Frozen
from trilens.read.dump import to_record
from trilens.search.hits import HITS
from trilens.search.options import SearchOptions
from trilens.store.catalog import has_moved_on

MOST_HITS = 100
MOST_CHARACTERS = 10_000  # of a query
Text = Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS)]
CollectionName = Annotated[str | None, Field(description="Name of the collection; may be left out if there is only one.")]


class OpenedCollection:
    """A collection that one call uses at a time, always at its last commit."""

    def __init__(self, collection: Collection) -> None:
        self._collection, self._lock = collection, Lock()

    @contextmanager
    def current(self) -> Iterator[Collection]:
        """The collection at the last commit, also of other processes."""
        with self._lock:
            if has_moved_on(self._collection.path, self._collection.snapshot.commit):
                self._collection.refresh()
            yield self._collection


class Shelf:
    """The opened collections by name."""

    def __init__(self, collections: Mapping[str, Collection]) -> None:
        self.opened = {name: OpenedCollection(collection) for name, collection in collections.items()}

    @contextmanager
    def current(self, name: str | None) -> Iterator[Collection]:
        """The collection with a name, or the only one."""
        if name is None and len(self.opened) > 1:
            raise BadInput(f"collection is missing; expected one of {', '.join(self.opened)}")
        name = next(iter(self.opened)) if name is None else name
        if name not in self.opened:
            raise BadInput(f"there is no collection {name!r}; expected one of {', '.join(self.opened)}")
        with self.opened[name].current() as collection:
            yield collection


class SearchArguments(SearchOptions):
    """The query, the collection and the options of a search."""

    query: Text
    collection: CollectionName = None


class ExplainArguments(SearchOptions):
    """The query, the document, the collection and the options of the search to explain."""

    query: Text
    doc_id: Text
    collection: CollectionName = None


class DocumentArguments(Frozen):
    """The id of a document and its collection."""

    doc_id: Text
    collection: CollectionName = None


class NoArguments(Frozen):
    """Nothing."""


@dataclass(frozen=True)
class ReadingTool:
    """A tool: its arguments as a model, and what it returns for them."""

    name: str
    description: str
    arguments: type[Frozen]
    run: Callable[[Shelf, Any], dict[str, Any]]

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments."""
        schema = self.arguments.model_json_schema()
        schema["properties"].pop("hyde", None)
        if issubclass(self.arguments, SearchOptions):
            schema["description"] = SearchOptions.__doc__
            schema["properties"]["k"]["maximum"] = MOST_HITS
        return schema

    def call(self, shelf: Shelf, given: Mapping[str, Any]) -> dict[str, Any]:
        """Validate the arguments and run the tool."""
        try:
            arguments = self.arguments.model_validate(given)
        except ValidationError as error:
            raise BadOptions(first_error(error, known=self.arguments.model_fields)) from error
        if isinstance(arguments, SearchOptions):
            _require_allowed(arguments)
        return self.run(shelf, arguments)


def _require_allowed(options: SearchOptions) -> None:
    if options.k > MOST_HITS:
        raise BadOptions(f"k is {options.k}; expected at most {MOST_HITS}")
    if options.hyde:  # an agent could send the API key of the user anywhere
        raise BadOptions("hyde is given; it is not available here: leave it out")
    if options.rerank and options.rerank.is_cross:  # an agent could open any file
        raise BadOptions("rerank is cross; it is not available here: re-rank by a lens, or leave it out")


def _options(arguments: SearchOptions) -> SearchOptions:
    given = arguments.model_fields_set & set(SearchOptions.model_fields)
    return SearchOptions(**{name: getattr(arguments, name) for name in given})


def _search(shelf: Shelf, arguments: SearchArguments) -> dict[str, Any]:
    with shelf.current(arguments.collection) as collection:
        (hits,) = collection.search([arguments.query], options=_options(arguments))
    return {"hits": HITS.dump_python(hits, mode="json")}


def _explain(shelf: Shelf, arguments: ExplainArguments) -> dict[str, Any]:
    with shelf.current(arguments.collection) as collection:
        explanation = collection.explain(arguments.query, arguments.doc_id, options=_options(arguments)).to_json()
    for part in (explanation, *(explanation["children"] or ())):  # too long for a reader, and its parts say the same
        del part["matrix"]
    return explanation


def _get_document(shelf: Shelf, arguments: DocumentArguments) -> dict[str, Any]:
    with shelf.current(arguments.collection) as collection:
        document = collection.get(arguments.doc_id)
    if document is None:
        raise BadInput(f"there is no document {arguments.doc_id!r} in the collection; expected the doc_id of a hit")
    return to_record(document)


def _list_collections(shelf: Shelf, _arguments: NoArguments) -> dict[str, Any]:
    facts = []
    for name in shelf.opened:
        with shelf.current(name) as collection:
            facts.append({"name": name, "documents": len(collection), "lenses": collection.lenses})
    return {"collections": facts}


TOOLS = {
    tool.name: tool
    for tool in (
        ReadingTool(
            "search",
            "The best documents of a collection for a query, best first: doc_id, title, metadata and best passage.",
            SearchArguments,
            _search,
        ),
        ReadingTool("get_document", "The whole text, title and metadata of a document.", DocumentArguments, _get_document),
        ReadingTool(
            "explain",
            "Why a document has its score for a query: the parts that add up to the score, with their places in the text.",
            ExplainArguments,
            _explain,
        ),
        ReadingTool("list_collections", "The collections, with their sizes and lenses.", NoArguments, _list_collections),
    )
}
