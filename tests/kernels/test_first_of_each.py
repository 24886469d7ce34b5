import numpy as np

from trilens.kernels.topk import first_of_each


def plain(keys: list[int], rows: list[int], most: int) -> list[int]:
    """The slow twin."""
    counted = [at for at, row in enumerate(rows) if row >= 0]
    firsts = [at for at in counted if at == next(other for other in counted if keys[other] == keys[at])]
    count = min(most, len(keys))
    return (firsts + [-1] * count)[:count]


def test_as_the_slow_twin() -> None:
    random = np.random.default_rng(0)
    for most in (1, 3, 20, 100):
        for highest in (2, 30, 2**40):
            keys = random.integers(0, highest, (7, 40))
            rows = random.integers(-1, 5, (7, 40))
            found = first_of_each(keys, rows, most)
            assert found.tolist() == [plain(*lines, most) for lines in zip(keys.tolist(), rows.tolist(), strict=True)]


def test_nothing() -> None:
    assert first_of_each(np.zeros((2, 0), np.int64), np.zeros((2, 0), np.int64), 5).shape == (2, 0)
