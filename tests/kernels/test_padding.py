from itertools import combinations

import numpy as np

from trilens.kernels.padding import cut_batches


def cost(lengths: list[int], ends: list[int], price: int) -> int:
    """The cost of batches with these ends; each is padded to the length of its first text."""
    starts = [0, *ends[:-1]]
    return sum(price + (end - start) * max(1, lengths[start]) for start, end in zip(starts, ends, strict=True))


def allowed(lengths: list[int], ends: list[int], batch_tokens: int, most: int) -> bool:
    sizes = [(end - start, lengths[start]) for start, end in zip([0, *ends[:-1]], ends, strict=True)]
    return all(size == 1 or (size <= most and size * longest <= batch_tokens) for size, longest in sizes)


def test_no_other_cuts_cost_less() -> None:
    random = np.random.default_rng(0)
    for batch_tokens, most, price in ((1000, 100, 5), (30, 100, 5), (1000, 3, 2), (1000, 100, 0), (1000, 100, 1000)):
        for count in (1, 2, 9):
            lengths = sorted(random.integers(1, 20, count).tolist(), reverse=True)
            best = cut_batches(np.array(lengths), batch_tokens, most, price).tolist()
            cuts = [list(ends) for size in range(count) for ends in combinations(range(1, count), size)]
            possible = [ends for cut in cuts if allowed(lengths, ends := [*cut, count], batch_tokens, most)]
            assert best in possible
            assert cost(lengths, best, price) == min(cost(lengths, ends, price) for ends in possible)


def test_by_hand() -> None:
    assert cut_batches(np.array([20, 19, 6, 5, 5]), 1000, 100, 5).tolist() == [2, 5]
    assert cut_batches(np.array([6, 5, 5]), 1000, 100, 5).tolist() == [3]
    assert cut_batches(np.array([2000, 1]), 1000, 100, 5).tolist() == [1, 2]
    assert cut_batches(np.empty(0, np.int64), 1000, 100, 5).tolist() == []
