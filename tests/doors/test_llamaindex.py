"""The retriever and the vector store of LlamaIndex."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("llama_index.core", reason="run by scripts/test-doors")

from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.schema import (
    BaseNode,
    Document,
    ImageNode,
    IndexNode,
    MediaResource,
    Node,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)
from llama_index.core.vector_stores.utils import build_metadata_filter_fn

from tests.doors.conftest import TEXTS
from trilens import Collection
from trilens.errors import BadFilter, BadInput
from trilens.integrations.llamaindex import LlamaIndexRetriever, LlamaIndexVectorStore


def only(key: str, value: Any, operator: str = "==") -> MetadataFilters:
    """A filter of one condition."""
    return MetadataFilters(filters=[MetadataFilter(key=key, value=value, operator=operator)])


def test_retriever_returns_the_hits_of_the_collection(collection: Collection) -> None:
    (hits,) = collection.search(["moving water"], k=3)
    found = LlamaIndexRetriever(collection, similarity_top_k=3).retrieve("moving water")
    assert [(node.node_id, node.score) for node in found] == [(hit.doc_id, hit.score) for hit in hits]
    assert found[0].node == TextNode(id_="pumps", text=TEXTS["pumps"], metadata={"title": "Pumps", "year": 2019})


async def test_retriever_filters_options_and_passages(collection: Collection) -> None:
    filters = only("year", 2019, ">")
    retriever = LlamaIndexRetriever(collection, filters=filters, passages=True, search={"lenses": ["bm25"]})
    found = await retriever.aretrieve("water radiator commit")
    assert {node.node_id for node in found} == {"fins", "git"}
    for node in found:
        assert node.text == TEXTS[node.node_id][node.node.start_char_idx : node.node.end_char_idx]


@pytest.fixture
def store(empty: Collection) -> LlamaIndexVectorStore:
    return LlamaIndexVectorStore(empty)


def test_nodes_of_every_kind_are_kept(store: LlamaIndexVectorStore) -> None:
    source = RelatedNodeInfo(node_id="source", metadata={"x": 1})
    nodes: list[BaseNode] = [
        TextNode(id_="t", text="text", metadata={"title": "T", "n": [1, None]}, start_char_idx=3, mimetype="text/html"),
        TextNode(id_="r", text="", relationships={NodeRelationship.SOURCE: source}, excluded_embed_metadata_keys=["n"]),
        Document(id_="d", text="document", metadata={"a": {"b": 1}}, text_template="{content}"),
        Document(id_="image only", image_resource=MediaResource(path=Path("a.png"), mimetype="image/png")),
        Node(id_="n", text_resource=MediaResource(text="node", mimetype="text/markdown")),
        ImageNode(id_="i", text="image", image_url="http://127.0.0.1/a.png"),
        IndexNode(id_="x", text="index", index_id="other"),
    ]
    assert store.add(nodes) == [node.node_id for node in nodes]
    assert store.get_nodes([node.node_id for node in nodes]) == nodes
    assert [type(node) for node in store.get_nodes()] == [type(node) for node in nodes]

    class Own(TextNode):
        pass

    with pytest.raises(BadInput, match="is a Own; expected one of TextNode"):
        store.add([Own(text="x")])
    with pytest.raises(BadInput, match="binary data"):
        store.add([Document(image_resource=MediaResource(data=b"abc"))])


def test_an_index_over_the_store(store: LlamaIndexVectorStore) -> None:
    context = StorageContext.from_defaults(vector_store=store)
    documents = [Document(id_=name, text=text, metadata={"n": len(name)}) for name, text in TEXTS.items()]
    index = VectorStoreIndex.from_documents(documents, storage_context=context, embed_model=MockEmbedding(embed_dim=2))
    (found,) = index.as_retriever(similarity_top_k=1).retrieve("undo a commit")
    assert found.node.ref_doc_id == "git" and found.text == TEXTS["git"]
    again = VectorStoreIndex.from_vector_store(store, embed_model=MockEmbedding(embed_dim=2))
    assert [n.text for n in again.as_retriever(filters=only("n", 4)).retrieve("water radiator")] == [TEXTS["fins"]]
    assert store.class_name() == "LlamaIndexVectorStore"
    again.delete_ref_doc("git")
    assert again.as_retriever().retrieve("undo a commit") == []
    assert len(store.client) == 3


def ids(store: LlamaIndexVectorStore, **query: Any) -> list[str]:
    return store.query(VectorStoreQuery(**{"similarity_top_k": 4, **query})).ids or []


async def test_query_modes_are_searches_of_the_collection(collection: Collection) -> None:
    store = LlamaIndexVectorStore(collection)

    def best(**options: Any) -> list[str]:
        return [hit.doc_id for hit in collection.search(["moving water"], k=4, **options)[0]]

    mode, text = VectorStoreQueryMode, "moving water"
    assert ids(store, query_str=text) == best()
    assert ids(store, query_str=text, mode=mode.TEXT_SEARCH) == best(lenses=["bm25"])
    assert ids(store, query_str=text, mode=mode.SPARSE, sparse_top_k=1) == best(lenses=["bm25"])[:1]
    assert ids(store, query_str=text, mode=mode.HYBRID) == best(lenses=["bm25", "dense"])
    assert ids(store, query_str=text, mode=mode.HYBRID, alpha=1.0) == best(lenses=["dense"])
    fused = best(lenses=["bm25", "dense"], fusion="zscore:bm25=0.75,dense=0.25")
    assert ids(store, query_str=text, mode=mode.HYBRID, alpha=0.25) == fused
    vector = collection.model.encoder.encode_queries([text]).dense.vectors[0].tolist()  # type: ignore[union-attr]
    assert ids(store, query_embedding=vector) == best(lenses=["dense"])
    # With threshold 1 only relevance counts.
    dense = LlamaIndexVectorStore(collection, lenses=["dense"])
    assert ids(dense, query_str=text, mode=mode.MMR, mmr_threshold=1.0) == best(lenses=["dense"])
    assert ids(dense, query_embedding=vector, mode=mode.MMR, mmr_threshold=1.0, similarity_top_k=2) == ["pumps", "fins"]
    asked = await store.aquery(VectorStoreQuery(query_str=text, similarity_top_k=4))
    assert asked.ids == best()
    with pytest.raises(BadInput, match="query mode is 'svm'"):
        ids(store, query_str=text, mode=mode.SVM)


def test_restriction_to_nodes_and_sources(store: LlamaIndexVectorStore) -> None:
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="s")}
    store.add([TextNode(id_=name, text="water", relationships=source if name in "ab" else {}) for name in "abc"])
    assert set(ids(store, query_str="water", node_ids=["b", "c", "z"])) == {"b", "c"}
    assert set(ids(store, query_str="water", doc_ids=["s"])) == {"a", "b"}
    assert ids(store, query_str="water", doc_ids=["s"], node_ids=["b", "c"]) == ["b"]


async def test_deleting(store: LlamaIndexVectorStore) -> None:
    await store.async_add([TextNode(id_=name, text="water", metadata={"name": name}) for name in "abcd"])
    await store.adelete_nodes(["a", "missing"])
    store.delete_nodes(filters=only("name", "b"))
    store.delete_nodes(["c"], only("name", "d"))
    assert [node.node_id for node in await store.aget_nodes()] == ["c", "d"]
    with pytest.raises(BadInput, match="neither"):
        store.delete_nodes()
    await store.aclear()
    assert store.get_nodes() == []


VALUES = st.sampled_from([1, 2.5, -3, "a", "b", ""])
CONDITION = st.one_of(
    st.builds(MetadataFilter, key=st.sampled_from(["n", "s", "x"]), operator=st.sampled_from(["==", "!="]), value=VALUES),
    st.builds(MetadataFilter, key=st.just("n"), operator=st.sampled_from([">", ">=", "<", "<="]), value=st.integers(-4, 4)),
    st.builds(MetadataFilter, key=st.just("s"), operator=st.sampled_from([">", "<="]), value=st.sampled_from(["", "a"])),
    st.builds(
        MetadataFilter,
        key=st.sampled_from(["n", "s"]),
        operator=st.sampled_from(["in", "nin"]),
        value=st.one_of(st.lists(st.sampled_from(["a", ""])), st.lists(st.sampled_from([1, -3]))),
    ),
    st.builds(MetadataFilter, key=st.just("tags"), operator=st.just("contains"), value=st.sampled_from(["a", "b"])),
    st.builds(
        MetadataFilter,
        key=st.just("tags"),
        operator=st.sampled_from(["any", "all"]),
        value=st.lists(st.sampled_from(["a", "b", "c"]), min_size=1),
    ),
    st.builds(MetadataFilter, key=st.sampled_from(["n", "s", "tags", "x"]), operator=st.just("is_empty"), value=st.none()),
)
METADATA = {
    f"{number}": {"n": n, "s": s, "tags": tags} | ({"x": "a"} if number % 2 else {})
    for number, (n, s, tags) in enumerate(
        (n, s, tags) for n in (None, 1, 2.5, -3) for s in (None, "", "a") for tags in (None, [], ["a"], ["a", "b"])
    )
}


@pytest.fixture(scope="module")
def varied(tmp_path_factory: pytest.TempPathFactory) -> LlamaIndexVectorStore:
    """Nodes with values of several types."""
    store = LlamaIndexVectorStore(Collection.create(tmp_path_factory.mktemp("varied") / "c", lenses=["bm25"]))
    store.add([TextNode(id_=name, text="x", metadata=metadata) for name, metadata in METADATA.items()])
    return store


@settings(deadline=None, max_examples=150)
@given(conditions=st.lists(CONDITION, max_size=3), condition=st.sampled_from(FilterCondition))
def test_filters_mean_what_they_mean_in_llamaindex(
    varied: LlamaIndexVectorStore, conditions: list[MetadataFilter], condition: FilterCondition
) -> None:
    filters = MetadataFilters(filters=conditions, condition=condition)
    holds = build_metadata_filter_fn(METADATA.__getitem__, filters)
    nested = MetadataFilters(filters=[filters], condition=FilterCondition.AND)
    expected = [name for name in METADATA if holds(name)]
    assert [node.node_id for node in varied.get_nodes(filters=filters)] == expected
    assert [node.node_id for node in varied.get_nodes(filters=nested)] == expected


@pytest.mark.parametrize(
    ("operator", "value"), [("text_match", "a"), ("text_match_insensitive", "a"), ("==", None), ("all", "a"), ("in", "abc")]
)
def test_conditions_that_cannot_be_expressed_are_refused(varied: LlamaIndexVectorStore, operator: str, value: Any) -> None:
    with pytest.raises(BadFilter, match="expected"):
        varied.get_nodes(filters=only("s", value, FilterOperator(operator)))


def test_an_error_changes_nothing(store: LlamaIndexVectorStore, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="reserved"):
        store.add([TextNode(id_="a", text="x"), TextNode(text="x", metadata={"_llamaindex": 1})])
    assert store.get_nodes(["a"]) == []
    with pytest.raises(BadInput, match=r"expected a trilens\.Collection"):
        LlamaIndexVectorStore(tmp_path)  # type: ignore[arg-type]
