"""Every policy against arithmetic written out, with documents that a lens missed and negative scores."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trilens.errors import BadInput
from trilens.search.candidates import Candidates
from trilens.search.fusion import POLICIES, Fusion, Policy, RankedDoc, fuse, rank_by


@dataclass(frozen=True)
class Column:
    """The documents that one lens returned, best first, and those that it scored when asked, by key."""

    found: Mapping[int, float]
    filled: Mapping[int, float] = field(default_factory=dict)
    scale: float = 1.0
    exhausted: bool = False
    span: tuple[float, float] | None = None


def candidates(**columns: Column) -> Candidates:
    keys = np.array(sorted({key for column in columns.values() for key in (*column.found, *column.filled)}), np.int64)
    made = Candidates(
        keys,
        {},
        {},
        {},
        {name: column.scale for name, column in columns.items()},
        frozenset(name for name, column in columns.items() if column.exhausted),
        {name: column.span for name, column in columns.items() if column.span},
    )
    for name, column in columns.items():
        scores, ranks = np.full(len(keys), np.nan), np.zeros(len(keys), np.int64)
        for rank, (key, score) in enumerate(column.found.items(), start=1):
            scores[keys == key], ranks[keys == key] = score, rank
        for key, score in column.filled.items():
            scores[keys == key] = score
        made.scores[name], made.ranks[name], made.rows[name] = scores, ranks, np.where(np.isnan(scores), -1, 10 * keys)
    return made


# Keys 1, 2, 3. bm25 returned 1 and 2, dense 2 and 3; each scored what it had missed.
BM25 = Column({1: 6.0, 2: 2.0}, {3: 0.0})
DENSE = Column({2: 0.5, 3: -0.1}, {1: -0.3})
BOTH = candidates(bm25=BM25, dense=DENSE)


def scores(fused: list[RankedDoc]) -> dict[int, float]:
    assert fused == sorted(fused, key=lambda one: (-one.score, one.key))
    for one in fused:
        assert one.score == pytest.approx(sum(seen.contribution for seen in one.by_lens.values()), abs=1e-12)
    return {one.key: one.score for one in fused}


def parts(fused: list[RankedDoc], lens: str) -> dict[int, float]:
    return {one.key: one.by_lens[lens].contribution for one in fused if lens in one.by_lens}


def test_weighted_sums_raw_scores() -> None:
    fused = fuse(Fusion("weighted", {"bm25": 0.1, "dense": 2}), BOTH)
    # 1: 0.6 − 0.6; 2: 0.2 + 1; 3: 0 − 0.2
    assert scores(fused) == pytest.approx({2: 1.2, 1: 0.0, 3: -0.2})
    assert [one.key for one in fused] == [2, 1, 3]
    assert parts(fused, "dense") == pytest.approx({1: -0.6, 2: 1.0, 3: -0.2})
    assert {one.key: one.by_lens["bm25"].rank for one in fused} == {1: 1, 2: 2, 3: None}
    assert fused[2].by_lens["bm25"].score == 0.0


@pytest.mark.parametrize("policy", POLICIES)
def test_standard_scores_do_not_depend_on_the_policy(policy: Policy) -> None:
    # bm25: 6, 2, 0 with mean 8/3 and variance (100 + 4 + 64) / 27; dense −0.3, 0.5, −0.1.
    fused = {one.key: one.by_lens for one in fuse(Fusion(policy), BOTH)}
    deviation = (168 / 27) ** 0.5
    assert fused[1]["bm25"].standard == pytest.approx((6 - 8 / 3) / deviation)
    assert fused[3]["bm25"].standard == pytest.approx((0 - 8 / 3) / deviation)
    assert sum(lenses["dense"].standard or 0.0 for lenses in fused.values()) == pytest.approx(0, abs=1e-12)


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


@pytest.mark.parametrize("policy", POLICIES)
def test_a_lens_whose_best_match_is_weak_is_damped(policy: Policy) -> None:
    """bm25 begins at 0 and needs 12 for a match, so its best candidate is half of one; that of dense is more than a match."""
    both = candidates(bm25=replace(BM25, span=(0.0, 12.0)), dense=replace(DENSE, span=(-0.5, 0.5)))
    plain, damped = fuse(Fusion(policy, {"bm25": 2}), BOTH), fuse(Fusion(policy, {"bm25": 2}, damp=True), both)
    assert parts(damped, "bm25") == pytest.approx({key: part / 2 for key, part in parts(plain, "bm25").items()})
    assert parts(damped, "dense") == parts(plain, "dense")
    scores(damped)


def test_common_words_alone_do_not_decide() -> None:
    common = Column({1: 0.3, 2: 0.1}, span=(0.0, 4.0))
    meaning = Column({2: 0.9, 1: 0.7}, span=(0.5, 0.2))
    for fusion, best in ((Fusion("zscore", {"bm25": 1.5}), 1), (Fusion("zscore", {"bm25": 1.5}, damp=True), 2)):
        assert fuse(fusion, candidates(bm25=common, dense=meaning))[0].key == best


def test_what_is_not_damped() -> None:
    """A lens that cannot tell, a query without content, and a lens that returned nothing; below nothing is nothing."""
    for span in (None, (0.0, 0.0)):
        assert Fusion(damp=True).weight_for(candidates(bm25=replace(BM25, span=span)), "bm25") == 1.0
    assert Fusion(damp=True).weight_for(candidates(bm25=Column({}, span=(0.0, 1.0)), dense=DENSE), "bm25") == 1.0
    assert Fusion(damp=True).weight_for(candidates(bm25=replace(BM25, span=(9.0, 1.0))), "bm25") == 0.0
    assert Fusion().weight_for(candidates(bm25=replace(BM25, span=(0.0, 12.0))), "bm25") == 1.0


def test_rrf_ranks_what_was_missed_behind_what_was_returned() -> None:
    fused = fuse(Fusion("rrf"), BOTH)
    assert scores(fused) == pytest.approx({2: 1 / 62 + 1 / 61, 1: 1 / 61 + 1 / 63, 3: 1 / 62 + 1 / 63})
    assert (fused[1].by_lens["dense"].rank, fused[1].by_lens["dense"].score) == (None, -0.3)


def test_rrf_ranks_what_was_missed_by_its_scores_and_equal_ones_alike() -> None:
    missed = Column({1: 9.0}, {2: 3.0, 3: 5.0, 4: 3.0, 5: 1.0})
    fused = fuse(Fusion("rrf"), candidates(dense=missed, bm25=Column({}, exhausted=True)))
    assert parts(fused, "dense") == pytest.approx({1: 1 / 61, 3: 1 / 62, 2: 1 / 63, 4: 1 / 63, 5: 1 / 65})


def test_rrf_gives_nothing_for_what_does_not_match() -> None:
    """BM25 returned all that share a word with the query, so the others were not missed."""
    bm25 = Column({1: 6.0, 2: 2.0}, {3: 0.0}, exhausted=True)
    fused = fuse(Fusion("rrf"), candidates(bm25=bm25, dense=DENSE))
    assert parts(fused, "bm25") == pytest.approx({1: 1 / 61, 2: 1 / 62, 3: 0.0})


def test_rrf_with_weights_and_k() -> None:
    fused = fuse(Fusion("rrf", {"dense": 3}, k=1), BOTH)
    assert scores(fused) == pytest.approx({2: 1 / 3 + 3 / 2, 3: 1 / 4 + 3 / 3, 1: 1 / 2 + 3 / 4})


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
    multi = Column({1: 4.0}, {2: 3.0})
    fused = fuse(Fusion("weighted"), candidates(dense=Column({1: 0.1, 2: 0.2, 3: 0.3}), multi=multi))
    assert scores(fused) == pytest.approx({1: 4.1, 3: 3.3, 2: 3.2})


def test_a_lens_that_says_nothing_gives_nothing() -> None:
    for policy in POLICIES:
        fused = fuse(Fusion(policy), candidates(bm25=Column({}), dense=Column({4: 1.0, 5: 1.0})))
        assert [one.key for one in fused] == [4, 5]
        assert all(list(one.by_lens) == ["dense"] for one in fused)


def test_equal_scores_have_no_spread() -> None:
    same = candidates(bm25=Column({1: 2.0, 2: 2.0}), dense=Column({1: -1.0, 2: -1.0}))
    assert scores(fuse(Fusion("minmax"), same)) == {1: 2.0, 2: 2.0}
    assert scores(fuse(Fusion("zscore"), same)) == {1: 0.0, 2: 0.0}


def test_a_scale_makes_the_sum_over_tokens_a_mean() -> None:
    fused = fuse(Fusion("weighted"), candidates(dense=Column({1: 0.5}), multi=Column({1: 3.0}, scale=0.25)))
    assert scores(fused) == pytest.approx({1: 1.25})
    assert fused[0].by_lens["multi"].score == 3.0


def test_ties_go_to_the_smaller_key() -> None:
    fused = fuse(Fusion(), candidates(bm25=Column({9: 2.0, 4: 1.0}), dense=Column({4: 2.0, 9: 1.0})))
    assert [one.key for one in fused] == [4, 9]
    assert fused[0].score == fused[1].score == pytest.approx(1 / 61 + 1 / 62)


def test_the_best_passage_is_that_of_the_lens_with_the_best_rank() -> None:
    assert {doc.key: doc.row for doc in fuse(Fusion(), BOTH)} == {1: 10, 2: 20, 3: 30}


def test_one_lens_orders_what_it_returned() -> None:
    ranked = rank_by("dense", BOTH)
    assert [(doc.key, doc.row, doc.score) for doc in ranked] == [(2, 20, 0.5), (3, 30, -0.1)]
    assert (ranked[0].by_lens["bm25"].rank, ranked[0].by_lens["bm25"].contribution) == (2, 0)
    assert ranked[0].by_lens["dense"].contribution == 0.5
    assert list(ranked[1].by_lens) == ["dense"]
    assert [doc.key for doc in rank_by("bm25", BOTH, 1)] == [1]


def lists(scores: Mapping[int, float]) -> Column:
    return Column(dict(sorted(scores.items(), key=lambda item: (-item[1], item[0]))))


SCORES = st.dictionaries(st.integers(0, 12), st.floats(-5, 5), max_size=8).map(lists)
MISSING = st.sampled_from(["exact", "worst", "zero"])
FUSIONS = st.one_of(
    st.builds(Fusion, st.just("rrf"), missing=MISSING, k=st.floats(0, 100)),
    st.builds(Fusion, st.sampled_from(["weighted", "minmax", "zscore"]), missing=MISSING),
)


@given(FUSIONS, SCORES, SCORES)
def test_contributions_always_add_up(fusion: Fusion, first: Column, second: Column) -> None:
    fused = fuse(fusion, candidates(bm25=first, dense=second))
    assert {one.key for one in fused} == {*first.found, *second.found}
    scores(fused)


@given(SCORES)
def test_one_ranking_stays_as_it_is(ranking: Column) -> None:
    fused = fuse(Fusion(), candidates(bm25=ranking))
    assert [one.key for one in fused] == list(ranking.found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": "sum"}, "fusion policy is 'sum'; expected one of zscore, minmax, rrf, weighted"),
        ({"missing": "best"}, "fusion missing is 'best'; expected one of exact, worst, zero"),
        ({"k": -1}, "fusion k is -1; expected a number, at least 0"),
        ({"depth": 0}, "fusion depth is 0"),
        ({"weights": {"dense": -1}}, "fusion weight of dense is -1"),
        ({"weights": {"dense": float("nan")}}, "fusion weight of dense is nan"),
        ({"weights": {"dense": 0}}, "are all 0"),
        ({"per_token": 1}, "fusion per_token is 1; expected true or false"),
        ({"damp": "yes"}, "fusion damp is 'yes'; expected true or false"),
    ],
)
def test_what_is_no_fusion(options: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Fusion(**options)  # type: ignore[arg-type]


def test_lenses_that_do_not_fit() -> None:
    with pytest.raises(BadInput, match="gives a weight to multi, but the lenses searched are bm25, dense"):
        fuse(Fusion("rrf", {"multi": 1}), BOTH)
    with pytest.raises(BadInput, match="gives a weight to dense"):
        fuse(Fusion("rrf", {"bm25": 0, "dense": 1}), candidates(bm25=BM25))
