"""The bm25 lens: scores by hand, against brute force and against bm25s, and their explanations."""

import json
from math import log
from pathlib import Path
from tempfile import TemporaryDirectory

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.development_data import DATA
from trilens import Collection
from trilens.errors import BadInput
from trilens.lenses.bm25 import Bm25Config, Bm25Lens, idf
from trilens.text.analysis import Analyzer

from .bm25_docs import BruteForce, Case, Mask, Words, build_all, lens_of, merge, require_same, search

CRANFIELD = DATA / "cranfield"


def three_documents() -> list[Words]:
    return [["cat", "dog"], ["cat", "cat", "cat", "bird"], ["fish"] * 6]


def test_scores_by_hand() -> None:
    # N = 3; lengths 2, 4, 6, so the average is 4. k1 = 2, b = 0.5: norm = 2 · (0.5 + 0.5 · length / 4) = 1.5, 2, 2.5.
    # cat is in 2 rows: idf = ln(1 + 1.5 / 2.5) = ln 1.6. The others are in 1: idf = ln(1 + 2.5 / 1.5) = ln(8 / 3).
    lens = lens_of(k1=2, b=0.5)
    queries = [["cat"], ["cat", "dog"], ["fish", "fish", "bird"], ["mouse"]]
    top = search(lens, build_all(lens, [three_documents()]), [None], queries, 3)
    assert top.rows.tolist() == [[1, 0, -1], [0, 1, -1], [2, 1, -1], [-1, -1, -1]]
    rare = log(8 / 3)
    expected = [
        [log(1.6) * 3 / (3 + 2), log(1.6) * 1 / (1 + 1.5), -np.inf],
        [log(1.6) / 2.5 + rare / 2.5, log(1.6) * 3 / 5, -np.inf],
        [2 * rare * 6 / (6 + 2.5), rare * 1 / (1 + 2), -np.inf],
        [-np.inf, -np.inf, -np.inf],
    ]
    np.testing.assert_allclose(top.scores, expected, rtol=1e-6)


def test_statistics_are_those_of_the_live_rows_by_hand() -> None:
    # Without row 1: N = 2, average length (2 + 6) / 2 = 4, cat is in 1 row: idf = ln(1 + 1.5 / 1.5) = ln 2.
    lens = lens_of(k1=2, b=0.5)
    searcher = lens.searcher(build_all(lens, [three_documents()]), [np.array([True, False, True])])
    assert (searcher.rows, searcher.average_length) == (2, 4.0)
    top = searcher.search(lens.encoder.encode_queries(["cat"]), 2)
    assert top.rows.tolist() == [[0, -1]]
    assert top.scores[0, 0] == pytest.approx(log(2) / 2.5, rel=1e-6)


def test_a_filter_does_not_change_scores() -> None:
    lens = lens_of()
    parts = build_all(lens, [three_documents()])
    everywhere = search(lens, parts, [None], [["cat"]], 2)
    filtered = search(lens, parts, [None], [["cat"]], 2, np.array([True, False, True]))
    assert (everywhere.rows.tolist(), filtered.rows.tolist()) == ([[1, 0]], [[0, -1]])
    assert filtered.scores[0, 0] == everywhere.scores[0, 1]


@pytest.mark.parametrize(("k1", "b"), [(0, 0), (0, 1), (0.9, 0), (1.2, 1)])
def test_the_limits_of_the_parameters(k1: float, b: float) -> None:
    lens = lens_of(k1, b)
    docs, queries = three_documents(), [["cat", "fish"], ["dog", "bird"]]
    top = search(lens, build_all(lens, [docs]), [None], queries, 3)
    require_same(top, queries, BruteForce(lens, docs, np.ones(3, np.bool_)))


@pytest.mark.parametrize("options", [{"k1": -0.1}, {"k1": float("nan")}, {"b": 1.1}, {"b": -0.1}, {"k2": 1}])
def test_impossible_parameters_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(BadInput):
        Bm25Config.model_validate(options)


def test_a_k1_that_overflows_is_refused() -> None:
    with pytest.raises(BadInput):
        Bm25Config(k1=1e39)


def test_k_must_be_positive() -> None:
    lens = lens_of()
    with pytest.raises(BadInput, match="k is 0; expected at least 1"):
        search(lens, build_all(lens, [three_documents()]), [None], [["cat"]], 0)


def test_a_batch_without_queries_has_no_answers() -> None:
    lens = lens_of()
    assert search(lens, build_all(lens, [three_documents()]), [None], [], 5).rows.shape == (0, 5)


# Oracle: small random collections

WORD = st.sampled_from("abcdefg")
DOCS = st.lists(st.lists(WORD, max_size=8), max_size=12)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    parts = draw(st.lists(DOCS, min_size=1, max_size=3))
    live: list[Mask | None] = []
    for part in parts:
        mask = np.array(draw(st.lists(st.booleans(), min_size=len(part), max_size=len(part))), np.bool_)
        live.append(mask if draw(st.booleans()) else None)
    case = Case(parts, live, None)
    if draw(st.booleans()):
        rows = len(case.docs)
        chosen = np.array(draw(st.lists(st.booleans(), min_size=rows, max_size=rows)), np.bool_)
        case = Case(parts, live, chosen & case.live_rows)
    return case


@settings(deadline=None, max_examples=60)
@given(cases(), st.lists(st.lists(WORD | st.just("unknown"), max_size=6), max_size=4), st.integers(1, 40))
def test_answers_are_those_of_brute_force(case: Case, queries: list[Words], k: int) -> None:
    lens = lens_of()
    top = search(lens, build_all(lens, case.parts), case.live, queries, k, case.allowed)
    assert top.rows.shape == top.scores.shape == (len(queries), k)
    require_same(top, queries, BruteForce(lens, case.docs, case.live_rows), case.allowed)


@settings(deadline=None, max_examples=30)
@given(cases(), st.lists(WORD, max_size=6))
def test_a_merge_is_a_rebuild(case: Case, query: Words) -> None:
    lens = lens_of()
    survivors = [words for words, keep in zip(case.docs, case.live_rows, strict=True) if keep]
    keep = np.split(case.live_rows, np.cumsum([len(part) for part in case.parts])[:-1])
    merged = merge(lens, build_all(lens, case.parts), keep)
    (rebuilt,) = build_all(lens, [survivors])
    words = [[part.vocabulary.word(i) for i in range(len(part.vocabulary))] for part in (merged, rebuilt)]
    assert words[0] == words[1]
    assert (merged.lengths.tolist(), merged.average_length) == (rebuilt.lengths.tolist(), rebuilt.average_length)
    answers = [search(lens, [part], [None], [query], 50) for part in (merged, rebuilt)]
    assert answers[0].rows.tolist() == answers[1].rows.tolist()
    assert answers[0].scores.tolist() == answers[1].scores.tolist()


def cranfield() -> tuple[list[str], list[str]]:
    if not CRANFIELD.is_dir():
        pytest.skip(f"there is no folder {CRANFIELD}")
    files = (CRANFIELD / "corpus.jsonl", CRANFIELD / "queries.jsonl")
    docs, queries = ([json.loads(line)["text"] for line in file.read_text().splitlines()] for file in files)
    return docs, queries


@pytest.mark.parametrize(("k1", "b"), [(0.9, 0.4), (1.5, 0.75)])
def test_scores_are_those_of_bm25s(k1: float, b: float) -> None:
    docs, queries = cranfield()
    lens = Bm25Lens(Bm25Config(k1=k1, b=b))
    with TemporaryDirectory() as folder:
        lens.build(lens.encoder.encode_docs(docs), Path(folder))
        part = lens.open(Path(folder))
    top = lens.searcher([part], [None]).search(lens.encoder.encode_queries(queries), 10)
    analyzer = Analyzer()
    peer = bm25s.BM25(method="lucene", k1=k1, b=b)
    peer.index([analyzer.terms(text) for text in docs], show_progress=False)
    _, scores = peer.retrieve([analyzer.terms(query) for query in queries], k=10, show_progress=False)
    assert (top.rows >= 0).all()
    np.testing.assert_allclose(top.scores, scores, atol=1e-3)


def test_idf_by_hand() -> None:
    assert idf(np.array([0, 1, 3]), 3) == pytest.approx(np.log1p([3.5 / 0.5, 2.5 / 1.5, 0.5 / 3.5]))


# Explanations


def test_parts_show_the_numbers_that_they_are_computed_from(collection: Collection) -> None:
    found = collection.explain("the old engines", "car", lenses=["bm25"])
    engine = next(part for part in found.parts if part.facts["term"] == "engin")
    assert engine.label == "engines"
    assert engine.query_span == (8, 15)
    assert [found.passage.text[start:end] for start, end in engine.doc_spans] == ["engine", "engines"]
    tf, term_idf = engine.facts["tf"], engine.facts["idf"]
    length, average = engine.facts["length"], engine.facts["average_length"]
    assert tf == 2
    assert isinstance(term_idf, float) and isinstance(length, float) and isinstance(average, float)
    assert engine.score == pytest.approx(term_idf * 2 / (2 + 0.9 * (1 - 0.4 + 0.4 * length / average)), abs=1e-5)


def test_spans_are_those_of_the_text_before_normalisation(collection: Collection) -> None:
    found = collection.explain("fine café 東京 engine", "odd", lenses=["bm25"])
    spans = {part.label: [found.passage.text[start:end] for start, end in part.doc_spans] for part in found.parts}
    assert spans == {"fine": ["ﬁne"], "café": ["cafe\u0301"], "東京": ["東京"], "engine": ["engine's"]}
