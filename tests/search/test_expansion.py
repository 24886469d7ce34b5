"""Feedback by hand for bm25, and what it does to the sparse lenses."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from trilens import Collection, Document
from trilens.errors import BadInput
from trilens.lenses.feedback import Expansion
from trilens.search.options import SearchOptions

# "feline" is only found through "cat"; filler keeps the words of the others rare.
TEXTS = {
    "a": "cat feline feline whiskers",
    "b": "feline whiskers purring",
    "c": "dog bark",
    **{f"filler{n}": f"filler number{n} text{n}" for n in range(37)},
}


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    path: Path = tmp_path_factory.mktemp("expansion") / "c"
    lenses = ["bm25", "dense", "sparse", "tokens", "lexical"]
    with Collection.create(path, lenses=lenses, bm25={"analysis": {"stem": False}}, threads=1) as made:
        made.add(Document(doc_id, text) for doc_id, text in TEXTS.items())
        made.commit()
        yield made


def test_rm3_by_hand(collection: Collection) -> None:
    """Only a holds cat. P(w|R) ∝ 1/4 cat, 2/4 feline, 1/4 whiskers; half of the query's weight of 1 goes to them."""
    found = collection.explain("cat", "a", lenses=["bm25"], expand=Expansion(docs=5, terms=3))
    assert found.expansion is not None
    assert found.expansion["docs"] == ["a"]
    assert found.expansion["terms"] == pytest.approx({"feline": 0.25, "cat": 0.125, "whiskers": 0.125})
    assert {part.label: part.facts["query_weight"] for part in found.parts} == pytest.approx(
        {"feline": 0.25, "cat": 0.625, "whiskers": 0.125}
    )
    assert {part.label: part.kind for part in found.parts} == {"cat": "own", "feline": "expanded", "whiskers": "expanded"}
    (hits,) = collection.search(["cat"], lenses=["bm25"], expand="docs=5,terms=3")
    assert [hit.doc_id for hit in hits] == ["a", "b"]
    assert sum(part.score for part in found.parts) == pytest.approx(hits[0].score, abs=1e-5)
    assert [hit.doc_id for hit in collection.search(["cat"], lenses=["bm25"])[0]] == ["a"]


def test_only_the_best_terms_and_no_common_ones(collection: Collection) -> None:
    found = collection.explain("cat", "a", lenses=["bm25"], expand=Expansion(terms=1))
    assert found.expansion is not None
    assert list(found.expansion["terms"]) == ["feline"]
    common = collection.explain("number3", "filler3", lenses=["bm25"], expand="on")
    assert common.expansion is not None
    assert set(common.expansion["terms"]) == {"number3", "text3"}


def test_the_original_alone(collection: Collection) -> None:
    for lens in ("bm25", "sparse", "tokens", "lexical"):
        plain = collection.search(["cat whiskers"], lenses=[lens])[0]
        same = collection.search(["cat whiskers"], lenses=[lens], expand="weight=1")[0]
        assert [hit.doc_id for hit in same] == [hit.doc_id for hit in plain]
        assert [hit.score for hit in same] == pytest.approx([hit.score for hit in plain], rel=1e-5)


@pytest.mark.parametrize("lens", ["sparse", "tokens", "lexical"])
@pytest.mark.parametrize("bag", [False, True])
def test_vocabulary_feedback(collection: Collection, lens: str, bag: bool) -> None:
    if bag and lens == "lexical":
        pytest.skip("lexical queries have no bag of tokens")
    params = {lens: {"query": "bag"}} if bag else {}
    for hit in collection.search(["cat"], 3, lenses=[lens], params=params, expand="docs=2,terms=5")[0]:
        found = collection.explain("cat", hit.doc_id, lenses=[lens], params=params, expand="docs=2,terms=5")
        assert sum(part.score for part in found.parts) == pytest.approx(hit.score, abs=1e-4)
        assert found.expansion is not None
        assert 1 <= len(found.expansion["terms"]) <= 5
        assert all(weight > 0 for weight in found.expansion["terms"].values())


def test_a_batch_and_nothing_found(collection: Collection) -> None:
    queries = ["cat", "zebra", "dog bark"]
    together = collection.search(queries, lenses=["bm25", "sparse"], expand="on")
    assert together == [collection.search([query], lenses=["bm25", "sparse"], expand="on")[0] for query in queries]


def test_a_fusion_keeps_what_was_added(collection: Collection) -> None:
    found = collection.explain("cat", "b", lenses=["bm25", "dense"], expand="on", fusion="minmax")
    assert found.children is not None
    assert [child.expansion is not None for child in found.children] == [True, False]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("off", "expand is 'off'"),
        ("docs=many", "docs=many; expected a number"),
        ("docs=0", "expand.docs is 0; expected a value greater than or equal to 1"),
        ("weight=2", "expand.weight is 2; expected a value less than or equal to 1"),
        ("docs=1,docs=2", "each once"),
    ],
)
def test_what_is_no_expansion(text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        SearchOptions(expand=text)


def test_lenses_that_cannot_be_expanded(collection: Collection) -> None:
    with pytest.raises(
        BadInput, match="expand is given, but the lenses searched are dense; it applies to bm25, sparse, tokens, lexical"
    ):
        collection.search(["cat"], lenses=["dense"], expand="on")
