from itertools import pairwise

import numpy as np
import pytest

from trilens.kernels.maxsim import maxsim_all


def test_maxsim_by_hand() -> None:
    query = np.array([[1, 0], [0, 2]], np.float32)
    vectors = np.array([[3, 1], [1, 4], [-1, -1]], np.float32)
    # Row 0 has two tokens: max(3, 1) + max(2·1, 2·4) = 3 + 8. Row 1 has none. Row 2 has one: −1 + 2·(−1) = −3.
    assert maxsim_all(query, np.array([0, 2, 2, 3]), vectors).tolist() == [11, -np.inf, -3]


@pytest.mark.parametrize("seed", range(5))
def test_maxsim_equals_numpy(seed: int) -> None:
    random = np.random.default_rng(seed)
    lengths = random.integers(0, 7, 50)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    query = random.normal(size=(9, 16)).astype(np.float32)
    vectors = random.normal(size=(offsets[-1], 16)).astype(np.float32)
    expected = [
        (query @ vectors[start:end].T).max(axis=1).sum() if end > start else -np.inf for start, end in pairwise(offsets)
    ]
    np.testing.assert_allclose(maxsim_all(query, offsets, vectors), expected, rtol=1e-5, atol=1e-5)
