"""Full, α, β and late-parametric search against inner products computed here, and the terms that explain the scores."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from trilens import Collection, Document, SparseParams
from trilens.encode.folder import ModelFolder
from trilens.errors import BadInput
from trilens.represent import Sparse
from trilens.store import lenses as store_lenses

from ..store import tiny

TEXTS = {
    "a": "the cat sat on the mat",
    "b": "my cat hates the dog next door",
    "c": "a cat and a dog sleep in one bed",
    "d": "ships leave the harbour at dawn",
    "e": "!!!",
}
QUERIES = ["a sleeping cat on a bed", "the harbour", "dog dog door"]
EIGHT_BITS = 2e-2


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    folder: Path = tmp_path_factory.mktemp("modes")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(store_lenses, "OnnxEncoder", tiny.encoder_of)
        lenses = ["bm25", "sparse", "tokens", "lexical"]
        with Collection.create(folder / "c", lenses=lenses, model=tiny.make_model(folder, weighing={}), threads=1) as made:
            made.add(Document(doc_id, text, metadata={"n": n}) for n, (doc_id, text) in enumerate(TEXTS.items()))
            made.commit()
            yield made


@pytest.fixture(scope="module")
def tokens_only(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    folder: Path = tmp_path_factory.mktemp("late")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(store_lenses, "OnnxEncoder", tiny.encoder_of)
        with Collection.create(folder / "c", lenses=["tokens"], model=tiny.make_model(folder, weighing={}), threads=1) as made:
            made.add(Document(doc_id, text) for doc_id, text in TEXTS.items())
            made.commit()
            yield made


def matrix(texts: list[str], kind: str) -> NDArray[np.float64]:
    """What the tiny model makes of texts, a row each; `bare` are bags in which every token counts once."""
    folder = Path(tiny.__file__).parent
    encoder = tiny.TinyEncoder.__new__(tiny.TinyEncoder)
    encoder._heads, encoder.bags = tiny.HEADS, tiny.TinyBags(str(folder))
    sparse: Sparse = getattr(encoder.encode_docs(texts), "bag" if kind == "bare" else kind)
    rows = np.zeros((len(texts), tiny.WORDS))
    for row in range(len(texts)):
        span = slice(sparse.indptr[row], sparse.indptr[row + 1])
        rows[row, sparse.terms[span]] = 1 if kind == "bare" else sparse.weights[span]
    return rows


def expected(query_kind: str, text_kind: str) -> list[dict[str, float]]:
    """The scores above 0 of each query."""
    scores = matrix(QUERIES, query_kind) @ matrix(list(TEXTS.values()), text_kind).T
    return [{doc_id: score for doc_id, score in zip(TEXTS, row, strict=True) if score > 0} for row in scores.tolist()]


def assert_found(found: list[dict[str, float]], wanted: list[dict[str, float]], tolerance: float) -> None:
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.keys() == theirs.keys()
        assert ours == pytest.approx(theirs, rel=tolerance)
        assert list(ours.values()) == sorted(ours.values(), reverse=True)


MODES = [
    ("sparse", None, "sparse", "sparse", EIGHT_BITS),
    ("sparse", SparseParams(query="bag"), "bare", "sparse", EIGHT_BITS),
    ("tokens", None, "sparse", "bare", 1e-6),
    ("tokens", SparseParams(query="bag"), "bare", "bare", 1e-6),
    ("lexical", None, "lexical", "lexical", EIGHT_BITS),
]


@pytest.mark.parametrize(("lens", "params", "query", "text", "tolerance"), MODES)
def test_scores_are_inner_products(
    collection: Collection, lens: str, params: SparseParams | None, query: str, text: str, tolerance: float
) -> None:
    answers = collection.search(QUERIES, 9, lenses=[lens], params={lens: params})
    found = [{hit.doc_id: hit.score for hit in hits} for hits in answers]
    assert_found(found, expected(query, text), tolerance)


def test_late_search_encodes_the_candidates_alone(tokens_only: Collection) -> None:
    assert tokens_only.lenses == ["tokens"]
    answers = tokens_only.search(QUERIES, 9, rerank="sparse")
    candidates = [{hit.doc_id for hit in hits} for hits in tokens_only.search(QUERIES, 9)]
    wanted = [
        {doc_id: score for doc_id, score in scores.items() if doc_id in met}
        for scores, met in zip(expected("sparse", "sparse"), candidates, strict=True)
    ]
    assert_found([{hit.doc_id: hit.score for hit in hits} for hits in answers], wanted, 1e-6)
    assert all(set(hit.by_lens) == {"tokens", "sparse"} for hits in answers for hit in hits)


def test_late_search_of_nothing(tokens_only: Collection) -> None:
    assert tokens_only.search(["!!!"], 3, rerank="sparse") == [[]]


def test_only_lenses_over_the_same_vocabulary_take_bags(collection: Collection) -> None:
    with pytest.raises(BadInput, match="'lexical' takes no bag of tokens"):
        collection.search(["cat"], lenses=["lexical"], params={"lexical": SparseParams(query="bag")})


def test_a_head_that_was_not_chosen(tokens_only: Collection) -> None:
    with pytest.raises(BadInput, match="no lens 'dense'"):
        tokens_only.search(["cat"], 3, rerank="dense")


def test_stored_vectors_re_rank_what_bm25_found(collection: Collection) -> None:
    sparse = {hit.doc_id: hit.score for hit in collection.search(["cat dog"], 9, lenses=["sparse"])[0]}
    found = collection.search(["cat dog"], 9, lenses=["bm25"], rerank="sparse")[0]
    assert [hit.doc_id for hit in found] == sorted((hit.doc_id for hit in found), key=lambda doc_id: -sparse[doc_id])
    assert {hit.doc_id: hit.score for hit in found} == pytest.approx({hit.doc_id: sparse[hit.doc_id] for hit in found})


def test_filters_hold_in_every_mode(collection: Collection) -> None:
    for lens, params, *_ in MODES:
        everything = collection.search(QUERIES, 9, lenses=[lens], params={lens: params})
        filtered = collection.search(QUERIES, 9, lenses=[lens], params={lens: params}, where={"n": {"$gte": 2}})
        for hits, kept in zip(everything, filtered, strict=True):
            assert [(hit.doc_id, hit.score) for hit in hits if hit.doc_id >= "c"] == [(hit.doc_id, hit.score) for hit in kept]


def test_the_token_index_is_made_without_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("a document was encoded")

    monkeypatch.setattr(store_lenses, "OnnxEncoder", tiny.encoder_of)
    monkeypatch.setattr(tiny.TinyEncoder, "encode_docs", fail)
    with Collection.create(tmp_path / "c", lenses=["tokens"], model=tiny.make_model(tmp_path), threads=1) as made:
        made.add(Document(doc_id, text) for doc_id, text in TEXTS.items())
    assert ModelFolder.open(Path(made.config.model)).fingerprint == made.config.model_fingerprint
