from pathlib import Path

import numpy as np
import pytest

from trilens.errors import BadInput
from trilens.represent import Multi

DIMS = 2


def multi(lengths: list[int]) -> Multi:
    """Token t of all texts has the id 100 + t and a distinct vector."""
    total = sum(lengths)
    offsets = np.cumsum([0, *lengths], dtype=np.int64)
    vectors = np.arange(DIMS * total, dtype=np.float32).reshape(total, DIMS)
    return Multi(offsets, vectors, np.arange(100, 100 + total, dtype=np.int32))


def tokens_of(texts: Multi) -> list[list[int]]:
    return [texts.tokens[texts.offsets[i] : texts.offsets[i + 1]].tolist() for i in range(len(texts))]


def arrays_of(texts: Multi) -> list[list[float]]:
    return [texts.offsets.tolist(), texts.vectors.tolist(), texts.tokens.tolist()]


def test_texts_are_taken_in_the_given_order() -> None:
    taken = multi([2, 0, 1, 3]).take(np.array([3, 1, 0, 3]))
    assert tokens_of(taken) == [[103, 104, 105], [], [100, 101], [103, 104, 105]]
    assert taken.vectors[:, 0].tolist() == [2 * (token - 100) for token in taken.tokens]  # vectors stay with their tokens


def test_sizes_are_summed_lengths() -> None:
    lengths = np.linalg.norm(multi([2, 0, 1]).vectors, axis=1)
    np.testing.assert_allclose(multi([2, 0, 1]).sizes(), [lengths[0] + lengths[1], 0, lengths[2]])


def test_parts_are_concatenated() -> None:
    whole = multi([2, 0, 1, 3])
    parts = [whole.take(np.arange(*bounds)) for bounds in ((0, 1), (1, 1), (1, 4))]
    assert arrays_of(Multi.concat(parts)) == arrays_of(whole)


@pytest.mark.parametrize("lengths", [[], [0], [2, 0, 3]])
def test_saved_vectors_are_opened(tmp_path: Path, lengths: list[int]) -> None:
    multi(lengths).save(tmp_path)
    opened = Multi.open(tmp_path)
    assert (len(opened), opened.dim) == (len(lengths), DIMS)
    assert arrays_of(opened) == arrays_of(multi(lengths))


@pytest.mark.parametrize(("vectors", "tokens", "end"), [((2, DIMS), 1, 2), ((1, DIMS), 2, 2), ((2, DIMS), 2, 1), ((2,), 2, 2)])
def test_arrays_that_disagree_are_refused(vectors: tuple[int, ...], tokens: int, end: int) -> None:
    with pytest.raises(BadInput, match="expected one id per vector"):
        Multi(np.array([0, end]), np.zeros(vectors, np.float32), np.zeros(tokens, np.int32))
