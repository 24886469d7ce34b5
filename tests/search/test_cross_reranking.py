"""The best candidates in the order of a cross-encoder: depth, blending with the first stage, passages, explanations."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trilens import Collection, Document, SearchOptions
from trilens.cancellation import stop_when
from trilens.errors import BadInput, BadModel, Stopped, TrilensError
from trilens.search.hits import Hit
from trilens.store.config import PassageConfig

from ..encode.counting_cross import counting_cross

TEXTS = {
    "a": "cat cat cat",
    "b": "cat mat",
    "c": "a cat and a dog",
    "d": "dog dog dog and one cat",
    "e": "cat house",
    "f": "ships leave at dawn",
}
QUERY = "cat dog"
COUNTS = {"a": 4, "b": 2, "c": 3, "d": 5, "e": 2, "f": 1}  # equal words, and the closing token


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(counting_cross(tmp_path_factory.mktemp("models") / "counting", [*TEXTS.values(), QUERY]))


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    path = tmp_path_factory.mktemp("cross") / "c"
    with Collection.create(path, lenses=["bm25", "dense"], threads=1) as made:
        made.add(Document(doc_id, text) for doc_id, text in TEXTS.items())
        made.commit()
        yield made


def cross(model: str, **settings: Any) -> dict[str, Any]:
    """By the cross-encoder alone, unless the settings say otherwise."""
    return {"by": "cross", "model": model, "first": 0, **settings}


def ids(hits: list[Hit]) -> list[str]:
    return [hit.doc_id for hit in hits]


def test_documents_rank_by_the_score_of_the_cross_encoder(collection: Collection, model: str) -> None:
    [hits] = collection.search([QUERY], 3, lenses=["bm25"], rerank=cross(model))
    assert [(hit.doc_id, hit.score) for hit in hits] == [("d", 5.0), ("a", 4.0), ("c", 3.0)]
    for rank, hit in enumerate(hits, start=1):
        assert hit.by_lens["cross"].rank == hit.rank == rank
        assert hit.by_lens["cross"].contribution == hit.score and hit.by_lens["bm25"].contribution == 0
    assert collection.search(["zzz"], 3, lenses=["bm25"], rerank=cross(model)) == [[]]
    both = collection.search([QUERY, "ships"], 6, rerank=cross(model))
    assert ids(both[0])[:3] == ["d", "a", "c"] and both[1][0].doc_id == "f" and both[1][0].score == 2.0


def test_only_the_best_candidates_are_re_ranked(collection: Collection, model: str) -> None:
    first = ids(collection.search([QUERY], 6)[0])
    for depth in (1, 2, 4):
        for k in (1, 3):
            [hits] = collection.search([QUERY], k, rerank=cross(model, depth=depth))
            best = sorted(first[: max(depth, k)], key=lambda doc_id: -COUNTS[doc_id])[:k]
            assert sorted(COUNTS[hit.doc_id] for hit in hits) == sorted(COUNTS[doc_id] for doc_id in best)
    pages = [collection.search([QUERY], 2, offset=offset, rerank=cross(model, depth=6))[0] for offset in (0, 2, 4)]
    assert [doc_id for page in pages for doc_id in ids(page)] == ids(collection.search([QUERY], 6, rerank=cross(model))[0])


def test_a_lens_re_ranks_the_best_candidates_as_well(collection: Collection) -> None:
    [dense] = collection.search([QUERY], 6, lenses=["dense"])
    first = ids(collection.search([QUERY], 6, lenses=["bm25"])[0])
    [hits] = collection.search([QUERY], 2, lenses=["bm25"], rerank="dense:depth=2")
    assert ids(hits) == [doc_id for doc_id in ids(dense) if doc_id in first[:2]]


def test_the_first_stage_counts_by_its_standard_score(collection: Collection, model: str) -> None:
    """Σ of standard scores over the re-ranked candidates, by hand."""
    fused = {hit.doc_id: hit.score for hit in collection.search([QUERY], 6)[0]}
    [hits] = collection.search([QUERY], 6, rerank=cross(model, first=0.5))
    firsts, counts = (np.array([scores[doc_id] for doc_id in fused]) for scores in (fused, COUNTS))
    expected = (counts - counts.mean()) / counts.std() + 0.5 * (firsts - firsts.mean()) / firsts.std()
    found = {hit.doc_id: hit.score for hit in hits}
    assert [found[doc_id] for doc_id in fused] == pytest.approx(expected.tolist(), abs=1e-5)
    for hit in hits:
        assert sum(seen.contribution for seen in hit.by_lens.values()) == pytest.approx(hit.score)
        assert hit.by_lens["fusion"].score == pytest.approx(fused[hit.doc_id], abs=1e-5)
        assert {"bm25", "dense", "fusion", "cross"} >= set(hit.by_lens)
    one = collection.search([QUERY], 6, rerank=cross(model, first=1))
    assert collection.search([QUERY], 6, rerank={"by": "cross", "model": model}) == one  # the default
    [alone] = collection.search([QUERY], 6, lenses=["bm25"], rerank=cross(model, first=2.0))
    assert "fusion" not in alone[0].by_lens and alone[0].by_lens["bm25"].contribution


def test_a_document_ranks_by_its_best_passage(tmp_path: Path, model: str) -> None:
    passages = PassageConfig(words=4, overlap=0)
    with Collection.create(tmp_path / "c", lenses=["bm25"], passages=passages) as made:
        made.add([Document("long", "ships leave at dawn. cat dog cat dog. a cat and one."), Document("short", "cat dog")])
        made.commit()
        [hits] = made.search([QUERY], 2, rerank=cross(model))
        assert [(hit.doc_id, hit.score, hit.passage) for hit in hits] == [
            ("long", 5.0, "cat dog cat dog."),
            ("short", 3.0, "cat dog"),
        ]


@pytest.mark.parametrize("settings", [{}, {"depth": 2}, {"first": 0.5}, {"first": 1.0, "depth": 3}])
def test_explanations_add_up_to_the_score(collection: Collection, model: str, settings: dict[str, Any]) -> None:
    options = SearchOptions(k=3, rerank=cross(model, **settings))
    for hit in collection.search([QUERY], options=options)[0]:
        found = collection.explain(QUERY, hit.doc_id, options=options)
        assert found.score == pytest.approx(hit.score, abs=1e-5)
        assert sum(part.score for part in found.parts) == pytest.approx(found.score, abs=1e-5)
        read = found.children[-1] if found.children else found
        assert read.lens == "cross" and read.approximate
        assert sum(part.score for part in read.parts) == pytest.approx(read.score, abs=1e-5)
        assert found.approximate == (not settings.get("first"))


def test_parts_are_the_drops_without_each_word(collection: Collection, model: str) -> None:
    found = collection.explain(QUERY, "d", rerank=cross(model))
    parts = [(part.label, part.kind, part.score) for part in found.parts]
    words = [("dog", "token", 1.0)] * 3 + [("and", "token", 0.0), ("one", "token", 0.0), ("cat", "token", 1.0)]
    asked = [("cat", "asked", 1.0), ("dog", "asked", 3.0)]
    assert parts == [*words, *asked, ("all words together", "rest", 5.0 - 8.0)]
    assert [part.query_span for part in found.parts if part.kind == "asked"] == [(0, 3), (4, 7)]
    assert found.heat()[0] == (0, 3, 1.0)


def test_documents_that_no_search_would_re_rank_are_explained(collection: Collection, model: str) -> None:
    found = collection.explain(QUERY, "f", k=1, lenses=["bm25"], rerank=cross(model, first=1.0, depth=1))
    assert found.approximate and sum(part.score for part in found.parts) == pytest.approx(found.score)
    with Collection.open(collection.path) as again:
        assert again.explain(QUERY, "f", rerank=cross(model)).score == 1.0


def test_a_first_stage_without_a_score_counts_as_its_lowest(tmp_path: Path, model: str) -> None:
    with Collection.create(tmp_path / "c", lenses=["multi"]) as made:
        made.add([Document("a", "cat dog"), Document("b", "cat"), Document("empty", "!!!")])
        made.commit()
        found = made.explain(QUERY, "empty", rerank=cross(model, first=1.0))
        assert np.isfinite(found.score) and sum(part.score for part in found.parts) == pytest.approx(found.score)


def test_it_stops_before_the_cross_encoder(collection: Collection, model: str) -> None:
    collection.search([QUERY], rerank=cross(model))
    checks = 0

    def counted() -> bool:
        nonlocal checks
        checks += 1
        return False

    with stop_when(counted):
        collection.search([QUERY], rerank=cross(model))
    for most in range(checks):
        left = iter(range(most))
        with stop_when(lambda left=left: next(left, None) is None), pytest.raises(Stopped):  # type: ignore[misc]
            collection.search([QUERY], rerank=cross(model))


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"rerank": "cross"}, BadInput, "rerank is cross without a model; expected a cross-encoder"),
        ({"rerank": "cross:model=nowhere"}, BadModel, "there is no model 'nowhere'"),
        ({"rerank": "cross:model=trilens-mini"}, BadModel, "is no cross-encoder"),
        ({"rerank": "dense:model=x"}, BadInput, "rerank.model is 'x', but dense is a lens"),
        ({"rerank": "cross:depth=0"}, BadInput, "rerank.depth is 0; expected a value greater than or equal to 1"),
        ({"rerank": "dense:first=-1"}, BadInput, "rerank.first is -1; expected"),
        ({"rerank": "dense:deep=1"}, BadInput, "expected one of by, model, depth, first"),
        ({"rerank": "dense:depth"}, BadInput, "has 'depth'; expected BY:NAME=VALUE,…"),
        ({"rerank": 3}, BadInput, "rerank is 3; expected a lens or cross"),
        ({"rerank": {"depth": 3}}, BadInput, "expected a lens or cross"),
        ({"lenses": ["bm25"], "rerank": "dense:depth=3", "fusion": "zscore"}, BadInput, "but dense re-ranks the candidates"),
        ({"rerank": "dense:depth=3", "fusion": "zscore:cat=1"}, BadInput, "fusion zscore:cat=1"),
    ],
)
def test_mistakes(collection: Collection, options: dict[str, Any], kind: type[TrilensError], message: str) -> None:
    with pytest.raises(kind) as error:
        collection.search([QUERY], **options)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_a_fusion_chooses_what_is_re_ranked(collection: Collection, model: str) -> None:
    for fusion in ("zscore:bm25=1,dense=0", "zscore:bm25=0,dense=1"):
        first = ids(collection.search([QUERY], 2, fusion=fusion)[0])
        assert set(ids(collection.search([QUERY], 2, fusion=fusion, rerank=cross(model, depth=2))[0])) == set(first)


def test_text_form() -> None:
    read = SearchOptions(rerank="cross:depth=50,first=0.5,model=models/x").rerank
    assert read and (read.by, read.depth, read.first, read.model) == ("cross", 50, 0.5, "models/x")
    assert SearchOptions(rerank=str(read)).rerank == read
    assert str(SearchOptions(rerank="multi").rerank) == "multi"
    assert SearchOptions.model_validate_json(SearchOptions(rerank=read).model_dump_json()).rerank == read
