"""Candidate generation over several segments."""

import numpy as np
import pytest

from trilens.index.multi_candidates import CandidateBuffers, best_candidates, nth_highest
from trilens.kernels.array_types import Mask

GAINS = [{0: 5.0, 3: 1.0, 4: 2.0}, {}, {1: 4.0, 2: 3.0}]
SIZES = [5, 2, 3]


def gather(segment: int, mask: Mask | None, buffers: CandidateBuffers) -> int:
    rows = [row for row in GAINS[segment] if mask is None or mask[row]]
    for place, row in enumerate(rows):
        buffers.touched[place], buffers.gains[row] = row, GAINS[segment][row]
    return len(rows)


@pytest.mark.parametrize(
    ("keep", "expected"),
    [
        (1, [{0: 5.0}, {}, {}]),
        (3, [{0: 5.0}, {}, {1: 4.0, 2: 3.0}]),
        (100, GAINS),
    ],
)
def test_the_best_rows_of_all_segments_together(keep: int, expected: list[dict[int, float]]) -> None:
    candidates = best_candidates(gather, SIZES, [None] * 3, keep)
    assert [dict(zip(rows.tolist(), gains.tolist(), strict=True)) for rows, gains in candidates] == expected


def test_masked_rows_are_no_candidates() -> None:
    masks = [np.array([False, True, True, True, True]), None, np.array([True, True, False])]
    candidates = best_candidates(gather, SIZES, masks, 2)
    assert [rows.tolist() for rows, _ in candidates] == [[4], [], [1]]


def test_the_nth_highest_score() -> None:
    scores = [np.array([1, 5], np.float32), np.empty(0, np.float32), np.array([3], np.float32)]
    assert [nth_highest(scores, n) for n in (1, 2, 3, 4)] == [5, 3, -np.inf, -np.inf]
    assert nth_highest([], 1) == -np.inf
