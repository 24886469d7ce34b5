import numpy as np

from trilens.kernels.batching import assign_batches


def slow_batches(order: list[int], keys: list[list[int]], size: int) -> list[int]:
    """The first batch with room after all batches that contain one of the keys."""
    batches: list[list[int]] = []
    numbers = []
    for example in order:
        clashes = [i for i, batch in enumerate(batches) for other in batch if set(keys[other]) & set(keys[example])]
        number = max(clashes) + 1 if clashes else 0
        while number < len(batches) and len(batches[number]) == size:
            number += 1
        batches.extend([] for _ in range(number + 1 - len(batches)))
        batches[number].append(example)
        numbers.append(number)
    return numbers


def test_batches_equal_the_slow_reference() -> None:
    random = np.random.default_rng(0)
    for size in (1, 2, 5):
        for most in (2, 5, 40):
            keys = [random.integers(0, most, random.integers(0, 4)).tolist() for _ in range(80)]
            offsets = np.cumsum([0, *map(len, keys)])
            order = random.permutation(80)[:60]
            flat = np.array([key for example in keys for key in example], np.int64)
            batches = assign_batches(order, offsets, flat, most, size)
            assert batches.tolist() == slow_batches(order.tolist(), keys, size)
