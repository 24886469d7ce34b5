"""The document store and the retriever of Haystack, by Haystack's test classes and by hand."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("haystack", reason="run by scripts/test-doors")

from haystack import Document, Pipeline
from haystack.dataclasses import ByteStream, SparseEmbedding
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.errors import FilterError
from haystack.testing import document_store as standard
from haystack.testing import document_store_async as standard_async
from haystack.utils.filters import document_matches_filter
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.doors.conftest import TEXTS
from trilens import Collection
from trilens.errors import BadInput
from trilens.integrations.haystack import HaystackDocumentStore, HaystackRetriever
from trilens.integrations.haystack_filters import translate


@pytest.fixture
def document_store(tmp_path: Path) -> HaystackDocumentStore:
    return HaystackDocumentStore(tmp_path / "store.trilens", lenses=["bm25"])


class TestStandard(
    standard.DocumentStoreBaseExtendedTests,
    standard.CountDocumentsByFilterTest,
    standard.CountUniqueMetadataByFilterTest,
    standard.GetMetadataFieldsInfoTest,
    standard.GetMetadataFieldMinMaxTest,
    standard.GetMetadataFieldUniqueValuesTest,
):
    """Haystack's tests of document stores."""

    @pytest.fixture
    def document_store(self, tmp_path: Path) -> HaystackDocumentStore:
        return HaystackDocumentStore(tmp_path / "store.trilens", lenses=["bm25"])

    def test_write_documents(self, document_store: HaystackDocumentStore) -> None:
        """Without a policy, existing ids are an error."""
        document = Document(content="test doc")
        assert document_store.write_documents([document]) == 1
        with pytest.raises(DuplicateDocumentError):
            document_store.write_documents([document])


class TestStandardAsync(
    standard_async.CountDocumentsAsyncTest,
    standard_async.DeleteAllAsyncTest,
    standard_async.DeleteByFilterAsyncTest,
    standard_async.DeleteDocumentsAsyncTest,
    standard_async.FilterDocumentsAsyncTest,
    standard_async.UpdateByFilterAsyncTest,
    standard_async.WriteDocumentsAsyncTest,
):
    """Haystack's tests of asynchronous document stores."""

    async def test_write_documents_async(self, document_store: HaystackDocumentStore) -> None:
        """The number of documents is returned."""
        assert await document_store.write_documents_async([Document(content="test doc")]) == 1


@pytest.fixture
def small(collection: Collection) -> HaystackDocumentStore:
    """The store of the small collection."""
    return HaystackDocumentStore(collection.path)


def test_every_field_of_a_document_is_kept(document_store: HaystackDocumentStore) -> None:
    documents = [
        Document(id="all", content="text", meta={"title": "T", "a": {"b": [1, None]}}, score=0.5, embedding=[0.1, 1e-9]),
        Document(id="blob", blob=ByteStream(b"\x00\xff", {"m": 1}, "image/png"), sparse_embedding=SparseEmbedding([1], [0.5])),
        Document(id="empty", content=""),
    ]
    document_store.write_documents(documents)
    assert document_store.filter_documents() == documents
    assert document_store.collection.get("all").title == "T"  # type: ignore[union-attr]
    with pytest.raises(BadInput, match="reserved"):
        document_store.write_documents([Document(content="x", meta={"_haystack": 1})])


def test_a_pipeline_retrieves_with_the_scores_of_the_collection(small: HaystackDocumentStore, collection: Collection) -> None:
    pipeline = Pipeline()
    pipeline.add_component("retriever", HaystackRetriever(small, top_k=3))
    pipeline = Pipeline.loads(pipeline.dumps(), allowed_modules=[HaystackRetriever.__module__])  # as YAML and back
    found = pipeline.run({"retriever": {"query": "moving water"}})["retriever"]["documents"]
    (hits,) = collection.search(["moving water"], k=3)
    assert [(document.id, document.score) for document in found] == [(hit.doc_id, hit.score) for hit in hits]
    assert (found[0].content, found[0].meta) == (TEXTS["pumps"], {"title": "Pumps", "year": 2019})


async def test_retriever_filters_options_and_passages(small: HaystackDocumentStore) -> None:
    late = {"field": "meta.year", "operator": ">", "value": 2019}
    early = {"field": "meta.year", "operator": "<", "value": 2021}
    query = "radiator water commit"
    merging = HaystackRetriever(small, filters=late, filter_policy="merge", search={"lenses": ["bm25"]}, passages=True)
    found = merging.run(query, {"field": "meta.lang", "operator": "!=", "value": "de"})["documents"]
    assert {document.id for document in found} == {"fins", "git"}
    assert all(document.content == TEXTS[document.id][document.meta["start"] : document.meta["end"]] for document in found)
    replacing = HaystackRetriever(small, filters=late, search={"lenses": ["bm25"]})
    assert {document.id for document in replacing.run(query)["documents"]} == {"fins", "git"}
    pipeline = Pipeline()
    pipeline.add_component("retriever", replacing)
    answer = await pipeline.run_async({"retriever": {"query": query, "filters": early}})
    assert {document.id for document in answer["retriever"]["documents"]} == {"pumps", "fins"}
    with pytest.raises(FilterError, match="metadata field"):
        replacing.run(query, {"field": "content", "operator": "==", "value": "x"})


def test_a_document_twice_in_one_call(document_store: HaystackDocumentStore) -> None:
    documents = [Document(id="a", content="1"), Document(id="b", content="2"), Document(id="a", content="3")]
    with pytest.raises(DuplicateDocumentError, match="'a'"):
        document_store.write_documents(documents)
    assert document_store.count_documents() == 0
    assert document_store.write_documents(documents, DuplicatePolicy.SKIP) == 2
    assert [document.content for document in document_store.filter_documents()] == ["1", "2"]


VALUES = st.sampled_from([None, 1, 2.5, -3, "a", "b", "1970-01-01", "1980-05-05T10:00:00"])
NUMBERS_AND_DATES = st.sampled_from([None, 1, 2.5, -3])
COMPARISON = st.one_of(
    st.tuples(st.sampled_from(["==", "!="]), VALUES),
    st.tuples(st.sampled_from([">", ">=", "<", "<="]), NUMBERS_AND_DATES),
    st.tuples(st.sampled_from(["in", "not in"]), st.lists(VALUES, max_size=3)),
)
FIELDS = st.sampled_from(["meta.number", "meta.mixed", "meta.nested.inner", "meta.missing", "mixed"])


def condition(draw: tuple[tuple[str, Any], str]) -> dict[str, Any]:
    """A comparison; only numbers are compared by size, since Haystack refuses other stored values."""
    (operator, value), field = draw
    return {"field": "meta.number" if operator[0] in "<>" else field, "operator": operator, "value": value}


FILTERS = st.recursive(
    st.tuples(COMPARISON, FIELDS).map(condition),
    lambda inner: st.fixed_dictionaries(
        {"operator": st.sampled_from(["AND", "OR", "NOT"]), "conditions": st.lists(inner, max_size=3)}
    ),
    max_leaves=5,
)
DOCUMENTS = [
    Document(id=f"{number}-{name}", content="x", meta=meta)
    for number in (None, 1, 2.5, -3, 7)
    for name, meta in {
        "text": {"number": number, "mixed": "a", "nested": {"inner": "b"}},
        "number": {"number": number, "mixed": 1, "nested": {"inner": None}},
        "date": {"number": number, "mixed": "1970-01-01", "nested": "a"},
        "none": {} if number is None else {"number": number},
    }.items()
]


@pytest.fixture(scope="module")
def varied(tmp_path_factory: pytest.TempPathFactory) -> HaystackDocumentStore:
    """Documents with values of several types."""
    store = HaystackDocumentStore(tmp_path_factory.mktemp("varied") / "store.trilens", lenses=["bm25"])
    store.write_documents(DOCUMENTS)
    return store


@settings(deadline=None, max_examples=150)
@given(filters=FILTERS)
def test_filters_mean_what_they_mean_in_haystack(varied: HaystackDocumentStore, filters: dict[str, Any]) -> None:
    expected = [document.id for document in DOCUMENTS if document_matches_filter(filters, document)]
    assert [document.id for document in varied.filter_documents(filters)] == expected


@pytest.mark.parametrize(
    ("operator", "value"), [("==", [1]), ("==", {"a": 1}), ("in", [[1]]), (">", True), ("like", 1), (">", "tall")]
)
def test_conditions_that_cannot_be_expressed_are_refused(varied: HaystackDocumentStore, operator: str, value: Any) -> None:
    with pytest.raises(FilterError, match="expected"):
        varied.filter_documents({"field": "meta.number", "operator": operator, "value": value})


def test_dates_are_written_as_text() -> None:
    when = datetime(2020, 1, 2, 3)
    assert translate({"field": "meta.at", "operator": ">", "value": when}) == {"at": {"$gt": "2020-01-02T03:00:00"}}
