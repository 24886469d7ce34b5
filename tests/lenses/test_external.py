"""The external lens: vectors that come with the documents."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trilens import Collection, Document
from trilens.errors import BadInput
from trilens.lenses import external
from trilens.read.readers import Fields, read
from trilens.text.vectors import write_vector

EIGHT_BITS = 2e-2
OPTIONS: dict[str, Any] = {"lenses": ["external"], "passages": {"words": 0, "overlap": 0}}
VECTORS = {
    "a": {"cat": 1.5, "feline": 0.5},
    "b": {"dog": 2.0, "cat": 0.25, "Hund": 1.0},
    "c": {"ship": 1.0},
    "nothing": {},
}


def documents(vectors: dict[str, dict[str, float]]) -> list[Document]:
    return [Document(doc_id, write_vector(vector)) for doc_id, vector in vectors.items()]


def dot(query: dict[str, float], vector: dict[str, float]) -> float:
    return sum(weight * vector.get(word, 0.0) for word, weight in query.items())


def scores(collection: Collection, query: dict[str, float]) -> dict[str, float]:
    return {hit.doc_id: hit.score for hit in collection.search([json.dumps(query)], 50)[0]}


def test_scores_are_inner_products_of_the_given_weights(tmp_path: Path) -> None:
    with Collection.create(tmp_path / "c", **OPTIONS) as collection:
        collection.add(documents(VECTORS))
        collection.commit()
        query = {"cat": 2.0, "Hund": 0.5, "unheard": 9.0}
        assert scores(collection, query) == pytest.approx({"a": 3.0, "b": 1.0}, rel=EIGHT_BITS)
        assert scores(collection, {"unheard": 1.0}) == {}
        assert scores(collection, {}) == {}


def test_words_may_come_in_at_any_time(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    words = [f"w{number}" for number in range(60)]
    vectors: dict[str, dict[str, float]] = {}
    with Collection.create(tmp_path / "c", sparse={"weights": "float32"}, **OPTIONS) as collection:
        for batch in range(6):
            chosen = random.choice(words[: 10 * (batch + 1)], (20, 5))
            more = {f"{batch}-{row}": {word: float(random.uniform(0.1, 2)) for word in some} for row, some in enumerate(chosen)}
            vectors |= more
            collection.upsert(documents(more))
            collection.commit()
        gone = list(vectors)[::7]
        collection.delete(gone)
        collection.optimize()
        vectors = {doc_id: vector for doc_id, vector in vectors.items() if doc_id not in gone}
        for _ in range(20):
            query = {word: float(random.uniform(0.1, 2)) for word in random.choice(words, 4).tolist()}
            expected = {doc_id: dot(query, vector) for doc_id, vector in vectors.items() if dot(query, vector) > 0}
            best = dict(sorted(expected.items(), key=lambda item: -item[1])[:50])
            assert scores(collection, query) == pytest.approx(best, rel=1e-5)


def test_a_score_is_explained_in_words(tmp_path: Path) -> None:
    with Collection.create(tmp_path / "c", **OPTIONS) as collection:
        collection.add(documents({"a": VECTORS["a"]}))
        collection.commit()
        collection.add(documents({"b": VECTORS["b"]}))
        collection.commit()
        found = collection.explain('{"cat": 2, "Hund": 0.8, "dog": 1}', "b", lenses=["external"])
    assert [part.label for part in found.parts] == ["dog", "Hund", "cat"]
    assert found.score == pytest.approx(3.3, rel=EIGHT_BITS)
    assert {part.kind for part in found.parts} == {"own"}


def test_records_with_a_vector(tmp_path: Path) -> None:
    (tmp_path / "v.jsonl").write_text(
        '{"id": 7, "vector": {"cat": 1.5, "dog": 0}, "text": "A cat.", "metadata": {"lang": "en"}}\n'
    )
    [document] = read([tmp_path / "v.jsonl"], Fields(vector="vector"))
    assert (document.doc_id, document.title, document.text) == ("7", "", '{"cat":1.5}')
    assert document.metadata == {"text": "A cat.", "lang": "en"}


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('{"id": "a"}', "no vector field; expected 'vector'"),
        ('{"id": "a", "vector": {"cat": -1}}', "weight of term 'cat' is -1"),
        ('{"id": "a", "vector": [1, 2]}', "expected an object of terms and weights"),
        ('{"id": "a", "vector": {"cat": NaN}}', "weight of term 'cat' is nan"),
    ],
)
def test_records_without_a_good_one(tmp_path: Path, line: str, complaint: str) -> None:
    (tmp_path / "v.jsonl").write_text('{"id": "good", "vector": {"cat": 1}}\n' + line + "\n")
    with pytest.raises(BadInput, match=f"v.jsonl:2: .*{complaint}"):
        list(read([tmp_path / "v.jsonl"], Fields(vector="vector")))


def test_a_query_that_is_no_vector(tmp_path: Path) -> None:
    with Collection.create(tmp_path / "c", **OPTIONS) as collection:
        collection.add(documents(VECTORS))
        collection.commit()
        with pytest.raises(BadInput, match="'cats' is not JSON"):
            collection.search(["cats"])


def test_texts_and_vectors_do_not_mix(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="expected it alone, with passages of 0 words"):
        Collection.create(tmp_path / "c", lenses=["bm25", "external"], passages={"words": 0, "overlap": 0})
    with pytest.raises(BadInput, match="expected it alone, with passages of 0 words"):
        Collection.create(tmp_path / "c", lenses=["external"])


def test_too_many_different_terms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external, "MOST_DIM", 4)
    with Collection.create(tmp_path / "c", **OPTIONS) as collection:
        collection.add(documents({"a": VECTORS["a"]}))
        collection.commit()
        collection.add(documents({"d": {"one": 1, "two": 1, "three": 1}}))
        with pytest.raises(BadInput, match="5 different terms; expected at most 4"):
            collection.commit()
        collection.rollback()
        assert len(collection) == 1
