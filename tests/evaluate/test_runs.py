"""Runs as other tools read them."""

from pathlib import Path

import numpy as np
import pytest

from trilens.errors import BadInput
from trilens.evaluate.runs import strictly, write_trec


def test_a_run_has_six_columns_best_first(tmp_path: Path) -> None:
    write_trec({"q": {"low": 0.5, "high": 2.0}}, tmp_path / "runs" / "r.trec", "tag")
    assert (tmp_path / "runs" / "r.trec").read_text() == "q Q0 high 1 2 tag\nq Q0 low 2 0.5 tag\n"


def test_an_id_with_a_space_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no spaces"):
        write_trec({"q": {"a b": 1.0}}, tmp_path / "r.trec", "tag")


def test_scores_become_strictly_lower_and_stay_almost_what_they_were(tmp_path: Path) -> None:
    scores = [3.0, 1.0, 1.0, 1.0 - 1e-12, 0.1, 0.1, 0.0, 0.0, -2.0, -2.0]
    found = strictly((f"d{at}", score) for at, score in enumerate(scores))
    as_read = np.array(list(found.values()), np.float32)
    assert (np.diff(as_read) < 0).all()
    np.testing.assert_allclose(as_read, scores, rtol=1e-6, atol=1e-6)
    write_trec({"q": found}, tmp_path / "r.trec", "tag")
    columns = [line.split() for line in (tmp_path / "r.trec").read_text().splitlines()]
    assert [column[2] for column in columns] == list(found)
    assert [np.float32(column[4]) for column in columns] == as_read.tolist()
