"""Alignments of the multi lens: parts that add up to the score, by hand and with the bundled model."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from trilens import Collection, Document, MultiParams
from trilens.errors import BadInput
from trilens.explain.alignment import Alignment

from ..bundled import with_multi

ALL = np.ones((2, 3), np.bool_)
NO_FLOOR = np.full(2, -np.inf, np.float32)
ALIKE = np.ones(2, np.float32)
SIMILARITIES = np.array([[0.1, 0.9, 0.3], [0.5, 0.2, 0.4]], np.float32)
TEXTS = {
    "cats": "The cat sat on the mat and slept through the afternoon.",
    "dogs": "Dogs bark loudly at night; the neighbours complain.",
    "fox": "A quick brown fox jumps over the lazy dog near the river.",
    "marks": "!!! ... ???",
    "long": " ".join(f"Sentence number {n} is about boats and harbours." for n in range(60)) + " A cat sleeps aboard.",
}


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    path: Path = tmp_path_factory.mktemp("alignment") / "c"
    with Collection.create(path, lenses=["bm25", "multi"], threads=1) as made:
        made.add(Document(doc_id, text) for doc_id, text in TEXTS.items())
        made.commit()
        yield made


def test_parts_by_hand() -> None:
    found = Alignment(["a", "b"], ["x", "y", "z"], SIMILARITIES, ALL, NO_FLOOR, ALIKE)
    assert found.winners.tolist() == [1, 0]
    assert found.parts.tolist() == pytest.approx([0.9, 0.5])
    assert found.score == pytest.approx(1.4)
    assert not found.imputed.any()


def test_imputed_parts_by_hand() -> None:
    """The first token retrieved only z (0.3), below its floor; the second retrieved nothing at all."""
    retrieved = np.array([[False, False, True], [False, False, False]])
    found = Alignment(["a", "b"], ["x", "y", "z"], SIMILARITIES, retrieved, np.array([0.35, 0.25], np.float32), ALIKE)
    assert found.winners.tolist() == [-1, -1]
    assert found.imputed.all()
    assert found.parts.tolist() == pytest.approx([0.35, 0.25])


@pytest.mark.parametrize("params", [None, MultiParams("xtr", candidates=0, probes=2, reach=2), MultiParams("exact")])
def test_parts_sum_to_the_score(collection: Collection, params: MultiParams | None) -> None:
    for query in ("sleeping cats", "a noisy dog at night", "harbour"):
        for hit in collection.search([query], 3, lenses=["multi"], params={"multi": params} if params else None)[0]:
            found = collection.align(query, hit.doc_id, params)
            assert found is not None
            assert found.score == pytest.approx(hit.score, abs=1e-4)
            assert float(found.parts.sum()) == pytest.approx(found.score, abs=1e-6)


def test_rare_tokens_of_the_query_weigh_more(collection: Collection) -> None:
    """What a part says that it is made of is what it is: a weight, and a similarity of vectors of length 1."""
    parts = {part.label: part for part in collection.explain("the sleeping cat", "cats", "multi").parts if part.kind == "pair"}
    for part in parts.values():
        weight, similarity = part.facts["query_weight"], part.facts["similarity"]
        assert isinstance(weight, float) and isinstance(similarity, float)
        assert part.score == pytest.approx(weight * similarity)
        assert similarity <= 1.01
    assert parts["cat"].facts["query_weight"] > parts["the"].facts["query_weight"]  # type: ignore[operator]


def test_tokens_are_words_of_the_texts(collection: Collection) -> None:
    found = collection.align("sleeping cats", "cats")
    assert found is not None
    assert found.query_tokens == ["[CLS]", "sleeping", "cats", "[SEP]"]
    assert found.doc_tokens[:4] == ["[CLS]", "the", "cat", "sat"]
    assert "." not in found.doc_tokens
    assert found.doc_tokens[found.winners[2]] == "cat"


def test_the_best_passage_is_explained(collection: Collection) -> None:
    found = collection.align("a sleeping cat aboard", "long")
    assert found is not None
    assert "aboard" in found.doc_tokens


def test_a_document_without_tokens_has_no_alignment(tmp_path: Path) -> None:
    model = str(with_multi(tmp_path / "model", skip_special=True))
    with Collection.create(tmp_path / "c", lenses=["multi"], model=model, threads=1) as made:
        made.add([Document("marks", TEXTS["marks"])])
        made.commit()
        assert made.align("cats", "marks") is None


def test_unknown_document(collection: Collection) -> None:
    with pytest.raises(BadInput, match="no document 'nobody'"):
        collection.align("cats", "nobody")
