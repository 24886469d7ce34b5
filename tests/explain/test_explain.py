"""Explanations of fusions, re-ranking and late scores: their parts add up to the score of the search."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trilens import Collection, Document
from trilens.errors import BadInput
from trilens.search.fusion import Fusion

from ..bundled import with_multi
from ..lenses.explained import PASSAGES, QUERIES, TEXTS, require_sum


@pytest.mark.parametrize(
    "fusion", ["rrf", "weighted", "minmax:damp=true", "zscore:missing=worst", "rrf:bm25=3,multi=1,missing=worst", "all"]
)
def test_parts_of_a_fusion(collection: Collection, fusion: str) -> None:
    for query in QUERIES:
        for hit in collection.search([query], fusion=fusion)[0]:
            found = collection.explain(query, hit.doc_id, fusion=fusion)
            require_sum(found, hit.score)
            assert found.children is not None
            assert [child.lens for child in found.children] == [part.label for part in found.parts]
            for part, child in zip(found.parts, found.children, strict=True):
                assert part.kind == "lens"
                by_lens = hit.by_lens.get(part.label)
                if by_lens:
                    assert part.score == pytest.approx(by_lens.contribution, abs=1e-6)
                    assert part.facts["rank"] == by_lens.rank
                require_sum(child, child.score)


def test_a_search_for_more_than_the_depth_of_its_fusion(collection: Collection) -> None:
    fusion, lenses = Fusion("zscore", depth=2), ["bm25", "dense"]
    differ = 0
    for hit in collection.search([QUERIES[0]], 6, lenses=lenses, fusion=fusion)[0]:
        found = collection.explain(QUERIES[0], hit.doc_id, lenses=lenses, k=6, fusion=fusion)
        require_sum(found, hit.score)
        differ += abs(collection.explain(QUERIES[0], hit.doc_id, lenses=lenses, k=1, fusion=fusion).score - hit.score) > 1e-3
    assert differ


@pytest.mark.parametrize("rerank", ["bm25", "dense", "sparse", "lexical", "multi"])
def test_a_re_ranking_lens_explains_its_score(collection: Collection, rerank: str) -> None:
    """It scores the passages that the first lens returned, which need not be its own best ones of the same document."""
    for query in QUERIES[:2]:
        for hit in collection.search([query], lenses=["tokens"], rerank=rerank)[0]:
            found = collection.explain(query, hit.doc_id, lenses=["tokens"], rerank=rerank)
            assert found.lens == rerank
            require_sum(found, hit.score)


def test_late_scores_are_explained(tmp_path: Path) -> None:
    with Collection.create(tmp_path / "c", lenses=["tokens"], passages=PASSAGES, threads=1) as made:
        made.add(Document(doc_id, text) for doc_id, text in TEXTS.items())
        made.commit()
        for query in QUERIES[:2]:
            for hit in made.search([query], rerank="sparse")[0]:
                found = made.explain(query, hit.doc_id, rerank="sparse")
                require_sum(found, hit.score)
                assert {"own", "expanded"} <= {part.kind for part in found.parts} or hit.score < 0.1
        with pytest.raises(BadInput, match="no lens 'multi'"):
            made.explain(QUERIES[0], "car", rerank="multi")


def test_two_lenses_by_name(collection: Collection) -> None:
    found = collection.explain("broken engine", "car", lenses=["bm25", "dense"], fusion="minmax:bm25=0.75,dense=0.25")
    assert [part.label for part in found.parts] == ["bm25", "dense"]
    assert [part.facts["weight"] for part in found.parts] == [0.75, 0.25]
    assert not found.approximate


def test_a_damped_weight_is_explained_by_the_best_match(tmp_path: Path) -> None:
    """In a collection with enough passages to tell, the query shares one frequent word with some of them."""
    with Collection.create(tmp_path / "c", lenses=["bm25", "dense"], threads=1) as made:
        made.add(Document(str(n), f"the engine of car {n}") for n in range(24))
        made.add([Document("trip", "the car was slow")])
        made.commit()
        query, fusion = "why was the car florbling wimpet", "zscore:bm25=0.4,dense=0.6,damp=true"
        for doc_id in ("3", "trip"):
            found = made.explain(query, doc_id, fusion=fusion)
            undamped = made.explain(query, doc_id, fusion="zscore:bm25=0.4,dense=0.6")
            for part, plain in zip(found.parts, undamped.parts, strict=True):
                strongest, weight = part.facts["strongest"], plain.facts["weight"]
                assert isinstance(strongest, float) and isinstance(weight, float)
                assert part.facts["weight"] == pytest.approx(weight * min(1.0, strongest))
                assert part.score == pytest.approx(plain.score * min(1.0, strongest))
            require_sum(found, next(hit.score for hit in made.search([query], 30, fusion=fusion)[0] if hit.doc_id == doc_id))
            assert 0 < float(found.parts[0].facts["strongest"] or 0) < 1


def test_the_mean_over_tokens_knows_their_weights(collection: Collection) -> None:
    """The query tokens of the bundled model have weights, and its document tokens the length 1."""
    multi = collection.search(["broken engine"], fusion="all")[0][0].by_lens["multi"]
    assert 0 < multi.contribution <= 1 < multi.score


def test_the_lens_that_re_ranks_all_others_is_explained(collection: Collection) -> None:
    hit = collection.search(["broken engine"], rerank="multi")[0][0]
    found = collection.explain("broken engine", hit.doc_id, rerank="multi")
    assert found.lens == "multi"
    require_sum(found, hit.score)


def test_a_document_that_no_lens_returns(collection: Collection) -> None:
    found = collection.explain("broken engine", "rain", lenses=["bm25", "lexical"], fusion="minmax")
    require_sum(found, found.score)
    assert found.approximate
    assert [part.facts["rank"] for part in found.parts] == [None, None]


def test_the_expansion_of_a_query_is_explained(collection: Collection) -> None:
    settings: dict[str, Any] = {"lenses": ["bm25"], "expand": "docs=2,terms=5"}
    for hit in collection.search([QUERIES[0]], **settings)[0]:
        found = collection.explain(QUERIES[0], hit.doc_id, **settings)
        require_sum(found, hit.score)
        assert found.expansion
    assert collection.explain(QUERIES[0], "car", lenses=["bm25"]).expansion is None


def test_what_cannot_be_explained(collection: Collection) -> None:
    with pytest.raises(BadInput, match="no document 'nothing'"):
        collection.explain("car", "nothing")
    with pytest.raises(BadInput, match="the query is empty"):
        collection.explain(" ", "car")
    with pytest.raises(BadInput, match="no lens 'smell'"):
        collection.explain("car", "car", lenses=["smell"])


def test_nothing_to_match(tmp_path: Path) -> None:
    model = str(with_multi(tmp_path / "model", skip_special=True))
    with Collection.create(tmp_path / "c", lenses=["bm25", "multi"], model=model, threads=1) as made:
        made.add([Document("marks", "!!!"), Document("cat", "A cat.")])
        made.commit()
        for lens in ("bm25", "multi"):
            found = made.explain("cat", "marks", lenses=[lens])
            assert (found.score, found.parts) == (0, [])
        fused = made.explain("cat", "marks", fusion="minmax")
        assert np.isfinite(fused.score)
        require_sum(fused, fused.score)
