"""Details of hits: matches are the parts that explanations name, strengths are worked out by hand, weak matches are told."""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from trilens import Collection, Document, SearchOptions
from trilens.lenses.lens import FEWEST_ROWS, ScoreScale
from trilens.search.hits import Hit
from trilens.search.search import Search
from trilens.text.passages import passage_text

from ..lenses.explained import LENSES, QUERIES, QUESTIONS, TEXTS, make_documentation

NONSENSE = ["asdf qwer zxcv", "florble wimpet", "snazzle gribbet flarn"]
ANSWERED = QUESTIONS[:6]  # by shutil and statistics


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    """Docstrings of shutil and statistics, and texts with titles, in two segments."""
    with make_documentation(tmp_path_factory.mktemp("details") / "c") as made:
        made.add(Document(doc_id, text, title="On " + doc_id) for doc_id, text in TEXTS.items())
        made.commit()
        yield made


@pytest.mark.parametrize("lens", LENSES)
def test_matches_are_the_places_of_the_explained_parts(collection: Collection, lens: str) -> None:
    found = 0
    for query in (*QUERIES, *ANSWERED[:2]):
        search = Search(collection.snapshot, collection._lenses, [query], SearchOptions(lenses=[lens]))
        for hit in search.hits()[0]:
            explanation = collection.explain(query, hit.doc_id, lenses=[lens])
            row = best_row(collection, hit)
            text = passage_text(hit.document, hit.start, hit.end)
            [matches] = collection.snapshot.searcher(lens).matches(search.encoded[lens], [row], [text])
            if lens == "dense":  # a vector has no places
                assert matches == []
                continue
            named = {span for part in explanation.parts for span in part.doc_spans}
            assert {(match.start, match.end) for match in matches} == named
            found += len(named)
    assert found or lens == "dense"


def best_row(collection: Collection, hit: Hit) -> int:
    key = collection.snapshot.key(hit.doc_id)
    rows, _ = collection.snapshot.rows_of(np.array([key]))
    starts = collection.snapshot.places(rows).starts
    return int(rows[starts == hit.start][0])


def test_the_strength_of_a_bm25_score_by_hand(tmp_path: Path) -> None:
    with Collection.create(tmp_path / "c", lenses=["bm25"]) as made:
        made.add([Document("both", "engine oil"), Document("one", "engine rust")])
        made.add(Document(f"none{number}", "river bank") for number in range(FEWEST_ROWS - 2))
        made.commit()
        [hits] = made.search(["engine oil unicorn"], details=True)
        # N = 20: engine in 2 passages, oil in 1, unicorn in none. All lengths are average, so tf / (tf + 0.9) = 1 / 1.9 is
        # also the factor of a full match, and the share is that of the IDF; half of it is strength 1.
        engine, oil, unicorn = (math.log1p((FEWEST_ROWS - df + 0.5) / (df + 0.5)) for df in (2, 1, 0))
        total = engine + oil + unicorn
        strengths = {hit.doc_id: hit.by_lens["bm25"].strength for hit in hits}
        assert strengths == pytest.approx({"both": 2 * (engine + oil) / total, "one": 2 * engine / total}, rel=1e-5)
        assert [hit.weak for hit in hits] == [2 * (engine + oil) < total, True]
        assert [hit.weak for hit in made.search(["engine oil"], details=True)[0]] == [False, 2 * engine < engine + oil]


def test_a_scale_by_hand() -> None:
    scale = ScoreScale(np.array([0.5, 1.0]), np.array([1.0, 1.0]), 0.4)
    assert scale.strength(0, 0.8) == pytest.approx(0.3 / 0.2)
    assert scale.strength(0, 0.4) == pytest.approx(-0.5)
    assert scale.strength(1, 0.8) is None


def test_vectors_are_compared_with_random_passages(collection: Collection) -> None:
    snapshot = collection.snapshot
    search = Search(snapshot, collection._lenses, QUESTIONS[:2], SearchOptions(lenses=["dense"]))
    searcher = snapshot.searcher("dense")
    vectors = np.concatenate([segment.parts["dense"].dense.vectors for segment in snapshot.segments])
    queries = search.encoded["dense"].dense
    assert queries is not None and len(searcher.sample.rows) == len(set(searcher.sample.rows.tolist())) <= snapshot.rows
    scale = searcher.scale(search.encoded["dense"])
    assert scale is not None
    np.testing.assert_allclose(scale.zero, (queries.vectors @ vectors[searcher.sample.rows].T).mean(axis=1), rtol=1e-4)
    np.testing.assert_allclose(scale.best, 1.0, rtol=1e-4)  # vectors have length 1


@pytest.mark.parametrize("lenses", [["bm25"], ["dense"], ["multi"], ["sparse"], ["lexical"], None])
def test_nonsense_matches_weakly(collection: Collection, lenses: list[str] | None) -> None:
    for hits in collection.search(NONSENSE, lenses=lenses, details=True):
        assert all(hit.weak for hit in hits)
    answers = collection.search(ANSWERED, lenses=lenses, details=True)
    assert sum(bool(hits[0].weak) for hits in answers) <= len(ANSWERED) // 3


@pytest.mark.parametrize("lenses", [["bm25"], ["dense"], None])
def test_in_a_few_passages_no_match_is_weak(tmp_path: Path, lenses: list[str] | None) -> None:
    """No passage has "how" and "does", which would therefore count as the rarest words of the question."""
    with Collection.create(tmp_path / "c", lenses=["bm25", "dense"], threads=1) as made:
        made.add(Document(doc_id, text) for doc_id, text in TEXTS.items())
        made.commit()
        assert made.snapshot.rows < FEWEST_ROWS
        [hit, *_] = made.search(["how does one repair an engine"], lenses=lenses, details=True)[0]
        assert (hit.weak, {name: by.strength for name, by in hit.by_lens.items()}) == (None, dict.fromkeys(hit.by_lens))


def test_details_do_not_change_scores_and_are_left_out_by_default(collection: Collection) -> None:
    plain, detailed = (collection.search(QUESTIONS[:3], details=details) for details in (False, True))
    for one, other in zip(plain, detailed, strict=True):
        assert [(hit.doc_id, hit.rank, hit.score) for hit in one] == [(hit.doc_id, hit.rank, hit.score) for hit in other]
        assert all(hit.snippet is None and hit.weak is None for hit in one)
        assert all(hit.snippet and hit.snippet.text in hit.passage for hit in other)


def test_explanations_say_the_same(collection: Collection) -> None:
    for hit in collection.search([QUESTIONS[1]], 3, details=True)[0]:
        found = collection.explain(QUESTIONS[1], hit.doc_id)
        for part, child in zip(found.parts, found.children or (), strict=True):
            seen = hit.by_lens[part.label]
            assert part.facts["standard"] == pytest.approx(seen.standard)
            assert part.facts["strength"] == pytest.approx(seen.strength)
            assert child.strength == pytest.approx(seen.strength, rel=1e-4)
        assert ("weak match" in found.note) == hit.weak


def test_a_vector_search_marks_the_words_that_query_and_passage_share(collection: Collection) -> None:
    [hit, *_] = collection.search(["remove a whole directory tree"], lenses=["dense"], details=True)[0]
    assert hit.snippet
    assert {hit.snippet.text[start:end].lower() for start, end in hit.snippet.matches} >= {"directory", "tree"}
