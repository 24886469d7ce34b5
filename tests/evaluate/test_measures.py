"""Measures by hand, and which names are measures."""

import math

import pytest

from trilens.errors import BadInput
from trilens.evaluate.measures import (
    choose_measures,
    depth_of,
    hits_per_query,
    means,
    parse_measure,
    parse_measures,
    per_query,
)
from trilens.text.dataset import Split
from trilens.text.queries import Query

USUAL = ["nDCG@10", "R@100", "AP", "RR@10"]


def test_measures_by_hand() -> None:
    qrels = {"a": {"x": 1, "y": 1}, "b": {"z": 1}}
    found = means(per_query({"a": {"n": 3.0, "x": 2.0}, "b": {"z": 1.0}}, qrels, parse_measures(USUAL)))
    # a: only x, second of two wanted; b: perfect.
    ndcg_a = (1 / math.log2(3)) / (1 + 1 / math.log2(3))
    assert found["nDCG@10"] == pytest.approx((ndcg_a + 1) / 2)
    assert found["R@100"] == pytest.approx((1 / 2 + 1) / 2)
    assert found["AP"] == pytest.approx((1 / 2 * 1 / 2 + 1) / 2)
    assert found["RR@10"] == pytest.approx((1 / 2 + 1) / 2)


@pytest.mark.parametrize("run", [{"a": {"x": 1.0}, "b": {}}, {"a": {"x": 1.0}}, {"a": {"x": 1.0}, "unjudged": {"x": 1.0}}])
def test_a_query_that_found_nothing_or_is_missing_counts_as_zero(run: dict[str, dict[str, float]]) -> None:
    values = per_query(run, {"a": {"x": 1}, "b": {"z": 1}}, parse_measures(USUAL))
    assert values["nDCG@10"] == {"a": 1.0, "b": 0.0}
    assert means(values) == dict.fromkeys(USUAL, 0.5)


def test_all_measures_break_ties_alike() -> None:
    """Scores that are equal in 32 bits are ties, and the larger document id comes first, whatever tool computes the measure."""
    run = {"q": {"a": 1.00000001, "b": 1.0}}
    for wanted, rank in (("b", 1), ("a", 2)):
        found = means(per_query(run, {"q": {wanted: 1}}, parse_measures(["RR", "RR@10", "AP", "P@1"])))
        assert found == {"RR": 1 / rank, "RR@10": 1 / rank, "AP": 1 / rank, "P@1": float(rank == 1)}


def test_hits_by_hand() -> None:
    found = hits_per_query({"a": 1, "b": 5, "c": 6, "d": None}, parse_measures(["Hit@1", "Hit@5"]))
    assert found["Hit@5"] == {"a": 1.0, "b": 1.0, "c": 0.0, "d": 0.0}
    assert means(found) == {"Hit@1": 0.25, "Hit@5": 0.5}
    assert means(found, {"c", "d"}) == {"Hit@1": 0.0, "Hit@5": 0.0}
    assert means(found, {"e"}) == {}


def test_measures_have_other_names_too() -> None:
    assert [str(one) for one in parse_measures(["MAP", "AP", "MRR@10", "Recall@50", " Hit@20 "])] == [
        "AP",
        "RR@10",
        "R@50",
        "Hit@20",
    ]


@pytest.mark.parametrize(
    "name",
    [
        "",
        "beauty",
        "nDCG@",
        "nDCG@0",
        "nDCG@-5",
        "nDCG@ten",
        "nDCG@1.5",
        "R",
        "P(x=1)@5",
        "NumQ",
        "alpha_nDCG@10",
        "Hit",
        "Hit@0",
        "1+1",
    ],
)
def test_what_is_no_measure_is_told(name: str) -> None:
    with pytest.raises(BadInput, match="expected one such as nDCG@10"):
        parse_measure(name)


def test_the_data_must_have_what_a_measure_looks_at() -> None:
    judged = Split("s", {"q": Query("x")}, {"q": {"d": 1}})
    answered = Split("s", {"q": Query("x", answers=("y",))}, {})
    assert [str(one) for one in choose_measures([], judged)] == USUAL
    assert [str(one) for one in choose_measures([], answered)] == ["Hit@1", "Hit@5", "Hit@10", "Hit@20", "Hit@100"]
    with pytest.raises(BadInput, match=r"Hit@5 looks for answers"):
        choose_measures(["Hit@5"], judged)
    with pytest.raises(BadInput, match=r"nDCG@10 needs judgements"):
        choose_measures(["nDCG@10"], answered)


def test_a_search_is_as_deep_as_its_measures() -> None:
    assert depth_of(parse_measures(["AP", "RR@10"])) == 100
    assert depth_of(parse_measures(["AP", "R@1000"])) == 1000
    assert depth_of(parse_measures(["Hit@200"]), 10) == 200
