"""The terms of a score: in step with their weights, and adding up."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from trilens import Collection, Document, SparseParams
from trilens.errors import BadInput

TEXTS = {
    "rain": "Heavy rain is expected tomorrow in the north of the country.",
    "car": "The mechanic repaired the engine of an old car.",
    "long": "A short start. " + "Nothing happens here at all. " * 40 + "Then the engine of the ship broke down.",
}
QUERIES = ["motor repair", "what will the weather be like", "ship engine", "the car the car"]


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    path: Path = tmp_path_factory.mktemp("terms") / "c"
    lenses = ["bm25", "sparse", "tokens", "lexical"]
    with Collection.create(path, lenses=lenses, passages={"words": 60, "overlap": 10}, threads=1) as made:
        made.add(Document(doc_id, text) for doc_id, text in TEXTS.items())
        made.commit()
        yield made


@pytest.mark.parametrize("lens", ["sparse", "tokens", "lexical"])
@pytest.mark.parametrize("bag", [False, True])
def test_parts_add_up_to_the_score(collection: Collection, lens: str, bag: bool) -> None:
    if bag and lens == "lexical":
        pytest.skip("lexical queries have no bag of tokens")
    params = SparseParams(query="bag") if bag else None
    for query in QUERIES:
        for hit in collection.search([query], lenses=[lens], params={lens: params})[0]:
            found = collection.explain(query, hit.doc_id, lens, params={lens: params})
            assert found.score == pytest.approx(hit.score, rel=1e-6, abs=1e-4)
            assert sum(part.score for part in found.parts) == pytest.approx(hit.score, rel=1e-6, abs=1e-4)
            parts = [part for part in found.parts if part.kind != "rest"]
            for part in parts:
                assert part.score == pytest.approx(part.facts["query_weight"] * part.facts["doc_weight"])  # type: ignore[operator]
            assert [part.score for part in parts] == sorted((part.score for part in parts), reverse=True)


def test_own_words_are_told_from_added_ones(collection: Collection) -> None:
    parts = collection.explain("old car", "car", "sparse").parts
    found = {part.label: part for part in parts if part.kind != "rest"}
    held = {label: (bool(part.facts["in_query"]), bool(part.facts["in_doc"])) for label, part in found.items()}
    assert (held["car"], found["car"].kind) == ((True, True), "own")
    assert (held["mechanic"], found["mechanic"].kind) == ((False, True), "expanded")
    assert (False, False) in held.values()
    assert found["car"].score == max(part.score for part in found.values())


def test_the_token_index_shares_only_words_that_the_document_has(collection: Collection) -> None:
    found = collection.explain("old car", "car", "tokens")
    parts = [part for part in found.parts if part.kind != "rest"]
    assert all(part.facts["in_doc"] for part in parts)
    assert len({part.facts["doc_weight"] for part in parts}) == 1


def test_places_of_terms(collection: Collection) -> None:
    for lens in ("sparse", "tokens", "lexical"):
        found = collection.explain("old car", "car", lens)
        part = next(part for part in found.parts if part.label == "car")
        assert part.query_span == (4, 7)
        assert [found.passage.text[start:end] for start, end in part.doc_spans] == ["car"]


def test_inflections_are_one_lexical_term(collection: Collection) -> None:
    found = collection.explain("engines and repairs", "car", "lexical")
    spans = {
        part.label: (part.query_span, [found.passage.text[start:end] for start, end in part.doc_spans]) for part in found.parts
    }
    assert spans["engines"] == ((0, 7), ["engine"])
    assert spans["repairs"] == ((12, 19), ["repaired"])
    assert all(part.kind == "own" for part in found.parts if part.kind != "rest")


def test_nothing_in_common(collection: Collection) -> None:
    found = collection.explain("zebra", "rain", "lexical")
    assert (found.score, found.parts) == (0, [])


def test_what_cannot_be_explained(collection: Collection) -> None:
    with pytest.raises(BadInput, match="no document 'nothing'"):
        collection.explain("car", "nothing", "sparse")
    with pytest.raises(BadInput, match="no lens 'smell'"):
        collection.explain("car", "car", "smell")
