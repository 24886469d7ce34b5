import numpy as np
import pytest

from trilens.errors import BadInput
from trilens.index.topk import Heaps
from trilens.kernels.topk import offer_rows


def test_rows_of_several_segments_are_ranked_together() -> None:
    heaps = Heaps(2, 3)
    offer_rows(np.array([[1, 5], [2, 2]], np.float32), np.array([[0, 1], [0, 1]]), heaps.scores, heaps.rows)
    offer_rows(np.array([[5, 3], [-1, 0]], np.float32), np.array([[7, 8], [-1, -1]]), heaps.scores, heaps.rows)
    top = heaps.sorted()
    assert top.rows.tolist() == [[1, 7, 8], [0, 1, -1]]
    assert top.scores.tolist() == [[5, 5, 3], [2, 2, -np.inf]]


@pytest.mark.parametrize("k", [0, -1])
def test_k_must_be_positive(k: int) -> None:
    with pytest.raises(BadInput, match=f"k is {k}; expected at least 1"):
        Heaps(1, k)
