import math
from pathlib import Path

import pytest

from trilens.errors import BadInput
from trilens.evaluate.evaluation import measure
from trilens.evaluate.runs import write_trec


def test_measures_by_hand() -> None:
    qrels = {"a": {"x": 1, "y": 1}, "b": {"z": 1}}
    found = measure(qrels, {"a": {"n": 3.0, "x": 2.0}, "b": {"z": 1.0}})
    # a: only x, second of two wanted; b: perfect.
    ndcg_a = (1 / math.log2(3)) / (1 + 1 / math.log2(3))
    assert found["nDCG@10"] == pytest.approx((ndcg_a + 1) / 2)
    assert found["R@100"] == pytest.approx((1 / 2 + 1) / 2)
    assert found["AP"] == pytest.approx((1 / 2 * 1 / 2 + 1) / 2)
    assert found["RR@10"] == pytest.approx((1 / 2 + 1) / 2)


def test_a_query_that_found_nothing_counts_as_zero() -> None:
    qrels = {"a": {"x": 1}, "b": {"z": 1}}
    assert measure(qrels, {"a": {"x": 1.0}, "b": {}})["nDCG@10"] == pytest.approx(0.5)


def test_a_run_has_six_columns_best_first(tmp_path: Path) -> None:
    write_trec({"q": {"low": 0.5, "high": 2.0}}, tmp_path / "runs" / "r.trec", "tag")
    assert (tmp_path / "runs" / "r.trec").read_text() == "q Q0 high 1 2.000000 tag\nq Q0 low 2 0.500000 tag\n"


def test_an_id_with_a_space_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no spaces"):
        write_trec({"q": {"a b": 1.0}}, tmp_path / "r.trec", "tag")
