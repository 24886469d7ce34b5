"""Candidates of one lens in the order of another."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from trilens import Collection, Document
from trilens.errors import BadInput

from ..bundled import with_multi

TEXTS = {
    "a": "The cat sat on the mat.",
    "b": "My cat hates the dog next door, a noisy animal.",
    "c": "A cat and a dog sleep in one bed.",
    "d": "Ships leave the harbour at dawn.",
    "e": "!!!",
}


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    folder: Path = tmp_path_factory.mktemp("reranking")
    model = str(with_multi(folder / "model", skip_special=True))
    with Collection.create(folder / "c", lenses=["bm25", "dense", "multi"], model=model, threads=1) as made:
        made.add(Document(doc_id, text, metadata={"n": number}) for number, (doc_id, text) in enumerate(TEXTS.items()))
        made.commit()
        yield made


def test_candidates_of_bm25_in_the_order_of_multi(collection: Collection) -> None:
    query = ["where do cats and dogs sleep, cat"]
    multi = {hit.doc_id: hit.score for hit in collection.search(query, 5, lenses=["multi"], exact=True)[0]}
    found = collection.search(query, 5, lenses=["bm25"], rerank="multi")[0]
    assert {hit.doc_id for hit in found} == {hit.doc_id for hit in collection.search(query, 5, lenses=["bm25"])[0]}
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    for rank, hit in enumerate(found, start=1):
        assert hit.score == pytest.approx(multi[hit.doc_id], abs=1e-5)
        assert hit.by_lens["multi"].rank == hit.rank == rank
        assert set(hit.by_lens) == {"bm25", "multi"}


def test_union_of_several_lenses(collection: Collection) -> None:
    found = collection.search(["a sleeping cat"], 5, lenses=["bm25", "dense"], rerank="multi")[0]
    assert {hit.doc_id for hit in found} == {"a", "b", "c", "d"}  # e has no token that multi could score


def test_filters_hold_and_k_cuts(collection: Collection) -> None:
    found = collection.search(["cat"], 1, lenses=["bm25"], rerank="multi", filter={"n": {"$gte": 1}})[0]
    assert len(found) == 1
    assert found[0].doc_id in ("b", "c")


def test_nothing_found_stays_nothing(collection: Collection) -> None:
    assert collection.search(["zebra"], 3, lenses=["bm25"], rerank="multi") == [[]]


@pytest.mark.parametrize("lens", ["bm25", "dense"])
def test_any_lens_can_decide(collection: Collection, lens: str) -> None:
    alone = {hit.doc_id: hit.score for hit in collection.search(["cat"], 5, lenses=[lens])[0]}
    found = collection.search(["cat"], 5, lenses=["multi"], rerank=lens)[0]
    assert {hit.doc_id for hit in found} == {"a", "b", "c", "d"}
    for hit in found:
        assert hit.score == pytest.approx(alone.get(hit.doc_id, 0.0))
        assert hit.by_lens[lens].contribution == hit.score
        assert hit.by_lens["multi"].contribution == 0


def test_an_unknown_lens(collection: Collection) -> None:
    with pytest.raises(BadInput, match="no lens 'nothing'"):
        collection.search(["cat"], 3, lenses=["bm25"], rerank="nothing")
