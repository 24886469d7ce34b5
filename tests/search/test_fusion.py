import pytest
from hypothesis import given
from hypothesis import strategies as st

from trilens.search.fusion import reciprocal_rank_fusion

RANKINGS = st.dictionaries(st.text(max_size=3), st.lists(st.integers(0, 20), unique=True), max_size=4)


def test_fusion_by_hand() -> None:
    fused = reciprocal_rank_fusion({"bm25": [7, 3, 9], "dense": [3, 5, 7]})
    expected = [(3, 1 / 62 + 1 / 61), (7, 1 / 61 + 1 / 63), (5, 1 / 62), (9, 1 / 63)]
    assert [key for key, _ in fused] == [key for key, _ in expected]
    assert [score for _, score in fused] == pytest.approx([score for _, score in expected])


def test_ties_go_to_the_smaller_key() -> None:
    (first, score), (second, other_score) = reciprocal_rank_fusion({"bm25": [9, 4], "dense": [4, 9]})
    assert (first, second) == (4, 9)
    assert score == other_score == pytest.approx(1 / 61 + 1 / 62)


def test_a_smaller_k_favours_first_ranks() -> None:
    rankings = {"bm25": [1, 2], "dense": [3, 2], "multi": [4, 2]}
    assert reciprocal_rank_fusion(rankings)[0][0] == 2  # 3 / 62 > 1 / 61
    assert reciprocal_rank_fusion(rankings, k=-0.6)[0][0] == 1  # 3 / 1.4 < 1 / 0.4


@given(RANKINGS)
def test_every_ranked_key_is_scored_by_its_ranks(rankings: dict[str, list[int]]) -> None:
    fused = reciprocal_rank_fusion(rankings)
    assert {key for key, _ in fused} == {key for ranking in rankings.values() for key in ranking}
    for key, score in fused:
        parts = [1 / (60 + 1 + ranking.index(key)) for ranking in rankings.values() if key in ranking]
        assert score == pytest.approx(sum(parts), abs=1e-12)
    assert fused == sorted(fused, key=lambda item: (-item[1], item[0]))


@given(st.lists(st.integers(), unique=True))
def test_one_ranking_stays_as_it_is(ranking: list[int]) -> None:
    assert [key for key, _ in reciprocal_rank_fusion({"bm25": ranking})] == ranking
