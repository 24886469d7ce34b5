"""Every lens of real pairs: the parts add up to the score of the search, and their places are where the words stand."""

import csv
import fnmatch
import heapq
import inspect
import json
import random
import re
import shutil
import statistics
import string
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from trilens import Collection, Document, MultiParams
from trilens.errors import BadInput
from trilens.explain.explanation import Explanation, Part, Passage, heat
from trilens.search.fusion import Fusion

from ..bundled import with_multi

LENSES = ["bm25", "dense", "sparse", "tokens", "lexical", "multi"]
TEXTS = {
    "rain": "Heavy rain is expected tomorrow in the north of the country.",
    "car": "The mechanic repaired the engine of an old car. Cars need engines!",
    "fox": "A quick brown fox jumps over the lazy dog near the river.",
    "long": "A short start. " + "Nothing happens here at all. " * 40 + "Then the engine of the ship broke down.",
    "odd": "ﬁne Straße, NAÏVE cafe\u0301 — 東京タワー & the engine's <b>motor</b>",
}
QUERIES = ["motor repair of old cars", "will it rain in the north", "broken ship engine", "東京 fine café"]
MODULES = (shutil, statistics, textwrap, json, re, random, heapq, tempfile, fnmatch, csv, string)
DOCUMENTED = 60
QUESTIONS = [
    "copy a file with all its metadata to a new location",
    "remove a whole directory tree",
    "how much space is left on the disk",
    "the middle value of a list of numbers",
    "how strongly do two samples correlate",
    "the most common value in the data",
    "wrap a long paragraph into lines of a given width",
    "remove the indentation of every line of a text",
    "turn an object into a string of JSON",
    "read a JSON document from an open file",
    "find all matches of a pattern in a string",
    "escape the special characters of a pattern",
    "choose a random element from a sequence",
    "shuffle a list in place",
    "the smallest element of a heap",
    "insert an item into a sorted list so that it stays sorted",
    "make a temporary file that is deleted when it is closed",
    "the folder in which temporary files are kept",
    "does a file name match a pattern of the shell",
    "read rows of a table from a file of comma separated values",
]


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    path: Path = tmp_path_factory.mktemp("explain") / "c"
    with Collection.create(path, lenses=LENSES, passages={"words": 60, "overlap": 10}, threads=1) as made:
        made.add(Document(doc_id, text, title="On " + doc_id) for doc_id, text in TEXTS.items())
        made.commit()
        yield made


@pytest.fixture(scope="module")
def documentation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    """What Python says of its own functions."""
    said = {f"{module.__name__}.{name}": inspect.getdoc(getattr(module, name)) for module in MODULES for name in module.__all__}
    documents = [Document(name, text[:600]) for name, text in said.items() if text and len(text) > 60][:DOCUMENTED]
    with Collection.create(tmp_path_factory.mktemp("documentation") / "c", lenses=LENSES, threads=1) as made:
        made.add(documents)
        made.commit()
        yield made


def require_sum(found: Explanation, score: float) -> None:
    """The check that every explanation has to pass."""
    assert found.score == pytest.approx(score, abs=1e-4)
    assert sum(part.score for part in found.parts) == pytest.approx(score, abs=1e-4)
    for part in found.parts:
        if "query_weight" in part.facts and "doc_weight" in part.facts:
            assert part.score == pytest.approx(part.facts["query_weight"] * part.facts["doc_weight"])  # type: ignore[operator]
        assert all(0 <= start < end <= len(found.passage.text) for start, end in part.doc_spans)
        if part.kind == "token":
            assert [found.passage.text[start:end] for start, end in part.doc_spans] == [part.label]


@pytest.mark.parametrize("lens", LENSES)
def test_parts_add_up_to_the_score_of_a_search(collection: Collection, lens: str) -> None:
    for query in QUERIES:
        for hit in collection.search([query], lenses=[lens])[0]:
            found = collection.explain(query, hit.doc_id, lens)
            require_sum(found, hit.score)
            assert (found.lens, found.query, found.doc_id, found.approximate) == (lens, query, hit.doc_id, False)
            assert (found.passage.start, found.passage.end) == (hit.start, hit.end)
            assert found.passage.text[found.passage.offset :] == hit.passage
            rest = sum(abs(part.score) for part in found.parts if part.label == "rounding")
            assert rest <= 1e-4 + 1e-6 * abs(hit.score)


@pytest.mark.parametrize("lens", LENSES)
def test_parts_add_up_for_two_hundred_real_pairs(documentation: Collection, lens: str) -> None:
    pairs = [(query, hit) for query in QUESTIONS for hit in documentation.search([query], 14, lenses=[lens])[0]]
    assert len(pairs) >= 200
    for query, hit in pairs:
        require_sum(documentation.explain(query, hit.doc_id, lens), hit.score)


@pytest.mark.parametrize(
    "fusion", ["rrf", "weighted", "minmax", "zscore:missing=worst", "rrf:bm25=3,multi=1,missing=worst", "all"]
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
                seen = hit.by_lens.get(part.label)
                if seen:
                    assert part.score == pytest.approx(seen.contribution, abs=1e-6)
                    assert part.facts["rank"] == seen.rank
                require_sum(child, child.score)


def test_a_search_for_more_than_the_depth_of_its_fusion(collection: Collection) -> None:
    fusion, lenses = Fusion("zscore", depth=2), ["bm25", "dense"]
    differ = 0
    for hit in collection.search([QUERIES[0]], 6, lenses=lenses, fusion=fusion)[0]:
        found = collection.explain(QUERIES[0], hit.doc_id, lenses, k=6, fusion=fusion)
        require_sum(found, hit.score)
        differ += abs(collection.explain(QUERIES[0], hit.doc_id, lenses, k=1, fusion=fusion).score - hit.score) > 1e-3
    assert differ


@pytest.mark.parametrize("rerank", ["bm25", "dense", "sparse", "lexical", "multi"])
def test_what_re_ranks_is_explained(collection: Collection, rerank: str) -> None:
    """By the passages that the first lens found, which another lens may like less than others of the same document."""
    for query in QUERIES[:2]:
        for hit in collection.search([query], lenses=["tokens"], rerank=rerank)[0]:
            found = collection.explain(query, hit.doc_id, "tokens", rerank=rerank)
            assert found.lens == rerank
            require_sum(found, hit.score)


def test_what_is_encoded_for_a_search_alone_is_explained(tmp_path: Path) -> None:
    with Collection.create(tmp_path / "c", lenses=["tokens"], passages={"words": 60, "overlap": 10}, threads=1) as made:
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
    found = collection.explain("broken engine", "car", ["bm25", "dense"], fusion="convex:alpha=0.25")
    assert [part.label for part in found.parts] == ["bm25", "dense"]
    assert [part.facts["weight"] for part in found.parts] == [0.75, 0.25]
    assert not found.approximate


def test_the_mean_over_tokens_knows_their_weights(collection: Collection) -> None:
    """The tokens of the bundled model's queries have weights, and those of documents the length 1."""
    multi = collection.search(["broken engine"], fusion="all")[0][0].by_lens["multi"]
    assert 0 < multi.contribution <= 1 < multi.score


def test_the_lens_that_decides_is_explained(collection: Collection) -> None:
    hit = collection.search(["broken engine"], fusion="rerank-multi")[0][0]
    found = collection.explain("broken engine", hit.doc_id, fusion="rerank-multi")
    assert found.lens == "multi"
    require_sum(found, hit.score)


def test_a_document_that_no_lens_returns(collection: Collection) -> None:
    found = collection.explain("broken engine", "rain", ["bm25", "lexical"], fusion="minmax")
    require_sum(found, found.score)
    assert found.approximate
    assert [part.facts["rank"] for part in found.parts] == [None, None]


def test_a_pairing_out_of_step_is_noticed(collection: Collection) -> None:
    """Words beside the weights of other words still add up; the check has to see it all the same."""
    found = collection.explain("motor repair of old cars", "car", "sparse")
    facts = [part.facts for part in found.parts]
    assert len(facts) > 5
    broken = [replace(part, facts=other) for part, other in zip(found.parts, facts[1:] + facts[:1], strict=True)]
    assert sum(part.score for part in broken) == pytest.approx(found.score, abs=1e-4)
    with pytest.raises(AssertionError):
        require_sum(replace(found, parts=broken), found.score)
    shifted = [replace(part, score=other.score) for part, other in zip(found.parts, found.parts[1:], strict=False)]
    with pytest.raises(AssertionError):
        require_sum(replace(found, parts=shifted), found.score)


def test_bm25_shows_what_its_parts_are_made_of(collection: Collection) -> None:
    found = collection.explain("the old engines", "car", "bm25")
    engine = next(part for part in found.parts if part.facts["term"] == "engin")
    assert engine.label == "engines"
    assert engine.query_span == (8, 15)
    assert [found.passage.text[start:end] for start, end in engine.doc_spans] == ["engine", "engines"]
    tf, idf = engine.facts["tf"], engine.facts["idf"]
    length, average = engine.facts["length"], engine.facts["average_length"]
    assert tf == 2
    assert isinstance(idf, float) and isinstance(length, float) and isinstance(average, float)
    assert engine.score == pytest.approx(idf * 2 / (2 + 0.9 * (1 - 0.4 + 0.4 * length / average)), abs=1e-5)


def test_places_in_text_that_normalising_changes(collection: Collection) -> None:
    found = collection.explain("fine café 東京 engine", "odd", "bm25")
    spans = {part.label: [found.passage.text[start:end] for start, end in part.doc_spans] for part in found.parts}
    assert spans == {"fine": ["ﬁne"], "café": ["cafe\u0301"], "東京": ["東京"], "engine": ["engine's"]}


def test_multi_shows_pairs(collection: Collection) -> None:
    found = collection.explain("old engine", "car", "multi")
    assert found.matrix is not None
    assert found.matrix.values.shape == (len(found.matrix.query_tokens), len(found.matrix.doc_tokens))
    place = found.matrix.query_tokens.index("engine")
    engine = found.parts[place]
    assert (engine.label, engine.kind, engine.query_span) == ("engine", "pair", (4, 10))
    assert engine.score == pytest.approx(float(found.matrix.values[place].max()), abs=1e-5)
    assert [found.passage.text[start:end].lower() for start, end in engine.doc_spans] == [engine.target]


def test_multi_marks_what_was_imputed(collection: Collection) -> None:
    params = {"multi": MultiParams("xtr", candidates=0, probes=1, reach=1)}
    kinds = set()
    for query in QUERIES:
        for hit in collection.search([query], lenses=["multi"], params=params)[0]:
            found = collection.explain(query, hit.doc_id, "multi", params=params)
            require_sum(found, hit.score)
            kinds |= {part.kind for part in found.parts}
            assert all((part.target is None) == (part.kind != "pair") for part in found.parts)
    assert {"pair", "imputed"} <= kinds


def test_dense_falls_back_to_leaving_words_out(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a model that does not tell its states."""
    exact = collection.explain("old engine", "car", "dense")
    monkeypatch.setattr(type(collection.model.encoder), "doc_states", lambda self, text: None)
    found = collection.explain("old engine", "car", "dense")
    assert found.approximate and not exact.approximate
    require_sum(found, exact.score)
    assert found.parts[-1].kind == "rest"
    best = max(found.parts[:-1], key=lambda part: part.score)
    assert best.label.lower() in ("engine", "engines", "car", "cars", "old", "mechanic")


def test_as_plain_values(collection: Collection) -> None:
    import json

    found = json.loads(json.dumps(collection.explain("old engine", "car").to_json()))
    assert set(found) == {
        *("lens", "query", "doc_id", "score", "approximate", "parts", "passage", "matrix", "children", "expansion")
    }
    assert [child["lens"] for child in found["children"]] == LENSES
    assert set(found["parts"][0]) == {"label", "score", "kind", "target", "query_span", "doc_spans", "facts"}
    assert found["passage"]["text"].startswith("On car\n")


def test_heat_by_hand() -> None:
    parts = [Part("a", 2.0, "own", doc_spans=((0, 2), (4, 5))), Part("b", -0.5, "own", doc_spans=((1, 3),))]
    found = Explanation("bm25", "q", "d", 1.5, parts, False, Passage("abcdef", 0, 0, 6))
    assert heat(found) == [(0, 1, 1.0), (1, 2, 0.5), (2, 3, -0.5), (4, 5, 1.0)]


def test_what_cannot_be_explained(collection: Collection) -> None:
    with pytest.raises(BadInput, match="no document 'nothing'"):
        collection.explain("car", "nothing")
    with pytest.raises(BadInput, match="the query is empty"):
        collection.explain(" ", "car")
    with pytest.raises(BadInput, match="no lens 'smell'"):
        collection.explain("car", "car", "smell")


def test_nothing_to_match(tmp_path: Path) -> None:
    model = str(with_multi(tmp_path / "model", skip_special=True))
    with Collection.create(tmp_path / "c", lenses=["bm25", "multi"], model=model, threads=1) as made:
        made.add([Document("marks", "!!!"), Document("cat", "A cat.")])
        made.commit()
        for lens in ("bm25", "multi"):
            found = made.explain("cat", "marks", lens)
            assert (found.score, found.parts) == (0, [])
        fused = made.explain("cat", "marks", fusion="minmax")
        assert np.isfinite(fused.score)
        require_sum(fused, fused.score)
