import numpy as np

from trilens.index.topk import Heaps
from trilens.kernels.dense import inner_product, kth_highest, offer_vectors


def test_kth_highest_by_hand() -> None:
    values, rows = np.array([3.0, 1.0, 5.0, 4.0]), np.arange(4)
    assert [kth_highest(values, rows, k) for k in (1, 2, 3)] == [5.0, 4.0, 3.0]
    assert kth_highest(values, rows, 4) == -np.inf
    assert kth_highest(values, np.array([0, 1, -1, 3]), 2) == 3.0
    assert kth_highest(values, np.array([-1, -1, -1, 3]), 2) == -np.inf


def test_rough_scores_exclude_no_row_of_the_top_k() -> None:
    """With the largest allowed errors and many equal vectors, over several blocks."""
    random = np.random.default_rng(0)
    queries = random.normal(size=(3, 16)).astype(np.float32)
    vectors = random.normal(size=(60, 16)).astype(np.float32)[random.integers(0, 60, 300)]
    candidates = np.where(random.random(300) < 0.8, np.arange(300), -1)
    exact = np.array([[np.float32(inner_product(query, vector)) for vector in vectors] for query in queries])
    lengths = np.linalg.norm(queries, axis=1)[:, None] * np.linalg.norm(vectors, axis=1)
    rough = (exact + random.uniform(-1, 1, exact.shape) * 15 * 2.0**-23 * lengths).astype(np.float32)
    for k in (1, 10, 250, 299):
        heaps = Heaps(3, k)
        for start in (0, 200):
            span = slice(start, start + 200)
            offer_vectors(rough[:, span], queries, vectors[span], candidates[span], 0, heaps.scores, heaps.rows)
        top = heaps.sorted()
        for query in range(3):
            order = sorted((-exact[query, row], row) for row in candidates.tolist() if row >= 0)[:k]
            assert top.rows[query].tolist() == [row for _, row in order] + [-1] * (k - len(order))
