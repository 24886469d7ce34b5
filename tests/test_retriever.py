"""The retriever: the examples of the VDR papers' code, and its searches against products of embeddings."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trilens.retriever
from trilens import Collection, Document, Retriever
from trilens.encode.models import bundled_models
from trilens.errors import BadInput, BadModel
from trilens.represent import Sparse
from trilens.represent.scipy_file import read_csr, write_csr
from trilens.store.config import DEFAULT_MODEL

from .encode.echo_model import SHIFT, WORDS, echo_model
from .hub_server import serve_hub, use_hub

BUNDLED = bundled_models()[DEFAULT_MODEL]
PASSAGES = ["red fox runs", "fox runs home", "red, red. home", "runs"]

# The examples of https://github.com/jzhoubu/vsearch; only the import is another.
QUICK_START = """
from trilens import Retriever

# Define a query and a list of passages
query = "Who first proposed the theory of relativity?"
passages = [
    "Albert Einstein (14 March 1879 – 18 April 1955) was a German-born theoretical physicist who is widely held to be one of the greatest and most influential scientists of all time. He is best known for developing the theory of relativity.",
    "Sir Isaac Newton FRS (25 December 1642 – 20 March 1727) was an English polymath active as a mathematician, physicist, astronomer, alchemist, theologian, and author who was described in his time as a natural philosopher.",
    "Nikola Tesla (10 July 1856 – 7 January 1943) was a Serbian-American inventor, electrical engineer, mechanical engineer, and futurist. He is known for his contributions to the design of the modern alternating current (AC) electricity supply system."
]

# Initialize the retriever
svdr = Retriever.from_pretrained("vsearch/svdr-nq")
svdr = svdr.to("cuda")

# Embed the query and passages
q_emb = svdr.encoder_q.embed(query)  # Shape: [1, V]
p_emb = svdr.encoder_p.embed(passages)  # Shape: [4, V]

 # Query-passage Relevance
scores = q_emb @ p_emb.t()
print(scores)
"""  # noqa: E501
REASONING = """
# Disentangling query embedding
dst_result = svdr.encoder_q.dst(query, topk=768, visual=False) # Generate a word cloud if `visual`=True
print(dst_result)

# Retrieval reasoning
reasons = svdr.explain(q=query, p=passages[0], topk=768, visual=False)
print(reasons)
"""
SEMI_PARAMETRIC = """
# non-parametric query -> parametric passage
q_bin = svdr.encoder_q.embed(query, bow=True)
p_emb = svdr.encoder_p.embed(passages)
alpha = q_bin @ p_emb.t()

# parametric query -> non-parametric passage (binary token index)
q_emb = svdr.encoder_q.embed(query)
p_bin = svdr.encoder_p.embed(passages, bow=True)
beta = q_emb @ p_bin.t()
"""
RETRIEVAL = """
svdr.build_index(passages, index_type="bag_of_token")
results = svdr.retrieve([query], k=3)
print(results.ids, results.scores)
reranked = svdr.retrieve([query], k=3, rerank=True)
queries_emb, corpus_emb = svdr.encode_queries([query]), svdr.encode_corpus([{"title": "T", "text": text} for text in passages])
"""


def test_the_examples_of_the_papers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub has the bundled model in place of the published one."""
    with serve_hub(**{"svdr-nq": BUNDLED}) as hub:
        hub.repositories["vsearch/svdr-nq"] = BUNDLED
        use_hub(hub, tmp_path, monkeypatch)
        names: dict[str, Any] = {"print": lambda *values: None}
        for example in (QUICK_START, REASONING, SEMI_PARAMETRIC, RETRIEVAL):
            exec(example, names)
    terms = names["svdr"].folder.config.sparse.dim
    assert names["q_emb"].shape == (1, terms) and names["p_emb"].shape == (3, terms) and names["scores"].shape == (1, 3)
    assert names["scores"][0].argmax() == 0 and next(iter(names["dst_result"])) == "relativity"
    assert [*names["dst_result"].values()] == sorted(names["dst_result"].values(), reverse=True)
    assert sum(names["reasons"].values()) == pytest.approx(names["scores"][0, 0], rel=1e-4)
    assert {"relativity", "theory"} <= names["reasons"].keys()
    assert names["results"].ids[0].tolist() == np.argsort(-names["beta"][0], kind="stable").tolist()
    np.testing.assert_allclose(names["results"].scores[0], np.sort(names["beta"][0])[::-1], rtol=1e-5)
    np.testing.assert_allclose(names["reranked"].scores[0], np.sort(names["scores"][0])[::-1], rtol=1e-5)
    assert names["corpus_emb"].shape == (3, terms) and ((names["queries_emb"] > 0).sum() == 768)


@pytest.fixture
def echo(tmp_path: Path) -> Retriever:
    """A model with nine terms and a dense head, whose weights can be computed by hand."""
    return Retriever.from_pretrained(echo_model(tmp_path / "echo", heads=["dense", "sparse"]))


@pytest.mark.parametrize(
    ("index_type", "search"), [("sparse", "full"), ("sparse", "alpha"), ("bag_of_token", "beta"), ("bag_of_token", "late")]
)
def test_searches_are_products_of_embeddings(echo: Retriever, index_type: Any, search: Any) -> None:
    queries = ["red fox", "runs home"]
    echo.build_index(PASSAGES, index_type)
    found = echo.retrieve(queries, k=9, search=search)
    asked = echo.encoder_q.embed(queries, bow=search == "alpha")
    scores = np.asarray(asked @ echo.encoder_p.embed(PASSAGES, bow=search == "beta").t())
    np.testing.assert_allclose(np.take_along_axis(scores, found.ids, axis=1), found.scores, rtol=1e-5)
    np.testing.assert_allclose(found.scores, -np.sort(-scores, axis=1), rtol=1e-5)
    given = echo.retrieve(asked, k=9, search=search)
    np.testing.assert_array_equal(given.ids, found.ids)


def test_a_collection_finds_the_same(echo: Retriever, tmp_path: Path) -> None:
    """α, β, full and late search have the names of lenses and parameters in a collection."""
    exact = {"weights": "float32"}
    settings: dict[str, Any] = {"lenses": ["sparse", "tokens"], "sparse": exact, "passages": {"words": 0}}
    with Collection.create(tmp_path / "c", model=str(tmp_path / "echo"), **settings) as made:
        made.add(Document(str(row), text) for row, text in enumerate(PASSAGES))
        made.commit()
        ways: list[tuple[Any, Any, dict[str, Any]]] = [
            ("sparse", "full", {"lenses": ["sparse"]}),
            ("sparse", "alpha", {"lenses": ["sparse"], "params": {"sparse": {"query": "bag"}}}),
            ("bag_of_token", "beta", {"lenses": ["tokens"]}),
            ("bag_of_token", "late", {"lenses": ["tokens"], "rerank": "sparse"}),
        ]
        for index_type, search, options in ways:
            echo.build_index(PASSAGES, index_type)
            hits = made.search(["red fox home"], 2, **options)[0]
            found = echo.retrieve("red fox home", k=2, search=search)
            assert [hit.score for hit in hits] == pytest.approx(found.scores[0].tolist(), rel=1e-5)


def test_top_own_and_bags(echo: Retriever) -> None:
    """top 3 of the model; own tokens are kept beside them, and alone."""
    every = np.asarray(echo.encoder_p.embed("fox runs", topk=-1))[0]
    own = np.asarray(echo.encoder_p.embed("fox runs", topk=0))[0]
    best = np.asarray(echo.encoder_p.embed("fox runs", topk=2, activate_lexical=False))[0]
    terms = [WORDS.index("fox") - SHIFT, WORDS.index("runs") - SHIFT]
    np.testing.assert_allclose(own[terms], every[terms])
    assert np.flatnonzero(own).tolist() == [term for term in terms if every[term] > 0]
    assert np.flatnonzero(best).tolist() == sorted(np.argsort(-every, kind="stable")[:2].tolist())
    bag = np.asarray(echo.encoder_p.embed("fox runs fox", bow=True))[0]
    assert np.flatnonzero(bag).tolist() == terms and set(bag.tolist()) == {0.0, 1.0}
    with pytest.raises(BadInput, match="top is 0 and own is False"):
        echo.encoder_p.embed("fox", topk=0, activate_lexical=False)


def test_indexes_of_vsearch(echo: Retriever, tmp_path: Path) -> None:
    sparse = pytest.importorskip("scipy.sparse", reason="the other side of the exchange")
    echo.build_index(PASSAGES, "bag_of_token")
    echo.save_index(tmp_path / "ours.npz")
    bags = np.asarray(echo.encoder_p.embed(PASSAGES, bow=True))
    np.testing.assert_array_equal(sparse.load_npz(tmp_path / "ours.npz").toarray(), bags)
    # vsearch stores half precision over the whole vocabulary, in shards, and the texts apart.
    whole = np.hstack([np.ones((4, SHIFT)), bags]).astype(np.float16).astype(np.float32)
    for shard in range(2):
        sparse.save_npz(tmp_path / f"theirs.{shard}.npz", sparse.csr_array(whole[2 * shard : 2 * shard + 2]))
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps(text) + "\n" for text in PASSAGES))
    before = echo.retrieve(["red home"], k=4)
    echo.load_index(tmp_path / "theirs.*.npz", tmp_path / "texts.jsonl")
    for ours, theirs in zip(before, echo.retrieve(["red home"], k=4), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert echo.retrieve(["red home"], k=1, search="late").ids.shape == (1, 1)


def test_invalid_indexes(echo: Retriever, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has no index; call build_index"):
        echo.retrieve(["fox"])
    with pytest.raises(BadInput, match=r"there is no file .*none\.npz"):
        echo.load_index(tmp_path / "none.npz")
    other = Sparse(np.array([0, 1]), np.array([3], np.int32), np.ones(1, np.float32), 30_522)
    write_csr(tmp_path / "other.npz", other)
    with pytest.raises(BadInput, match=r"is over a vocabulary of 30,522 terms; expected 9, as the model has, or 16 with those"):
        echo.load_index(tmp_path / "other.npz")
    (tmp_path / "bad.npz").write_bytes(b"no archive")
    with pytest.raises(BadInput, match=r"expected what scipy\.sparse\.save_npz writes"):
        read_csr(tmp_path / "bad.npz", 9)
    echo.build_index(PASSAGES, "bag_of_token")
    echo.save_index(tmp_path / "index.npz")
    (tmp_path / "texts.jsonl").write_text('"one"\n')
    with pytest.raises(BadInput, match="has 1 texts; expected 4, as many as"):
        echo.load_index(tmp_path / "index.npz", tmp_path / "texts.jsonl")
    echo.load_index(tmp_path / "index.npz")
    with pytest.raises(BadInput, match="the index has no texts; expected a data_file"):
        echo.retrieve(["fox"], search="late")
    with pytest.raises(BadInput, match="search is 'full'; expected beta or late in an index of type bag_of_token"):
        echo.retrieve(["fox"], search="full")
    with pytest.raises(BadInput, match="index_type is 'dense'; expected sparse or bag_of_token"):
        echo.build_index(PASSAGES, "dense")


def test_dense_models(tmp_path: Path) -> None:
    dense = Retriever.from_pretrained(echo_model(tmp_path / "echo", heads=["dense"]))
    dense.build_index(PASSAGES)
    scores = np.asarray(dense.encoder_q.embed("red fox") @ dense.encoder_p.embed(PASSAGES).t())
    np.testing.assert_allclose(dense.retrieve("red fox", k=4).scores, -np.sort(-scores), rtol=1e-5)
    with pytest.raises(BadModel, match="has no sparse head"):
        dense.explain("red", "fox")
    with pytest.raises(BadModel, match="has no sparse head"):
        dense.encoder_q.dst("red fox")
    with pytest.raises(BadModel, match="expected sparse or dense"):
        Retriever.from_pretrained(echo_model(tmp_path / "tokens", heads=["multi"]))


def test_pictures_and_copies(echo: Retriever, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    monkeypatch.setattr(trilens.retriever, "show_cloud", shown.append)
    words = echo.encoder_p.disentangle("red fox", topk=4, visual=True)
    assert [word.word for word in shown[0]] == [*words] and len(words) <= 4
    pytest.importorskip("wordcloud")
    echo.encoder_p.dst("red fox", visual=True, save_file=tmp_path / "cloud.png")
    assert (tmp_path / "cloud.png").read_bytes().startswith(b"\x89PNG")
    echo.save_pretrained(tmp_path / "copy")
    again = Retriever.from_pretrained(tmp_path / "copy")
    np.testing.assert_array_equal(again.encoder_q.embed("red fox"), echo.encoder_q.embed("red fox"))
    with pytest.raises(BadInput, match="expected a new or empty folder"):
        echo.save_pretrained(tmp_path / "copy")
    assert io.StringIO(repr(again.encoder_q.embed("red"))).read().startswith("EmbeddingArray")
