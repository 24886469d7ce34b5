import numpy as np

from trilens.kernels.batching import assign_batches


def plain(order: list[int], keys: list[list[int]], size: int) -> list[int]:
    """The slow twin: the first batch with room behind all batches that hold one of the keys."""
    batches: list[list[int]] = []
    chosen = []
    for example in order:
        held = [at for at, batch in enumerate(batches) for other in batch if set(keys[other]) & set(keys[example])]
        at = max(held) + 1 if held else 0
        while at < len(batches) and len(batches[at]) == size:
            at += 1
        batches.extend([] for _ in range(at + 1 - len(batches)))
        batches[at].append(example)
        chosen.append(at)
    return chosen


def test_as_the_slow_twin() -> None:
    random = np.random.default_rng(0)
    for size in (1, 2, 5):
        for most in (2, 5, 40):
            keys = [random.integers(0, most, random.integers(0, 4)).tolist() for _ in range(80)]
            offsets = np.cumsum([0, *map(len, keys)])
            order = random.permutation(80)[:60]
            flat = np.array([key for some in keys for key in some], np.int64)
            found = assign_batches(order, offsets, flat, most, size)
            assert found.tolist() == plain(order.tolist(), keys, size)
