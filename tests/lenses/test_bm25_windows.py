"""BM25 over several windows of rows and several parts: pruning never changes the result."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .bm25_docs import BruteForce, Case, Mask, Words, build_all, lens_of, merge, require_same, search, zipf_docs, zipf_queries


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
    lens = lens_of(k1=5_000, b=0.9)  # so high that saturation leaves the counts distinguishable
    docs = [["a"] * times, ["a", "b"], ["a"] * (times - 1), ["b"] * 9]
    everything = np.ones(4, np.bool_)
    top = search(lens, build_all(lens, [docs]), [None], [["a"]], 4)
    assert top.rows.tolist() == [[0, 2, 1, -1]]
    require_same(top, [["a"]], BruteForce(lens, docs, everything))
    # Parts with counts of one, two and four bytes are merged into the widest.
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
        docs = [long, *[["other"]] * 299, long, ["more"], *[["other"]] * 200]  # the second window has the higher bound
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
