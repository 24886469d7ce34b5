"""PyTerrier: a collection as a transformer of queries into ranked documents, and as an indexer. Java is not needed.

The extra `trilens[pyterrier]` installs python-terrier.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from trilens.collection import Collection
from trilens.errors import BadInput
from trilens.extras import needs_extra
from trilens.integrations.documents import to_document
from trilens.integrations.shared import require_collection
from trilens.search.hits import Hit
from trilens.text.document import Document

with needs_extra("pyterrier"):
    import pandas as pd
    import pyterrier as pt

RESULT_COLUMNS = ("docno", "score", "rank")
QUERIES_AT_ONCE = 256


class PyTerrierRetriever(pt.Transformer):
    """Ranks documents for queries: qid, query → qid, query, docno, score, rank and the `fields`.

    `num_results` is the number of documents per query, which `retriever % 10` limits. `fields` are text, title, passage and
    names of metadata. `search` has fields of `SearchOptions`, such as lenses, fusion, rerank and filter.
    """

    def __init__(self, collection: Collection, num_results: int = 1000, fields: Sequence[str] = (), **search: Any) -> None:
        require_collection(collection)
        if isinstance(fields, str) or set(fields) & {"qid", "query", *RESULT_COLUMNS}:
            raise BadInput(f"fields is {fields!r}; expected a list of text, title, passage or names of metadata")
        self.collection = collection
        self.num_results = num_results
        self.fields = tuple(fields)
        self.search_options = search

    def __repr__(self) -> str:
        """The collection and the search options: the name in tables of experiments."""
        options = (f"{name}={value!r}" for name, value in self.search_options.items())
        return f"trilens({', '.join([self.collection.path.name, *options])})"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """The ranked documents of each query; other columns of the queries are kept. Queries may already have documents."""
        pt.validate.columns(inp, includes=["qid", "query"], context=self)
        queries = inp[pt.model.query_columns(inp)].drop_duplicates(subset="qid")
        columns = [*queries.columns, *RESULT_COLUMNS, *self.fields]
        return pd.DataFrame(list(self._rows(queries)), columns=columns).astype({"score": "float64", "rank": "int64"})

    def fuse_rank_cutoff(self, k: int) -> "PyTerrierRetriever":
        """The retriever of `retriever % k`, which searches for no more than k documents."""
        return PyTerrierRetriever(self.collection, min(k, self.num_results), self.fields, **self.search_options)

    def _rows(self, queries: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
        for start in range(0, len(queries), QUERIES_AT_ONCE):
            batch = queries.iloc[start : start + QUERIES_AT_ONCE]
            answers = self.collection.search(batch["query"].tolist(), **{**self.search_options, "k": self.num_results})
            for query, hits in zip(batch.itertuples(index=False, name=None), answers, strict=True):
                for hit in hits:
                    yield *query, hit.doc_id, hit.score, hit.rank - 1, *(_field(hit, name) for name in self.fields)


class PyTerrierIndexer(pt.Indexer):
    """Adds documents to the collection at `path`, created if it does not exist: docno, text, and other fields as metadata."""

    def __init__(self, path: str | Path, **options: Any) -> None:
        """`options` are those of `Collection.create`."""
        self.path = Path(path)
        self.options = options

    def index(self, iter: Iterable[Mapping[str, Any]], **kwargs: Any) -> Collection:
        """Add documents, and replace those with existing ids; returns the collection, for `PyTerrierRetriever`."""
        collection = Collection.open_or_create(self.path, **self.options)
        collection.ingest(map(_to_document, iter))
        return collection


def _field(hit: Hit, name: str) -> Any:
    known = {"text": hit.document.text, "title": hit.document.title, "passage": hit.passage}
    return known[name] if name in known else hit.document.metadata.get(name)


def _to_document(record: Mapping[str, Any]) -> Document:
    if "docno" not in record or "text" not in record:
        raise BadInput(f"the document has the fields {', '.join(record)}; expected docno and text")
    metadata = {name: value for name, value in record.items() if name not in ("docno", "text")}
    return to_document(record["docno"], record["text"], metadata)
