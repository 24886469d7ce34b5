import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from tempfile import TemporaryDirectory

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic import ValidationError

from trilens.errors import BadInput
from trilens.index.bm25 import Bm25Config, Bm25Lens, Bm25Part
from trilens.index.topk import TopK
from trilens.text.analysis import AnalysisConfig, Analyzer

CRANFIELD = Path("/work/shared/data/cranfield")
PLAIN = AnalysisConfig(language="none")  # words are what stands between spaces
Mask = NDArray[np.bool_]
Words = list[str]
Masks = Sequence[Mask | None]


def lens_of(k1: float = 0.9, b: float = 0.4) -> Bm25Lens:
    return Bm25Lens(Bm25Config(k1=k1, b=b, analysis=PLAIN))


def build(lens: Bm25Lens, docs: Sequence[Words], folder: Path) -> Bm25Part:
    lens.build(lens.encoder.encode_docs([" ".join(words) for words in docs]), folder)
    return lens.open(folder)


def build_all(lens: Bm25Lens, parts: Sequence[Sequence[Words]]) -> list[Bm25Part]:
    """Parts stay mapped after their files are gone."""
    with TemporaryDirectory() as folder:
        return [build(lens, docs, Path(folder) / str(i)) for i, docs in enumerate(parts)]


def merge(lens: Bm25Lens, parts: Sequence[Bm25Part], keep: Sequence[Mask]) -> Bm25Part:
    with TemporaryDirectory() as folder:
        lens.merge(parts, keep, Path(folder))
        return lens.open(Path(folder))


def search(
    lens: Bm25Lens,
    parts: Sequence[Bm25Part],
    live: Masks,
    queries: Sequence[Words],
    k: int,
    allowed: Mask | None = None,
) -> TopK:
    return lens.searcher(parts, live).search(lens.encoder.encode_queries([" ".join(words) for words in queries]), k, allowed)


class BruteForce:
    """The slow twin: the score of every row from the formula, with the statistics of the live rows."""

    def __init__(self, lens: Bm25Lens, docs: Sequence[Words], live: Mask) -> None:
        self.docs, self.live = docs, live
        self._k1, self._b = lens.config.k1, lens.config.b
        self._counts = [Counter(words) for words in docs]
        self._lengths = np.array([len(words) for words in docs], np.float64)
        self._average = self._lengths[live].mean() if self._lengths[live].sum() else 1.0

    def scores(self, query: Words) -> NDArray[np.float64]:
        """0 for rows that share no word with the query."""
        scores = np.zeros(len(self.docs))
        for word in query:
            counts = np.array([counted[word] for counted in self._counts], np.float64)
            held = counts > 0
            frequency = int((held & self.live).sum())
            idf = log(1 + (self.live.sum() - frequency + 0.5) / (frequency + 0.5))
            norms = self._k1 * (1 - self._b + self._b * self._lengths / self._average)
            scores[held] += idf * counts[held] / (counts[held] + norms[held])
        return scores


def require_same(top: TopK, queries: Sequence[Words], truth: BruteForce, allowed: Mask | None = None) -> None:
    """The answers are the true best of the allowed rows; only rounding may swap rows, and never equal documents."""
    allowed = truth.live if allowed is None else allowed
    assert len(top.rows) == len(top.scores) == len(queries)
    for query, rows, found in zip(queries, top.rows, top.scores, strict=True):
        scores = truth.scores(query)
        expected = np.sort(scores[allowed & (scores > 0)])[::-1][: len(rows)]
        assert (rows[len(expected) :] == -1).all() and (found[len(expected) :] == -np.inf).all()
        rows, found = rows[: len(expected)], found[: len(expected)]
        assert (rows >= 0).all() and allowed[rows].all() and len(np.unique(rows)) == len(rows)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        np.testing.assert_allclose(found, scores[rows], rtol=1e-5)
        order = list(zip((-found).tolist(), rows.tolist(), strict=True))
        assert order == sorted(order)
        require_earlier_twins(rows.tolist(), truth.docs, allowed)


def require_earlier_twins(rows: list[int], docs: Sequence[Words], allowed: Mask) -> None:
    """A document is found only if all its equals in earlier rows are found."""
    found = {tuple(sorted(docs[row])): row for row in sorted(rows)}
    for row in np.flatnonzero(allowed).tolist():
        assert row in rows or row > found.get(tuple(sorted(docs[row])), -1)


# By hand


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
    with pytest.raises(ValidationError):
        Bm25Config.model_validate(options)


def test_a_k1_that_overflows_is_refused() -> None:
    with pytest.raises(ValidationError):
        Bm25Config(k1=1e39)


def test_k_must_be_positive() -> None:
    lens = lens_of()
    with pytest.raises(BadInput, match="k is 0; expected at least 1"):
        search(lens, build_all(lens, [three_documents()]), [None], [["cat"]], 0)


def test_a_batch_without_queries_has_no_answers() -> None:
    lens = lens_of()
    assert search(lens, build_all(lens, [three_documents()]), [None], [], 5).rows.shape == (0, 5)


# Oracle: small random collections, every shape of them

WORD = st.sampled_from("abcdefg")
DOCS = st.lists(st.lists(WORD, max_size=8), max_size=12)


@dataclass(frozen=True)
class Case:
    parts: list[list[Words]]
    live: list[Mask | None]
    allowed: Mask | None

    @property
    def docs(self) -> list[Words]:
        return [words for part in self.parts for words in part]

    @property
    def live_rows(self) -> Mask:
        masks = zip(self.parts, self.live, strict=True)
        return np.concatenate([np.ones(len(part), np.bool_) if mask is None else mask for part, mask in masks])


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


# Oracle: collections of many windows


def zipf_docs(random: np.random.Generator, rows: int, length: int, vocabulary: int = 400) -> list[Words]:
    """Words as rare as in language, lengths from 0 to about three times `length`, some documents twice."""
    chances = 1 / np.arange(1, vocabulary + 1)
    lengths = np.minimum(random.gamma(1.5, length / 1.5, rows).astype(int), 5 * length)
    drawn = random.choice(vocabulary, lengths.sum(), p=chances / chances.sum())
    docs = [[f"w{word}" for word in words] for words in np.split(drawn, np.cumsum(lengths)[:-1])]
    for row in random.integers(0, rows, rows // 20):
        docs[row] = docs[random.integers(0, rows)]
    return docs


def zipf_queries(random: np.random.Generator) -> list[Words]:
    """Frequent and rare words, some twice, some unknown."""
    queries = [[f"w{word}" for word in random.integers(0, 420, random.integers(1, 9))] for _ in range(4)]
    queries += [[f"w{word}" for word in random.integers(0, 8, 3)], ["w0"], ["w1", "w1", "w300"], ["unknown"]]
    return [*queries, [f"w{word}" for word in range(0, 400, 7)]]


@settings(deadline=None, max_examples=20)
@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.tuples(st.integers(1, 900), st.sampled_from([3, 25])), min_size=1, max_size=3),
    st.sampled_from([None, 0.9, 0.4]),
    st.sampled_from([None, 0.5, 0.03]),
    st.sampled_from([1, 3, 10, 100, 3000]),
)
def test_many_windows_answer_as_brute_force(
    seed: int, shapes: list[tuple[int, int]], alive: float | None, passing: float | None, k: int
) -> None:
    random = np.random.default_rng(seed)
    parts = [zipf_docs(random, rows, length) for rows, length in shapes]
    live: list[Mask | None] = [None if alive is None else random.random(len(part)) < alive for part in parts]
    case = Case(parts, live, None)
    allowed = None if passing is None else case.live_rows & (random.random(len(case.docs)) < passing)
    lens, queries = lens_of(), zipf_queries(random)
    top = search(lens, build_all(lens, parts), live, queries, k, allowed)
    require_same(top, queries, BruteForce(lens, case.docs, case.live_rows), allowed)


@pytest.mark.parametrize("lengths", [(2, 200), (200, 2), (2, 20, 200)])
@pytest.mark.parametrize("b", [0.4, 1.0])
def test_no_winner_is_lost_when_the_average_length_changes_much(lengths: tuple[int, ...], b: float) -> None:
    random = np.random.default_rng(len(lengths))
    parts = [zipf_docs(random, 600, length) for length in lengths]
    case = Case(parts, [None] * len(parts), None)
    lens, queries = lens_of(b=b), zipf_queries(random)
    built, truth = build_all(lens, parts), BruteForce(lens, case.docs, case.live_rows)
    for k in (1, 10):
        require_same(search(lens, built, case.live, queries, k), queries, truth)


def test_no_winner_is_lost_when_deletes_change_the_average_length() -> None:
    random = np.random.default_rng(5)
    docs = zipf_docs(random, 700, 300) + zipf_docs(random, 700, 3)
    random.shuffle(docs)
    sizes = np.array([len(words) for words in docs])
    lens, queries = lens_of(b=1.0), zipf_queries(random)
    built = build_all(lens, [docs])
    for live in (sizes > 20, sizes <= 20):
        require_same(search(lens, built, [live], queries, 5), queries, BruteForce(lens, docs, live))


def test_deletes_leave_the_scores_of_a_rebuild() -> None:
    random = np.random.default_rng(7)
    parts = [zipf_docs(random, rows, 20) for rows in (500, 300, 700)]
    case = Case(parts, [random.random(500) < 0.5, None, random.random(700) < 0.9], None)
    survivors = np.flatnonzero(case.live_rows)
    lens, queries = lens_of(), zipf_queries(random)
    changed = search(lens, build_all(lens, parts), case.live, queries, 2000)
    rebuilt = search(lens, build_all(lens, [[case.docs[row] for row in survivors]]), [None], queries, 2000)
    np.testing.assert_allclose(changed.scores, rebuilt.scores, rtol=1e-5)
    for i in range(len(queries)):
        by_row = dict(zip(changed.rows[i].tolist(), changed.scores[i].tolist(), strict=True))
        rows = [int(survivors[row]) if row >= 0 else -1 for row in rebuilt.rows[i]]
        assert set(by_row) == set(rows)
        np.testing.assert_allclose([by_row[row] for row in rows], rebuilt.scores[i], rtol=1e-5)


def test_a_merge_of_many_windows_is_a_rebuild() -> None:
    random = np.random.default_rng(8)
    parts = [zipf_docs(random, rows, 20) for rows in (500, 1, 700)]
    keep = [random.random(len(part)) < 0.7 for part in parts]
    survivors = [words for part, mask in zip(parts, keep, strict=True) for words, kept in zip(part, mask, strict=True) if kept]
    lens, queries = lens_of(), zipf_queries(random)
    merged = search(lens, [merge(lens, build_all(lens, parts), keep)], [None], queries, 50)
    rebuilt = search(lens, build_all(lens, [survivors]), [None], queries, 50)
    assert merged.rows.tolist() == rebuilt.rows.tolist()
    assert merged.scores.tolist() == rebuilt.scores.tolist()


def test_a_batch_of_queries_is_its_queries_one_by_one() -> None:
    random = np.random.default_rng(9)
    lens, queries = lens_of(), zipf_queries(random)
    parts = build_all(lens, [zipf_docs(random, 900, 20)])
    together = search(lens, parts, [None], queries, 20)
    for i, query in enumerate(queries):
        alone = search(lens, parts, [None], [query], 20)
        assert (alone.rows[0].tolist(), alone.scores[0].tolist()) == (
            together.rows[i].tolist(),
            together.scores[i].tolist(),
        )


def test_a_search_leaves_no_trace() -> None:
    random = np.random.default_rng(10)
    lens = lens_of()
    searcher = lens.searcher(build_all(lens, [zipf_docs(random, 600, 20)]), [random.random(600) < 0.8])
    queries = lens.encoder.encode_queries([" ".join(words) for words in zipf_queries(random)])
    first = searcher.search(queries, 10)
    searcher.search(queries, 500, random.random(600) < 0.1)
    again = searcher.search(queries, 10)
    assert (first.rows.tolist(), first.scores.tolist()) == (again.rows.tolist(), again.scores.tolist())


@pytest.mark.parametrize("times", [255, 256, 65_535, 65_536, 70_001])
def test_high_counts_are_kept(times: int) -> None:
    lens = lens_of(k1=5_000, b=0.9)  # so high that the counts are still told apart
    docs = [["a"] * times, ["a", "b"], ["a"] * (times - 1), ["b"] * 9]
    everything = np.ones(4, np.bool_)
    top = search(lens, build_all(lens, [docs]), [None], [["a"]], 4)
    assert top.rows.tolist() == [[0, 2, 1, -1]]
    require_same(top, [["a"]], BruteForce(lens, docs, everything))
    # Parts with counts of one, two and four bytes are merged into what fits all.
    merged = merge(lens, build_all(lens, [docs[:1], docs[1:2], docs[2:]]), [everything[:1], everything[:1], everything[:2]])
    assert search(lens, [merged], [None], [["a"]], 4).scores.tolist() == top.scores.tolist()


def test_equal_documents_in_many_windows_and_parts_come_in_the_order_of_their_rows() -> None:
    docs = [["a", "b"] if row % 3 else ["a", "b", "c"] for row in range(1500)]
    lens = lens_of()
    top = search(lens, build_all(lens, [docs[:700], docs[700:]]), [None, None], [["a"], ["c"]], 600)
    assert top.rows[0].tolist() == [row for row in range(1500) if row % 3][:600]
    assert top.rows[1].tolist() == [*range(0, 1500, 3), *[-1] * 100]


@pytest.mark.parametrize("seed", range(20))
def test_of_equal_documents_the_first_is_found_though_another_window_promises_more(seed: int) -> None:
    random = np.random.default_rng(seed)
    twin = ["a", "b", *[f"x{word}" for word in range(random.integers(0, 9))]]
    rows = [["other"] * int(length) for length in random.integers(1, 30, 600)]
    rows[random.integers(0, 256)] = twin
    rows[random.integers(256, 512)] = twin
    rows[520:523] = [["a"] * 2, ["b"] * 2, twin]  # an a and a b that each count more than the twin's, but not together
    lens = lens_of(b=1.0)
    assert search(lens, build_all(lens, [rows]), [None], [["a", "b"]], 1).rows.tolist() == [[rows.index(twin)]]


@pytest.mark.parametrize("k1", [0.0, 0.9])
def test_equal_documents_come_in_the_order_of_their_rows_however_long_the_query(k1: float) -> None:
    lens, firsts = lens_of(k1=k1), []
    for words in (1000, 2000, 3000):
        long = [f"w{word}" for word in range(words)]
        docs = [long, *[["other"]] * 299, long, ["more"], *[["other"]] * 200]  # the second window promises more
        firsts.append(int(search(lens, build_all(lens, [docs]), [None], [[*long, "more"]], 1).rows[0, 0]))
    assert firsts == [0, 0, 0]


@pytest.mark.parametrize("docs", [[], [[]], [[], [], []]])
def test_parts_without_words_answer_nothing(docs: list[Words]) -> None:
    lens = lens_of()
    parts = build_all(lens, [docs, [["a"]], docs])
    assert search(lens, parts, [None] * 3, [["a"], []], 2).rows.tolist() == [[len(docs), -1], [-1, -1]]
    none = merge(lens, parts, [np.zeros(len(part), np.bool_) for part in parts])
    assert (len(none), len(none.vocabulary)) == (0, 0)
    assert search(lens, [none], [None], [["a"]], 1).rows.tolist() == [[-1]]


def test_a_searcher_without_parts_answers_nothing() -> None:
    assert search(lens_of(), [], [], [["a"]], 2).rows.tolist() == [[-1, -1]]


# Against another library


def cranfield() -> tuple[list[str], list[str]]:
    if not CRANFIELD.is_dir():
        pytest.skip(f"{CRANFIELD} is not there; it is shared data that is not part of the project")
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
