import numpy as np
from numpy.typing import NDArray

from trilens.search.candidates import gather, score_missing
from trilens.search.ranking import DocTopK


def best(*rankings: list[tuple[int, int, float]]) -> DocTopK:
    """Key, row and score of the documents of each query."""
    made = DocTopK.empty(len(rankings), max(map(len, rankings)))
    for query, ranking in enumerate(rankings):
        for place, (key, row, score) in enumerate(ranking):
            made.keys[query, place], made.rows[query, place], made.scores[query, place] = key, row, score
    return made


FOUND = {
    "bm25": best([(7, 70, 2.0), (3, 30, 1.0)], []),
    "dense": best([(5, 50, 0.5), (7, 71, 0.25)], [(9, 90, 0.125)]),
}


def fill(name: str, keys: NDArray[np.int64], owners: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Rows and scores that tell what was asked for; document 9 cannot be scored."""
    return np.where(keys == 9, -1, 1000 * (1 + owners) + keys), np.where(keys == 9, np.nan, -1.0 * keys)


def test_candidates_are_the_union() -> None:
    first, second = gather(FOUND, np.array([4]))
    assert first.keys.tolist() == [3, 4, 5, 7]
    assert first.ranks["bm25"].tolist() == [2, 0, 0, 1]
    assert first.ranks["dense"].tolist() == [0, 0, 1, 2]
    assert first.rows["dense"].tolist() == [-1, -1, 50, 71]
    np.testing.assert_array_equal(first.scores["bm25"], [1.0, np.nan, np.nan, 2.0])
    assert second.keys.tolist() == [4, 9]
    assert second.ranks["bm25"].tolist() == [0, 0]


def test_what_a_lens_missed_is_asked_for() -> None:
    first, second = gather(FOUND, np.empty(0, np.int64))
    score_missing([first, second], ["bm25", "dense"], None, fill)
    assert first.rows["bm25"].tolist() == [30, 1005, 70]
    assert first.scores["bm25"].tolist() == [1.0, -5.0, 2.0]
    assert first.rows["dense"].tolist() == [1003, 50, 71]
    assert second.rows["bm25"].tolist() == [-1]
    assert np.isnan(second.scores["bm25"]).all()


def test_only_some_are_asked_for() -> None:
    first, second = gather(FOUND, np.array([4]))
    score_missing([first, second], ["bm25", "dense"], np.array([4]), fill)
    assert first.rows["bm25"].tolist() == [30, 1004, -1, 70]
    assert second.rows["dense"].tolist() == [2004, 90]


def test_some_lenses_have_the_candidates_that_they_returned() -> None:
    first, second = gather(FOUND, np.empty(0, np.int64))
    score_missing([first, second], ["bm25", "dense"], None, fill)
    bm25 = first.through(["bm25"])
    assert bm25.keys.tolist() == [3, 7]
    assert (bm25.ranks["bm25"].tolist(), bm25.rows["bm25"].tolist()) == ([2, 1], [30, 70])
    assert list(bm25.scores) == ["bm25"]
    assert first.through(["dense", "bm25"]).keys.tolist() == [3, 5, 7]
    assert second.through(["bm25"]).keys.tolist() == []


def test_the_best_passage_is_that_of_the_lens_that_ranks_highest() -> None:
    first, _ = gather(FOUND, np.array([4]))
    assert first.keys.tolist() == [3, 4, 5, 7]
    assert first.best_rows(np.array([3, 0, 2, 1])) == [70, 30, 50, -1]
    score_missing([first], ["dense"], None, fill)
    assert first.best_rows(np.array([3, 0, 1])) == [70, 30, 1004]
