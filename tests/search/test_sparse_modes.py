"""Full, α, β and late-parametric search against inner products computed here, and the terms that explain the scores."""

from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
from numpy.typing import NDArray

from trilens import Collection, Document, SparseParams
from trilens.encode.folder import TermWeighting
from trilens.errors import BadInput
from trilens.represent import Sparse

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
ENCODER = tiny.TinyEncoder(weighting=TermWeighting())


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    path: Path = tmp_path_factory.mktemp("modes") / "c"
    with Collection.create(path, lenses=["bm25", "sparse", "tokens", "lexical"], encoder=ENCODER) as made:
        made.add(Document(doc_id, text, metadata={"n": n}) for n, (doc_id, text) in enumerate(TEXTS.items()))
        made.commit()
        yield made


@pytest.fixture(scope="module")
def tokens_only(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    path: Path = tmp_path_factory.mktemp("late") / "c"
    with Collection.create(path, lenses=["tokens"], encoder=ENCODER) as made:
        made.add(Document(doc_id, text) for doc_id, text in TEXTS.items())
        made.commit()
        yield made


def matrix(texts: list[str], kind: str) -> NDArray[np.float64]:
    """The tiny model's representation of texts, a row each; `bare` are bags in which every token counts once."""
    sparse: Sparse = getattr(ENCODER.encode_docs(texts), "bag" if kind == "bare" else kind)
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
    ("sparse", {}, "sparse", "sparse", EIGHT_BITS),
    ("sparse", {"query": "bag"}, "bare", "sparse", EIGHT_BITS),
    ("tokens", {}, "sparse", "bare", 1e-6),
    ("tokens", {"query": "bag"}, "bare", "bare", 1e-6),
    ("lexical", {}, "lexical", "lexical", EIGHT_BITS),
]


@pytest.mark.parametrize(("lens", "params", "query", "text", "tolerance"), MODES)
def test_scores_are_inner_products(
    collection: Collection, lens: str, params: dict[str, str], query: str, text: str, tolerance: float
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
    with pytest.raises(BadInput, match=r"params\.lexical: option 'query' is not known"):
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
        filtered = collection.search(QUERIES, 9, lenses=[lens], params={lens: params}, filter={"n": {"$gte": 2}})
        for hits, kept in zip(everything, filtered, strict=True):
            assert [(hit.doc_id, hit.score) for hit in hits if hit.doc_id >= "c"] == [(hit.doc_id, hit.score) for hit in kept]


def test_the_token_index_is_made_without_the_model(tmp_path: Path) -> None:
    class Failing(tiny.TinyEncoder):
        def encode_docs(self, *_: object, **__: object) -> NoReturn:
            raise AssertionError("a document was encoded")

    with Collection.create(tmp_path / "c", lenses=["tokens"], encoder=Failing()) as made:
        made.add(Document(doc_id, text) for doc_id, text in TEXTS.items())
    assert len(made) == len(TEXTS)
