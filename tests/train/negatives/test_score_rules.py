"""`ScoreRules` against hand-computed bounds."""

import numpy as np

from trilens.train.negatives.score_rules import ScoreRules


def test_rules_by_hand() -> None:
    scores, positives = np.array([0.9, 0.85, 0.2, -1], np.float32), np.array([0.9, 1.0], np.float32)
    assert ScoreRules().allows(scores, positives).all()
    assert not ScoreRules()
    assert ScoreRules(relative_margin=0.05).allows(scores, positives).tolist() == [False, True, True, True]  # 0.855
    assert ScoreRules(absolute_margin=0.5).allows(scores, positives).tolist() == [False, False, True, True]  # 0.4
    assert ScoreRules(max_score=0.88, min_score=0).allows(scores, positives).tolist() == [False, True, True, False]
    below = ScoreRules(relative_margin=0.5)
    assert below.highest(np.array([-2], np.float32)) == -3  # and not -1, which is more than the positive's
