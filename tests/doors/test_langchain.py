"""The retriever and the vector store of LangChain, by LangChain's standard tests and by hand."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("langchain_core", reason="run by scripts/test-doors")
pytest.importorskip("langchain_tests", reason="run by scripts/test-doors")

from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import VectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests, VectorStoreIntegrationTests

from tests.doors.conftest import TEXTS
from trilens import Collection
from trilens.errors import BadFilter, BadInput, BadModel
from trilens.integrations.langchain import LangChainRetriever, LangChainVectorStore, embeddings_encoder


class TestStandardRetriever(RetrieversIntegrationTests):
    """LangChain's tests of retrievers."""

    @pytest.fixture(autouse=True)
    def given(self, collection: Collection) -> None:
        self.collection = collection

    @property
    def retriever_constructor(self) -> type[LangChainRetriever]:
        return LangChainRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"collection": self.collection}

    @property
    def retriever_query_example(self) -> str:
        return "moving water"


class TestStandardVectorStore(VectorStoreIntegrationTests):
    """LangChain's tests of vector stores, with its embeddings."""

    @pytest.fixture
    def vectorstore(self, tmp_path: Path) -> Iterator[VectorStore]:
        embeddings = self.get_embeddings()
        with Collection.create(tmp_path / "c", lenses=["dense"], encoder=embeddings_encoder(embeddings)) as collection:
            yield LangChainVectorStore(collection, embeddings)


@pytest.fixture
def store(collection: Collection) -> LangChainVectorStore:
    return LangChainVectorStore(collection)


def ids(documents: list[Document]) -> list[str | None]:
    return [document.id for document in documents]


def test_scores_ids_and_metadata_are_those_of_the_collection(store: LangChainVectorStore, collection: Collection) -> None:
    (hits,) = collection.search(["water pipes"], k=3)
    found = store.similarity_search_with_score("water pipes", k=3)
    assert [(document.id, score) for document, score in found] == [(hit.doc_id, hit.score) for hit in hits]
    assert found[0][0] == Document(id="pumps", page_content=TEXTS["pumps"], metadata={"title": "Pumps", "year": 2019})


def test_search_options_and_filters_pass_through(collection: Collection) -> None:
    store = LangChainVectorStore(collection, lenses=["bm25"], filter={"year": {"$gte": 2019}})
    assert ids(store.similarity_search("grease bearings")) == []
    assert ids(store.similarity_search("radiator water", filter={"year": {"$lt": 2020}})) == ["pumps"]
    assert len(store.similarity_search("radiator water", lenses=["dense"])) == 3
    with pytest.raises(BadFilter, match="expected an object"):
        store.similarity_search("water", filter=lambda document: True)  # type: ignore[arg-type]


async def test_retriever_filters_and_passages(tmp_path: Path) -> None:
    text = "Pumps move water. " * 3 + "Owls hunt at night. " * 3
    options: dict[str, Any] = {"lenses": ["bm25"], "passages": {"words": 12, "overlap": 0}}
    with Collection.create(tmp_path / "c", **options) as collection:
        LangChainVectorStore(collection).add_texts([text, "Owls."], [{"kind": "long"}, {"kind": "short"}], ids=["a", "b"])
        retriever = LangChainRetriever(collection=collection, passages=True, score_key="score")
        for (found,) in (
            retriever.invoke("owls", filter={"kind": "long"}),
            await retriever.ainvoke("owls", filter={"kind": "long"}),
        ):
            place = found.metadata
            assert "Owls hunt" in found.page_content and "Pumps" not in found.page_content
            assert text[place["start"] : place["end"]] == found.page_content
            assert place["score"] > 0 and found.id == "a"
        assert ids(await retriever.ainvoke("owls", k=1)) == ids(retriever.invoke("owls", k=1))


def test_own_embeddings_rank_by_cosine(tmp_path: Path) -> None:
    embeddings = DeterministicFakeEmbedding(size=16)
    texts = [f"text {number}" for number in range(20)]
    store = LangChainVectorStore.from_texts(texts, embeddings, ids=texts, path=tmp_path / "c", lenses=["dense"])
    vectors = np.array(embeddings.embed_documents(texts))
    query = np.array(embeddings.embed_query("text 3"))
    cosines = vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
    expected = [texts[i] for i in np.argsort(-cosines)[:5]]
    found = store.similarity_search_with_score("text 3", k=5)
    assert ids([document for document, _ in found]) == expected
    assert [score for _, score in found] == pytest.approx(np.sort(cosines)[::-1][:5], abs=1e-5)
    assert ids(store.similarity_search_by_vector(query.tolist(), k=5)) == expected
    # By maximal marginal relevance with lambda 1, diversity does not count.
    assert ids(store.max_marginal_relevance_search("text 3", k=5, lambda_mult=1)) == expected
    assert ids(store.max_marginal_relevance_search_by_vector(query.tolist(), k=5, lambda_mult=1)) == expected
    store.collection.close()
    with pytest.raises(BadModel, match="made with an encoder object"):
        LangChainVectorStore.from_texts(["text"], path=tmp_path / "c", lenses=["dense"]).similarity_search("text")


def test_diverse_results_leave_out_duplicates(tmp_path: Path) -> None:
    texts = ["Pumps move water.", "Pumps move the water.", "Owls hunt at night."]
    store = LangChainVectorStore.from_texts(texts, ids=["a", "b", "c"], path=tmp_path / "c", threads=1)
    assert set(ids(store.similarity_search("pumps move water", k=2))) == {"a", "b"}
    assert set(ids(store.max_marginal_relevance_search("pumps move water", k=2, lambda_mult=0.1))) == {"a", "c"}
    assert store.max_marginal_relevance_search("water", filter={"year": 1}) == []


def test_relevance_scores_are_cosines(store: LangChainVectorStore, collection: Collection) -> None:
    (hits,) = collection.search(["moving water"], k=4, lenses=["dense"])
    found = store.similarity_search_with_relevance_scores("moving water", k=4)
    assert [score for _, score in found] == [max(0, hit.score) for hit in hits]
    retriever = store.as_retriever(search_type="similarity_score_threshold", search_kwargs={"score_threshold": found[0][1]})
    assert ids(retriever.invoke("moving water")) == ["pumps"]


def test_an_error_changes_nothing(store: LangChainVectorStore, empty: Collection) -> None:
    with pytest.raises(BadInput, match="cannot be written as JSON"):
        store.add_documents([Document(id="x", page_content="x"), Document(page_content="y", metadata={"set": {1}})])
    assert store.get_by_ids(["x"]) == [] and len(store.collection) == 4
    with pytest.raises(BadInput, match="expected as many as texts"):
        store.add_texts(["a", "b"], ids=["a"])
    with pytest.raises(BadInput, match="expected dense"):
        LangChainVectorStore(empty).similarity_search_by_vector([1.0])
    assert store.delete() and len(store.collection) == 0


async def test_concurrent_changes_are_all_made(empty: Collection) -> None:
    from asyncio import gather

    store = LangChainVectorStore(empty)
    await gather(*(store.aadd_texts([f"water {number}"], ids=[f"d{number}"]) for number in range(5)))
    found = await store.asimilarity_search("water", k=20)
    assert sorted(map(str, ids(found))) == sorted(f"d{number}" for number in range(5))
