"""Every policy against arithmetic written out, with documents that a lens missed and negative scores."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trilens.errors import BadInput
from trilens.search.fusion import Candidates, Fused, Fusion, fuse

# Keys 1, 2, 3. bm25 returned 1 and 2, dense 2 and 3; each was asked for what it had missed.
BM25 = Candidates({1: 6.0, 2: 2.0}, {3: 0.0})
DENSE = Candidates({2: 0.5, 3: -0.1}, {1: -0.3})
BOTH = {"bm25": BM25, "dense": DENSE}


def scores(fused: list[Fused]) -> dict[int, float]:
    assert fused == sorted(fused, key=lambda one: (-one.score, one.key))
    for one in fused:
        assert one.score == pytest.approx(sum(seen.contribution for seen in one.by_lens.values()), abs=1e-12)
    return {one.key: one.score for one in fused}


def parts(fused: list[Fused], lens: str) -> dict[int, float]:
    return {one.key: one.by_lens[lens].contribution for one in fused if lens in one.by_lens}


def test_weighted_sums_raw_scores() -> None:
    fused = fuse(Fusion("weighted", {"bm25": 0.1, "dense": 2}), BOTH)
    # 1: 0.6 − 0.6; 2: 0.2 + 1; 3: 0 − 0.2
    assert scores(fused) == pytest.approx({2: 1.2, 1: 0.0, 3: -0.2})
    assert [one.key for one in fused] == [2, 1, 3]
    assert parts(fused, "dense") == pytest.approx({1: -0.6, 2: 1.0, 3: -0.2})
    assert {one.key: one.by_lens["bm25"].rank for one in fused} == {1: 1, 2: 2, 3: None}
    assert fused[2].by_lens["bm25"].score == 0.0


def test_minmax_by_hand() -> None:
    fused = fuse(Fusion("minmax"), BOTH)
    # bm25 from 0 to 6: 1, 1/3, 0. dense from −0.3 to 0.5: 0, 1, 0.25.
    assert scores(fused) == pytest.approx({2: 1 / 3 + 1, 1: 1.0, 3: 0.25})


def test_zscore_by_hand() -> None:
    fused = fuse(Fusion("zscore", {"bm25": 2}), BOTH)
    # bm25: mean 8/3, variance (100 + 4 + 64) / 27; dense: mean 1/30, variance (100 + 196 + 16) / 2700
    bm25, dense = (168 / 27) ** 0.5, (312 / 2700) ** 0.5
    expected = {
        1: 2 * (6 - 8 / 3) / bm25 + (-0.3 - 1 / 30) / dense,
        2: 2 * (2 - 8 / 3) / bm25 + (0.5 - 1 / 30) / dense,
        3: 2 * (0 - 8 / 3) / bm25 + (-0.1 - 1 / 30) / dense,
    }
    assert scores(fused) == pytest.approx(expected)


def test_rrf_ranks_what_was_missed_behind_what_was_returned() -> None:
    fused = fuse(Fusion("rrf"), BOTH)
    assert scores(fused) == pytest.approx({2: 1 / 62 + 1 / 61, 1: 1 / 61 + 1 / 63, 3: 1 / 62 + 1 / 63})
    assert (fused[1].by_lens["dense"].rank, fused[1].by_lens["dense"].score) == (None, -0.3)


def test_rrf_ranks_what_was_missed_by_its_scores_and_equal_ones_alike() -> None:
    missed = Candidates({1: 9.0}, {2: 3.0, 3: 5.0, 4: 3.0, 5: 1.0})
    fused = fuse(Fusion("rrf"), {"dense": missed, "bm25": Candidates({}, exhausted=True)})
    assert parts(fused, "dense") == pytest.approx({1: 1 / 61, 3: 1 / 62, 2: 1 / 63, 4: 1 / 63, 5: 1 / 65})


def test_rrf_gives_nothing_for_what_does_not_match() -> None:
    """BM25 returned all that share a word with the query, so the others were not missed."""
    bm25 = Candidates({1: 6.0, 2: 2.0}, {3: 0.0}, exhausted=True)
    fused = fuse(Fusion("rrf"), {"bm25": bm25, "dense": DENSE})
    assert parts(fused, "bm25") == pytest.approx({1: 1 / 61, 2: 1 / 62, 3: 0.0})


def test_rrf_with_weights_and_k() -> None:
    fused = fuse(Fusion("rrf", {"dense": 3}, k=1), BOTH)
    assert scores(fused) == pytest.approx({2: 1 / 3 + 3 / 2, 3: 1 / 4 + 3 / 3, 1: 1 / 2 + 3 / 4})


def test_convex_of_two() -> None:
    fused = fuse(Fusion("convex", alpha=0.75), BOTH)
    assert scores(fused) == pytest.approx({2: 0.75 + 0.25 / 3, 1: 0.25, 3: 0.75 * 0.25})
    raw = fuse(Fusion("convex", alpha=0.75, norm="none"), BOTH)
    assert scores(raw) == pytest.approx({1: 1.5 - 0.225, 2: 0.5 + 0.375, 3: -0.075})


def test_alpha_is_the_share_of_the_first_lens_without_dense() -> None:
    fused = fuse(Fusion("convex", alpha=1, norm="none"), {"multi": BM25, "bm25": DENSE})
    assert scores(fused) == pytest.approx({1: 6.0, 2: 2.0, 3: 0.0})


def test_what_a_lens_missed_counts_as_its_worst() -> None:
    fused = fuse(Fusion("weighted", missing="worst"), BOTH)
    # bm25 has 3 at 2 like its last, dense 1 at −0.1
    assert scores(fused) == pytest.approx({1: 5.9, 2: 2.5, 3: 1.9})
    assert scores(fuse(Fusion("rrf", missing="worst"), BOTH)) == pytest.approx(
        {1: 1 / 61 + 1 / 63, 2: 1 / 62 + 1 / 61, 3: 1 / 63 + 1 / 62}
    )
    assert scores(fuse(Fusion("minmax", missing="worst"), BOTH)) == pytest.approx({1: 1.0, 2: 1.0, 3: 0.0})


def test_what_a_lens_missed_counts_nothing() -> None:
    fused = fuse(Fusion("weighted", missing="zero"), BOTH)
    assert scores(fused) == pytest.approx({1: 6.0, 2: 2.5, 3: -0.1})
    assert list(next(one for one in fused if one.key == 3).by_lens) == ["dense"]


def test_what_cannot_be_scored_counts_as_the_lowest() -> None:
    """Key 3 has no token, so that multi has no score for it."""
    multi = Candidates({1: 4.0}, {2: 3.0})
    fused = fuse(Fusion("weighted"), {"dense": Candidates({1: 0.1, 2: 0.2, 3: 0.3}), "multi": multi})
    assert scores(fused) == pytest.approx({1: 4.1, 3: 3.3, 2: 3.2})


def test_a_lens_that_says_nothing_gives_nothing() -> None:
    for policy in ("weighted", "minmax", "zscore", "rrf"):
        fused = fuse(Fusion(policy), {"bm25": Candidates({}), "dense": Candidates({4: 1.0, 5: 1.0})})
        assert [one.key for one in fused] == [4, 5]
        assert all(list(one.by_lens) == ["dense"] for one in fused)


def test_equal_scores_have_no_spread() -> None:
    same = {"bm25": Candidates({1: 2.0, 2: 2.0}), "dense": Candidates({1: -1.0, 2: -1.0})}
    assert scores(fuse(Fusion("minmax"), same)) == {1: 2.0, 2: 2.0}
    assert scores(fuse(Fusion("zscore"), same)) == {1: 0.0, 2: 0.0}


def test_a_scale_makes_the_sum_over_tokens_a_mean() -> None:
    fused = fuse(Fusion("weighted"), {"dense": Candidates({1: 0.5}), "multi": Candidates({1: 3.0}, scale=0.25)})
    assert scores(fused) == pytest.approx({1: 1.25})
    assert fused[0].by_lens["multi"].score == 3.0


def test_ties_go_to_the_smaller_key() -> None:
    fused = fuse(Fusion(), {"bm25": Candidates({9: 2.0, 4: 1.0}), "dense": Candidates({4: 2.0, 9: 1.0})})
    assert [one.key for one in fused] == [4, 9]
    assert fused[0].score == fused[1].score == pytest.approx(1 / 61 + 1 / 62)


def lists(scores: Mapping[int, float]) -> Candidates:
    return Candidates(dict(sorted(scores.items(), key=lambda item: (-item[1], item[0]))))


SCORES = st.dictionaries(st.integers(0, 12), st.floats(-5, 5), max_size=8).map(lists)
FUSIONS = st.builds(
    Fusion,
    st.sampled_from(["rrf", "weighted", "minmax", "zscore", "convex"]),
    missing=st.sampled_from(["exact", "worst", "zero"]),
    k=st.floats(0, 100),
    alpha=st.floats(0, 1),
)


@given(FUSIONS, SCORES, SCORES)
def test_contributions_always_add_up(fusion: Fusion, first: Candidates, second: Candidates) -> None:
    fused = fuse(fusion, {"bm25": first, "dense": second})
    assert {one.key for one in fused} == {*first.found, *second.found}
    scores(fused)


@given(SCORES)
def test_one_ranking_stays_as_it_is(ranking: Candidates) -> None:
    fused = fuse(Fusion(), {"bm25": ranking})
    assert [one.key for one in fused] == list(ranking.found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": "sum"}, "fusion policy is 'sum'; expected one of rrf, weighted"),
        ({"missing": "best"}, "fusion missing is 'best'; expected one of exact, worst, zero"),
        ({"k": -1}, "fusion k is -1; expected a number, at least 0"),
        ({"alpha": 1.5}, "fusion alpha is 1.5; expected a number from 0 to 1"),
        ({"depth": 0}, "fusion depth is 0"),
        ({"weights": {"dense": -1}}, "fusion weight of dense is -1"),
        ({"weights": {"dense": float("nan")}}, "fusion weight of dense is nan"),
        ({"weights": {"dense": 0}}, "are all 0"),
        ({"policy": "convex", "weights": {"dense": 1}}, "by alpha"),
    ],
)
def test_what_is_no_fusion(options: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Fusion(**options)  # type: ignore[arg-type]


def test_lenses_that_do_not_fit() -> None:
    with pytest.raises(BadInput, match="gives a weight to multi, but the lenses searched are bm25, dense"):
        fuse(Fusion("rrf", {"multi": 1}), BOTH)
    with pytest.raises(BadInput, match="convex is of two lenses"):
        fuse(Fusion("convex"), {"bm25": BM25})
