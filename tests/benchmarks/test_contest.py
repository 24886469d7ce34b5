"""Running and comparing contenders."""

import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.contest import ask, recall, taking_part
from benchmarks.peers.environments import PeerMissing


def test_recall_counts_rows_that_reach_the_tenth_score() -> None:
    scores = np.array([[*range(12)]], np.float32)  # the ten best are 2 to 11
    assert recall(scores, [[*range(2, 12)]], 0.0) == 1.0
    assert recall(scores, [[0, 1, *range(2, 10)]], 0.0) == 0.8
    assert recall(scores, [[11] * 10], 0.0) == 0.1  # duplicates count once
    tied = np.ones((1, 12), np.float32)
    assert recall(tied, [[*range(10)]], 0.0) == 1.0


def test_a_failing_contender_is_reported_with_its_exit_code() -> None:
    with pytest.raises(PeerMissing, match=r"failed with exit code 2: .* benchmarks\.peers\.words nobody"):
        list(ask(Path(sys.executable), "words", ["nobody"], threads=1))


def test_a_missing_peer_is_recorded_but_a_failure_of_trilens_is_fatal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded: list[tuple[str, str, str]] = []
    monkeypatch.setattr("benchmarks.contest.record_missing", lambda *facts: recorded.append(facts))
    with taking_part("bm25", "tantivy"):
        raise PeerMissing("could not be installed: no wheel")
    assert recorded == [("bm25", "tantivy", "could not be installed: no wheel")]
    assert "tantivy could not be installed" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="trilens failed"), taking_part("bm25", "trilens"):
        raise PeerMissing("failed")
